#include "evals/evidence.h"
#include "evals/plan_internal.h"

#include <stdlib.h>
#include <string.h>

// ---- order ----

static int number_order(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int text_order(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "-", b != NULL ? b : "-");
}

// By bytes, without joining the parts.
static int parts_order(const struct draft *a, const struct draft *b) {
    size_t i = 0, k = 0, at_i = 0, at_k = 0;
    while (i < a->part_count && k < b->part_count) {
        struct str x = str_slice(a->parts[i].text, at_i, a->parts[i].text.n);
        struct str y = str_slice(b->parts[k].text, at_k, b->parts[k].text.n);
        size_t n = x.n < y.n ? x.n : y.n;
        int order = n > 0 && x.p != y.p ? memcmp(x.p, y.p, n) : 0;
        if (order != 0) return order;
        at_i = n == x.n ? 0 : at_i + n;
        at_k = n == y.n ? 0 : at_k + n;
        i += n == x.n;
        k += n == y.n;
    }
    return (i < a->part_count) - (k < b->part_count);
}

static int prompt_order(const struct draft *a, const struct draft *b) {
    if (a->ids.count == 0 && b->ids.count == 0) return parts_order(a, b);
    return plan_ids_order(&a->ids, &b->ids);
}

static int cell_order(const struct draft *a, const struct draft *b) {
    int order = text_order(a->t.arm, b->t.arm);
    if (order == 0) order = number_order(a->t.length, b->t.length);
    if (order == 0) order = text_order(a->t.placement, b->t.placement);
    if (order == 0 && a->t.placement != NULL) order = place_compare(a->cell.place, b->cell.place);
    if (order == 0) order = number_order(a->cell.variant, b->cell.variant);
    return order;
}

// Models in file order, then the prompt, then the key field by field.
static int draft_order(const void *x, const void *y) {
    const struct draft *a = *(struct draft *const *)x, *b = *(struct draft *const *)y;
    int order = number_order(a->cell.model, b->cell.model);
    if (order == 0) order = prompt_order(a, b);
    if (order == 0) order = cell_order(a, b);
    if (order == 0 && a->t.case_id != NULL) order = text_order(a->t.case_id, b->t.case_id);
    if (order == 0) order = number_order(a->t.repeat, b->t.repeat);
    return order != 0 ? order : number_order(a->t.sample, b->t.sample);
}

// ---- groups of equal trials ----

bool plan_same_prompt(const struct record_trial *a, const struct record_trial *b) {
    bool ids = a->ids_sha256[0] != '\0' && b->ids_sha256[0] != '\0';
    return strcmp(a->model, b->model) == 0 &&
           (ids ? strcmp(a->ids_sha256, b->ids_sha256) == 0
                : strcmp(a->prompt_sha256, b->prompt_sha256) == 0);
}

bool plan_same_stream(const struct record_trial *a, const struct record_trial *b) {
    return strcmp(a->seed, b->seed) == 0;
}

bool plan_is_lent(const struct record_trial *trials, int64_t at) {
    const struct record_trial *t = &trials[at];
    for (int64_t i = at - 1; i >= 0 && plan_same_prompt(&trials[i], t); i--)
        if (plan_same_stream(&trials[i], t)) return true;
    return false;
}

// Within one cell equal prompts come from one repeat only: in plan order such trials are
// neighbours.
static int repeats_check(const struct planner *p, struct err *e) {
    for (int64_t i = 1; i < p->count; i++) {
        const struct draft *a = p->drafts[i - 1], *b = p->drafts[i];
        if (!plan_same_prompt(&a->t, &b->t) || cell_order(a, b) != 0 || a->t.repeat == b->t.repeat)
            continue;
        FAIL(e, ERR_CONFIG,
             "trials %s and %s have the same prompt: these repeats draw nothing. Give the filler "
             "more "
             "to draw from (kind prose, shuffle: true, more sentences), the constraints variables, "
             "or "
             "leave out the arm or the repeats",
             a->t.key, b->t.key);
    }
    return 0;
}

uint32_t plan_shared_tokens(const struct record_trial *trials, int64_t before, int64_t at) {
    if (before < 0) return 0;
    uint32_t shared = trials[at].prompt_tokens;
    for (int64_t i = before + 1; i <= at; i++)
        if (trials[i].shared_tokens < shared) shared = trials[i].shared_tokens;
    return shared;
}

int64_t plan_equal_groups(const struct record_trial *trials, int64_t count, int64_t *groups) {
    int64_t next = 0;
    for (int64_t i = 0; i < count; i++) groups[i] = -1;
    for (int64_t i = 0; i < count; i++) {
        if (groups[i] >= 0) continue;
        const struct record_trial *t = &trials[i];
        for (int64_t k = i + 1; k < count && plan_same_prompt(t, &trials[k]); k++) {
            if (!plan_same_stream(t, &trials[k])) continue;
            if (groups[i] < 0) groups[i] = next++;
            groups[k] = groups[i];
        }
    }
    return next;
}

// ---- the plan ----

// Equal replies are asked for of a server that promises none.
static void warn_about_served_gates(struct planner *p) {
    const struct experiment *x = p->x;
    for (int i = 0; i < x->gate_count; i++) {
        const struct experiment_gate *g = &x->gates[i];
        if (strcmp(g->metric, "changed_replies") != 0) continue;
        for (int m = 0; m < x->model_count; m++)
            if (x->models[m].endpoint.url != NULL && (g->where.model < 0 || g->where.model == m))
                planner_warn(p, arena_printf(p->a,
                                             "the gate changed_replies asks for equal replies of "
                                             "%s, which is served: it may fail though nothing "
                                             "changed (models[].repeat_check tells how often)",
                                             x->models[m].id));
    }
}

static void warnings_make(struct planner *p) {
    if (p->estimated)
        planner_warn(p, "a model gives no exact token ids: lengths and spans are estimates (served "
                        "models: count: FILE or count: tokenize)");
    if (p->counted)
        planner_warn(p,
                     "a server does not tell its token ids: lengths are counted for it, and where "
                     "constraints stand in them is an estimate");
    warn_about_served_gates(p);
    if (p->spelled != NULL)
        planner_warn(
            p, arena_printf(p->a,
                            "a message, the filler or a constraint spells the model's control "
                            "token %s; it stays text and ends or begins no turn",
                            p->spelled));
    if (p->off_depth > 0)
        planner_warn(p,
                     arena_printf(p->a,
                                  "%lld constraints stand more than 5 points of depth away from "
                                  "where they were asked for, as units are long there; first: %s",
                                  (long long)p->off_depth, p->off_depth_first));
    if (p->shared_tokens > 0)
        planner_warn(p, arena_printf(p->a,
                                     "%lld constraints share a token with the text beside them; "
                                     "first: %s",
                                     (long long)p->shared_tokens, p->shared_first));
}

static int collect(struct planner *p, struct err *e) {
    for (int r = 0; r < p->x->repeats; r++) TRY(planner_repeat(p, r, e));
    if (p->count == 0) FAIL(e, ERR_CONFIG, "--only selects no trial of this experiment");
    qsort(p->drafts, (size_t)p->count, sizeof *p->drafts, draft_order);
    TRY(repeats_check(p, e));
    if (p->x->limit >= 0 && p->x->limit < p->count) p->count = p->x->limit;
    warnings_make(p);
    return 0;
}

static void finish(struct planner *p, struct plan *out) {
    out->trials = arena_array(p->a, (size_t)p->count + 1, sizeof *out->trials);
    out->trial_count = p->count;
    for (int64_t i = 0; i < p->count; i++) {
        struct draft *d = p->drafts[i];
        d->t.trial = i;
        if (i > 0 && p->drafts[i - 1]->cell.model == d->cell.model)
            d->t.shared_tokens = plan_ids_common(&p->drafts[i - 1]->ids, &d->ids);
        out->trials[i] = d->t;
        out->prompt_tokens += d->t.prompt_tokens;
        out->shared_tokens += d->t.shared_tokens;
        out->reply_tokens_most += d->t.reply_tokens_max;
    }
    int64_t *groups = arena_array(p->a, (size_t)p->count + 1, sizeof *groups);
    out->equal_groups = plan_equal_groups(out->trials, p->count, groups);
    out->warnings = p->warnings;
    out->warning_count = p->warning_count;
    out->partial = p->x->only_count > 0 || p->x->limit >= 0;
}

// Fillers and prompts go before the plan line that names them.
static int store_prompts(struct planner *p, struct record_writer *w, struct err *e) {
    for (int64_t i = 0; i < p->count; i++) {
        struct draft *d = p->drafts[i];
        char sha256[HASH_HEX_SIZE];
        if (!d->filler->put && d->filler->text.n > 0) {
            TRY(record_put_filler(w, d->filler->text, sha256, e));
            d->filler->put = true;
        }
        TRY(record_put_prompt(w, d->parts, d->part_count, sha256, e));
        if (strcmp(sha256, d->t.prompt_sha256) != 0)
            FAIL(e, ERR_RECORD, "%s: the stored prompt has the hash %s instead of %s", d->t.key,
                 sha256, d->t.prompt_sha256);
    }
    return 0;
}

static int store(struct planner *p, const struct plan *plan, struct record_writer *w,
                 struct err *e) {
    if (!p->x->drops_prompts) TRY(store_prompts(p, w, e));
    for (int64_t i = 0; i < p->count; i++) TRY(record_put_plan(w, &plan->trials[i], e));
    return 0;
}

// Texts that the record does not keep are needed all the same while it is made.
static void hold_prompts(struct planner *p, struct plan *out) {
    out->prompts = arena_array(p->a, (size_t)p->count + 1, sizeof *out->prompts);
    for (int64_t i = 0; i < p->count; i++)
        out->prompts[i] = (struct record_prompt){p->drafts[i]->parts, p->drafts[i]->part_count};
}

int plan_make(const struct experiment *x, struct provider *const *providers,
              struct record_writer *w, struct arena *a, struct plan *out, struct err *e) {
    struct planner p;
    *out = (struct plan){0};
    TRY(evidence_check(x, providers, e));
    int result = planner_open(x, providers, a, &p, e);
    if (result == 0) result = collect(&p, e);
    if (result == 0) finish(&p, out);
    if (result == 0 && x->drops_prompts) hold_prompts(&p, out);
    if (result == 0 && w != NULL) result = store(&p, out, w, e);
    planner_close(&p);
    return result;
}

int plan_prompt(const struct experiment *x, struct provider *const *providers, const char *key,
                struct arena *a, struct record_trial *trial, struct record_part **parts,
                size_t *part_count, struct err *e) {
    struct planner p;
    struct plan plan = {0};
    int result = planner_open(x, providers, a, &p, e);
    if (result == 0) result = collect(&p, e);
    if (result == 0) finish(&p, &plan);
    for (int64_t i = 0; result == 0 && i < p.count; i++) {
        if (strcmp(p.drafts[i]->t.key, key) != 0) continue;
        *trial = p.drafts[i]->t;
        *parts = p.drafts[i]->parts;
        *part_count = p.drafts[i]->part_count;
        planner_close(&p);
        return 0;
    }
    if (result == 0) {
        const char **keys = arena_array(a, (size_t)p.count + 1, sizeof *keys);
        for (int64_t i = 0; i < p.count; i++) keys[i] = p.drafts[i]->t.key;
        const char *near = str_nearest(key, keys, (size_t)p.count);
        if (near == NULL) near = keys[0];
        result = ERR_SET(e, ERR_USAGE,
                         "there is no trial '%s'; a key is "
                         "model/arm/length/placement@depth/repeat/sample, as in '%s'",
                         key, near);
    }
    planner_close(&p);
    return result;
}
