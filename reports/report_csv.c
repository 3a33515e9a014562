// results.csv: one row per trial and constraint (columns are documented in the README).
#include "reports/escape.h"
#include "reports/summary.h"

#include <string.h>

static const char header[] =
    "trial,key,model,arm,length,placement,depth,repeat,case,sample,constraint,place,depth_real,"
    "status,reason,verdict,unscored_reason,by,near,copied,thought,finish,prompt_tokens,"
    "reply_tokens,reasoning_tokens,tokens_ppm,attention_prompt_ppm,attention_reply_ppm,"
    "attention_reply_max_ppm,strongest_head,reply\r\n";

static void add_text(struct buf *out, const char *text) {
    if (text != NULL) escape_csv(out, str_from(text));
    buf_add_char(out, ',');
}

// Where the constraint was asked to stand, and where it really does in the filler: several spots
// joined by "+"; "absent" where its row leaves it out.
static void add_places(const struct record_trial *t, const char *constraint, struct buf *out) {
    struct buf asked = {0}, real = {0};
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *s = &t->spans[i];
        if (strcmp(s->constraint, constraint) != 0) continue;
        if (s->place != NULL) buf_printf(&asked, "%s%s", asked.n > 0 ? "+" : "", s->place);
        if (strcmp(s->depth, "-") != 0) buf_printf(&real, "%s%s", real.n > 0 ? "+" : "", s->depth);
    }
    if (asked.n == 0 && t->placement != NULL && t->span_count > 0 && t->spans[0].place != NULL)
        buf_add_c(&asked, "absent");
    add_text(out, asked.p);
    add_text(out, real.p);
    buf_free(&asked);
    buf_free(&real);
}

static void add_texts(struct buf *out, const struct str *texts, int count) {
    struct buf joined = {0};
    for (int i = 0; texts != NULL && i < count; i++) { // NULL: not kept
        if (i > 0) buf_add_c(&joined, "; ");
        buf_add_str(&joined, texts[i]);
    }
    escape_csv(out, buf_str(&joined));
    buf_add_char(out, ',');
    buf_free(&joined);
}

static void add_verdict(const struct record_verdict *v, struct buf *out) {
    add_text(out, verdict_name(v->verdict));
    add_text(out, v->reason);
    add_text(out, v->by);
    add_texts(out, v->near, v->near_count);
    add_texts(out, v->copied, v->copied_count);
    add_text(out, v->thought ? "yes" : NULL);
}

static const struct record_verdict *verdict_of(const struct record_outcome *o,
                                               const char *constraint) {
    for (int i = 0; o != NULL && i < o->verdict_count; i++)
        if (strcmp(o->verdicts[i].constraint, constraint) == 0) return &o->verdicts[i];
    return NULL;
}

static void add_share(int32_t ppm, struct buf *out) {
    if (ppm != RECORD_NO_SHARE) buf_printf(out, "%d", ppm);
    buf_add_char(out, ',');
}

// `v` is NULL where nothing was watched.
static void add_attention(const struct record_evidence *v, const char *constraint,
                          struct buf *out) {
    for (int i = 0; v != NULL && i < v->attention_count; i++) {
        const struct record_attention *t = &v->attention[i];
        if (strcmp(t->constraint, constraint) != 0) continue;
        add_share(t->prompt_tokens, out);
        for (int rows = 0; rows < ROWS_COUNT; rows++) add_share(t->mean.of[rows], out);
        if (t->strongest_count > 0)
            buf_printf(out, "L%dH%d", t->strongest[0].layer, t->strongest[0].head);
        buf_add_char(out, ',');
        return;
    }
    buf_add_c(out, ",,,,,");
}

static void add_row(const struct record_trial *t, const struct record_outcome *o,
                    const struct record_evidence *v, const char *constraint, struct buf *out) {
    buf_printf(out, "%lld,", (long long)t->trial);
    add_text(out, t->key);
    add_text(out, t->model);
    add_text(out, t->arm);
    if (t->length >= 0) buf_printf(out, "%d", t->length);
    buf_add_char(out, ',');
    add_text(out, t->placement);
    add_text(out, t->depth);
    buf_printf(out, "%d,", t->repeat);
    add_text(out, t->case_id);
    buf_printf(out, "%d,", t->sample);
    add_text(out, constraint);
    add_places(t, constraint, out);
    add_text(out, o == NULL ? "not_run" : record_status_name(o->status));
    add_text(out, o == NULL ? NULL : o->reason_code);
    const struct record_verdict *verdict = verdict_of(o, constraint);
    if (verdict != NULL)
        add_verdict(verdict, out);
    else
        buf_add_c(out, ",,,,,,");
    add_text(out, o == NULL ? NULL : o->finish);
    buf_printf(out, "%u,", t->prompt_tokens);
    if (o != NULL && o->tokens >= 0) buf_printf(out, "%d", o->tokens);
    buf_add_char(out, ',');
    if (o != NULL && o->reasoning_counted) buf_printf(out, "%d", o->reasoning_tokens);
    buf_add_char(out, ',');
    add_attention(v, constraint, out);
    if (o != NULL) escape_csv(out, o->reply);
    buf_add_c(out, "\r\n");
}

int report_csv(const struct record *r, const struct summary *s, struct buf *out, struct err *e) {
    buf_add_c(out, header);
    struct arena *a = arena_create("trial");
    int result = 0;
    for (int64_t i = 0; result == 0 && i < r->trial_count; i++) {
        const struct record_evidence *v;
        arena_reset(a);
        result = record_get_evidence(r, i, a, &v, e);
        for (int c = 0; result == 0 && c < s->constraint_count; c++)
            add_row(&r->trials[i], r->outcomes[i], v, s->constraints[c], out);
    }
    arena_destroy(a);
    return result;
}
