#include "evals/evidence.h"

#include <string.h>

static bool is_off(const struct experiment *x) {
    return strcmp(x->evidence, "off") == 0;
}

const char *evidence_word(const struct experiment *x, const struct provider *p) {
    return p->can.evidence ? x->evidence : "off";
}

int evidence_check(const struct experiment *x, struct provider *const *providers, struct err *e) {
    for (int i = 0; x->evidence_asked && !is_off(x) && i < x->model_count; i++)
        if (!providers[i]->can.evidence)
            FAIL(e, ERR_CONFIG,
                 "evidence: %s: the model %s (%s) cannot tell where it looks; leave evidence out, "
                 "so that each model gives what it can, or set it to off",
                 x->evidence, x->models[i].id, providers[i]->ops->kind);
    return 0;
}

uint32_t evidence_spans_most(const struct experiment *x, const struct record_trial *trials,
                             int64_t count, const char *model) {
    int most = 0;
    for (int64_t i = 0; !is_off(x) && i < count; i++)
        if (trials[i].span_count > most && strcmp(trials[i].model, model) == 0)
            most = trials[i].span_count;
    return (uint32_t)most;
}

void evidence_ask(const struct record_trial *t, struct arena *a, struct provider_request *out) {
    const char **standing;
    out->subject_count = record_standing(t, a, &standing);
    struct provider_span *spans = arena_array(a, (size_t)t->span_count + 1, sizeof *spans);
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *s = &t->spans[i];
        spans[i] = (struct provider_span){0, s->first_token, s->tokens};
        while (strcmp(standing[spans[i].subject], s->constraint) != 0) spans[i].subject++;
    }
    out->spans = spans;
    out->span_count = t->span_count;
}

bool evidence_same_spans(const struct record_trial *a, const struct record_trial *b) {
    bool same = a->span_count == b->span_count;
    for (int i = 0; same && i < a->span_count; i++)
        same = a->spans[i].first_token == b->spans[i].first_token &&
               a->spans[i].tokens == b->spans[i].tokens &&
               strcmp(a->spans[i].constraint, b->spans[i].constraint) == 0;
    return same;
}

static int32_t ppm(double share) {
    int32_t rounded = (int32_t)(share * 1e6 + 0.5);
    return rounded < 1000000 ? rounded : 1000000; // sums of rounded shares may lie above 1
}

static double mean_of(const double *shares, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += shares[i];
    return sum / (double)n;
}

// Every head, in ascending order, into the list of the strongest: an equal one stays behind.
static void find_strongest(const struct record_shares *all, int layers, int heads,
                           enum record_rows by, struct record_attention *out) {
    for (int i = 0; i < layers * heads; i++) {
        int at = out->strongest_count;
        while (at > 0 && out->strongest[at - 1].shares.of[by] < all[i].of[by]) at--;
        if (at == RECORD_STRONGEST) continue;
        if (out->strongest_count < RECORD_STRONGEST) out->strongest_count++;
        for (int k = out->strongest_count - 1; k > at; k--)
            out->strongest[k] = out->strongest[k - 1];
        out->strongest[at] = (struct record_head){i / heads, i % heads, all[i]};
    }
}

static struct record_attention keep_one(const struct provider_attention *p, int layers, int heads,
                                        bool full, struct arena *a) {
    const double *rows[ROWS_COUNT] = {p->prompt, p->reply_mean, p->reply_max};
    size_t n = (size_t)layers * (size_t)heads;
    struct record_shares *all = arena_array(a, n, sizeof *all);
    bool replied = p->reply_mean != NULL;
    struct record_attention out = {
        .prompt_tokens = ppm(p->prompt_tokens),
        .reply_tokens = replied ? ppm(p->reply_tokens) : RECORD_NO_SHARE,
        .strongest = arena_array(a, RECORD_STRONGEST, sizeof *out.strongest),
        .all = full ? all : NULL,
    };
    for (int r = 0; r < ROWS_COUNT; r++) {
        out.mean.of[r] = rows[r] != NULL ? ppm(mean_of(rows[r], n)) : RECORD_NO_SHARE;
        for (size_t i = 0; i < n; i++)
            all[i].of[r] = rows[r] != NULL ? ppm(rows[r][i]) : RECORD_NO_SHARE;
    }
    find_strongest(all, layers, heads, replied ? ROWS_REPLY : ROWS_PROMPT, &out);
    return out;
}

const struct record_evidence *evidence_keep(const struct experiment *x,
                                            const struct record_trial *t,
                                            const struct provider_completion *c, struct arena *a) {
    if (!c->ok || c->attention == NULL || t->span_count == 0) return NULL;
    const char **standing;
    struct record_evidence *v = arena_alloc(a, sizeof *v);
    v->layers = (int)c->layers;
    v->heads = (int)c->heads;
    v->attention_count = record_standing(t, a, &standing);
    v->attention = arena_array(a, (size_t)v->attention_count, sizeof *v->attention);
    bool full = strcmp(x->evidence, "full") == 0;
    for (int i = 0; i < v->attention_count; i++) {
        v->attention[i] = keep_one(&c->attention[i], v->layers, v->heads, full, a);
        v->attention[i].constraint = standing[i];
    }
    return v;
}
