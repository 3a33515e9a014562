// results.csv: one row per trial and constraint (columns are documented in the README).
#include "reports/escape.h"
#include "reports/summary.h"

#include <string.h>

static const char header[] =
    "trial,key,model,arm,length,placement,depth,repeat,case,sample,constraint,place,depth_real,"
    "status,reason,verdict,unscored_reason,by,near,copied,finish,prompt_tokens,reply_tokens,"
    "reply\r\n";

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
    for (int i = 0; i < count; i++) {
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
}

static const struct record_verdict *verdict_of(const struct record_outcome *o,
                                               const char *constraint) {
    for (int i = 0; o != NULL && i < o->verdict_count; i++)
        if (strcmp(o->verdicts[i].constraint, constraint) == 0) return &o->verdicts[i];
    return NULL;
}

static void add_row(const struct record_trial *t, const struct record_outcome *o,
                    const char *constraint, struct buf *out) {
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
    const struct record_verdict *v = verdict_of(o, constraint);
    if (v != NULL)
        add_verdict(v, out);
    else
        buf_add_c(out, ",,,,,");
    add_text(out, o == NULL ? NULL : o->finish);
    buf_printf(out, "%u,", t->prompt_tokens);
    if (o != NULL) {
        buf_printf(out, "%d,", o->tokens);
        escape_csv(out, o->reply);
    } else {
        buf_add_char(out, ',');
    }
    buf_add_c(out, "\r\n");
}

int report_csv(const struct record *r, const struct summary *s, struct buf *out, struct err *e) {
    (void)e;
    buf_add_c(out, header);
    for (int64_t i = 0; i < r->trial_count; i++)
        for (int c = 0; c < s->constraint_count; c++)
            add_row(&r->trials[i], r->outcomes[i], s->constraints[c], out);
    return 0;
}
