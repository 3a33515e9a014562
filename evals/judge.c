#include "evals/judge.h"

#include "evals/copied.h"
#include "evals/reply.h"

#include <string.h>

// Variables of the constraint itself, then those of others under names that are still free: a
// pattern may compare with another constraint's value.
static int collect(const struct record_trial *t, const char *constraint, struct arena *a,
                   struct variable **out) {
    struct variable *vars = arena_array(a, (size_t)t->var_count, sizeof *vars);
    int count = 0;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < t->var_count; i++) {
            const struct record_var *v = &t->vars[i];
            if ((strcmp(v->constraint, constraint) == 0) != (own == 1)) continue;
            bool taken = false;
            for (int k = 0; k < count && !taken; k++) taken = strcmp(vars[k].name, v->name) == 0;
            if (!taken) vars[count++] = (struct variable){v->name, v->value};
        }
    *out = vars;
    return count;
}

struct reply judge_reply_of(const struct record_outcome *o) {
    struct reply r = {
        .text = o->reply, .answer = {o->answer[0], o->answer[1]}, .finish = o->finish};
    r.thought = o->reasoning.n > 0 ? o->reasoning : str_slice(o->reply, 0, o->answer[0]);
    return r;
}

// Whichever of the two says more: a violation, then what is met, then the answer's own verdict.
static const struct record_verdict *stronger(const struct record_verdict *answer,
                                             const struct record_verdict *thought) {
    static const enum verdict order[] = {VERDICT_VIOLATED, VERDICT_MET};
    for (int i = 0; i < 2; i++) {
        if (answer->verdict == order[i]) return answer;
        if (thought->verdict == order[i]) return thought;
    }
    return answer;
}

// The verdict on what the constraint looks at. A thought is looked at as a reply that ended as the
// whole did.
static void judge_parts(const struct experiment_constraint *c, const struct check *check,
                        const struct reply *reply, struct arena *a, struct record_verdict *out) {
    struct record_verdict answer = {0}, thought = {0};
    const struct reply apart = {
        .text = reply->thought, .answer = {0, reply->thought.n}, .finish = reply->finish};
    const bool has_thought = !reply_blank(reply->thought);
    if (c->look_in != LOOK_IN_REASONING) check_judge(check, reply, a, &answer);
    if (has_thought || c->look_in != LOOK_IN_ANSWER) check_judge(check, &apart, a, &thought);
    thought.in = "reasoning";
    switch (c->look_in) {
    case LOOK_IN_ANSWER:
        *out = answer;
        out->thought = has_thought && answer.verdict != VERDICT_MET &&
                       c->kind == CONSTRAINT_STATE && thought.verdict == VERDICT_MET;
        break;
    case LOOK_IN_REASONING: *out = thought; break;
    case LOOK_IN_BOTH: *out = *stronger(&answer, &thought); break;
    }
}

int judge_reply(const struct experiment *x, struct check_set *patterns,
                const struct record_trial *trial, const struct reply *reply, struct arena *a,
                struct record_verdict **verdicts, int *count, struct err *e) {
    int row = experiment_placement_index(x, trial->placement);
    *count = 0;
    *verdicts = arena_array(a, (size_t)x->constraint_count, sizeof **verdicts);
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        if (row >= 0 && placement_leaves_out(&x->placements[row], i)) continue;
        struct variable *vars;
        const struct check *check;
        int var_count = collect(trial, c->id, a, &vars);
        TRY(check_prepare(patterns, c, vars, var_count, &check, e));
        struct record_verdict *v = &(*verdicts)[(*count)++];
        judge_parts(c, check, reply, a, v);
        v->constraint = c->id;
        copied_find(check_set_rules(patterns), c, vars, var_count, trial,
                    str_slice(reply->text, reply->answer[0], reply->answer[1]), a, &v->copied,
                    &v->copied_count);
    }
    return 0;
}

int judge_explain(const struct experiment *x, struct check_set *patterns,
                  const struct record_trial *trial, int constraint, const struct reply *reply,
                  bool violated, struct arena *a, struct check_trace *out, struct err *e) {
    const struct experiment_constraint *c = &x->constraints[constraint];
    struct variable *vars;
    const struct check *check;
    int var_count = collect(trial, c->id, a, &vars);
    TRY(check_prepare(patterns, c, vars, var_count, &check, e));
    check_explain(check, reply, violated, a, out);
    return 0;
}

// ---- again, from a record ----------------------------------------------------------------------

static bool same_word(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_texts(const struct str *a, int a_count, const struct str *b, int b_count) {
    for (int i = 0; i < a_count && i < b_count; i++)
        if (!str_equal(a[i], b[i])) return false;
    return a_count == b_count;
}

static bool same_verdict(const struct record_verdict *a, const struct record_verdict *b) {
    if (strcmp(a->constraint, b->constraint) != 0 || a->verdict != b->verdict) return false;
    if (!same_word(a->reason, b->reason) || !same_word(a->by, b->by)) return false;
    if (!same_word(a->in, b->in) || a->thought != b->thought) return false;
    if (a->has_match != b->has_match) return false;
    if (a->has_match && (a->match[0] != b->match[0] || a->match[1] != b->match[1])) return false;
    return same_texts(a->near, a->near_count, b->near, b->near_count) &&
           same_texts(a->copied, a->copied_count, b->copied, b->copied_count);
}

static void compare_verdicts(const struct record_outcome *o, const struct record_verdict *now,
                             int count, struct buf *findings, bool *sound) {
    if (o->verdict_count != count) {
        buf_printf(findings, "%s: has %d verdicts; the experiment judges %d constraints in it\n",
                   o->key, o->verdict_count, count);
        *sound = false;
        return;
    }
    for (int i = 0; i < count; i++) {
        const struct record_verdict *then = &o->verdicts[i];
        if (same_verdict(then, &now[i])) continue;
        buf_printf(
            findings, "%s: %s: recorded as %s, scored again as %s%s%s\n", o->key, then->constraint,
            verdict_name(then->verdict), verdict_name(now[i].verdict),
            then->verdict == now[i].verdict ? " with another match, reason or near miss" : "",
            strcmp(then->constraint, now[i].constraint) != 0 ? " of another constraint" : "");
        *sound = false;
    }
}

static void compare_hash(const struct record *r, const char *key, const char *hex,
                         struct buf *findings, bool *sound) {
    const char *said = json_string_value(json_object_get(r->identity, key));
    if (said != NULL && strcmp(said, hex) == 0) return;
    buf_printf(findings, "%s/resolved.json: its %s is %.12s...; identity.json says %.12s...\n",
               r->folder, key, hex, said != NULL ? said : "nothing");
    *sound = false;
}

static void compare_hashes(const struct record *r, const struct experiment *x, struct buf *findings,
                           bool *sound) {
    char hex[HASH_HEX_SIZE];
    if (!x->without_texts) {
        experiment_checks_sha256(x, hex);
        compare_hash(r, "checks_sha256", hex, findings, sound);
    }
    experiment_analysis_sha256(x, hex);
    compare_hash(r, "analysis_sha256", hex, findings, sound);
}

bool judge_can(const struct record *r) {
    return !r->drops_prompts && !r->drops_replies;
}

int judge_need(const struct record *r, const char *what, struct err *e) {
    if (judge_can(r)) return 0;
    FAIL(e, ERR_RECORD, "%s: the record keeps no %s (retain), so %s", r->folder,
         !r->drops_prompts   ? "replies"
         : !r->drops_replies ? "prompts, variables and checks"
                             : "texts",
         what);
}

int judge_trust(const struct record *r, const struct experiment *x, struct err *e) {
    struct buf findings = {0};
    bool sound = true;
    compare_hashes(r, x, &findings, &sound);
    if (!sound) {
        ERR_SET(e, ERR_RECORD,
                STR_FMT "it was edited after the run; other checks or gates are for `lacuna score "
                        "RUN --experiment FILE`",
                STR_ARG(buf_str(&findings)));
    }
    buf_free(&findings);
    return sound ? 0 : -1;
}

int judge_again(const struct record *r, const struct experiment *x, struct buf *findings,
                bool *sound, struct err *e) {
    *sound = true;
    compare_hashes(r, x, findings, sound);
    if (!judge_can(r)) return 0;
    struct check_set *patterns = check_set_open();
    struct arena *a = arena_create("judge");
    int result = 0;
    for (int64_t i = 0; i < 2 * r->trial_count && result == 0; i++) {
        const int64_t trial = i / 2;
        const struct record_outcome *o =
            i % 2 == 0 ? r->outcomes[trial] : record_get_again(r, trial);
        if (o == NULL || o->status != STATUS_OK) continue;
        struct reply reply = judge_reply_of(o);
        struct record_verdict *verdicts;
        int count;
        arena_reset(a);
        check_set_next(&patterns);
        result = judge_reply(x, patterns, &r->trials[trial], &reply, a, &verdicts, &count, e);
        if (result == 0) compare_verdicts(o, verdicts, count, findings, sound);
    }
    arena_destroy(a);
    check_set_close(patterns);
    return result;
}
