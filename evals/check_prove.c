// Checks prove themselves before a run: on the examples that they ship, on an empty reply, on a
// long one, and on the filler.
#include "evals/check.h"

#include <assert.h>
#include <string.h>

enum { SHOWN_BYTES = 120, LONG_BYTES = 4000 /* about a thousand tokens */ };

static void judge_text(const struct check *c, struct str text, struct arena *a,
                       struct record_verdict *out) {
    struct reply reply = {.text = text, .answer = {0, text.n}, .finish = "stop"};
    check_judge(c, &reply, a, out);
}

static bool check_erred(const struct record_verdict *v) {
    return v->reason != NULL && strncmp(v->reason, "check:", 6) == 0;
}

static const char *shown(struct str text, struct arena *a) {
    struct str head = str_head(text, SHOWN_BYTES);
    return arena_printf(a, "\"" STR_FMT "%s\"", STR_ARG(head), head.n < text.n ? "..." : "");
}

// "violated by `violated` at "48213"", "unscored (empty)".
static const char *verdict_words(const struct record_verdict *v, struct str text, struct arena *a) {
    if (v->reason != NULL) return arena_printf(a, "%s (%s)", verdict_name(v->verdict), v->reason);
    if (!v->has_match) return verdict_name(v->verdict);
    return arena_printf(a, "%s by `%s` at %s", verdict_name(v->verdict), v->by,
                        shown(str_slice(text, v->match[0], v->match[1]), a));
}

enum expected { EXPECT_MET, EXPECT_NOT_MET, EXPECT_VIOLATED };

static int prove_list(const struct check *c, const struct experiment_constraint *constraint,
                      enum expected expected, const struct str *examples, int count,
                      const struct variable *vars, int var_count, struct arena *a, struct err *e) {
    static const char *const key[] = {"met", "not", "violated"};
    static const char *const wanted[] = {"met", "not met", "violated"};
    for (int i = 0; i < count; i++) {
        const char *where =
            arena_printf(a, "constraint \"%s\": examples.%s[%d]", constraint->id, key[expected], i);
        struct str text;
        TRY(variables_replace(examples[i], vars, var_count, where, a, &text, e));
        struct record_verdict v;
        judge_text(c, text, a, &v);
        bool right = expected == EXPECT_MET        ? v.verdict == VERDICT_MET
                     : expected == EXPECT_VIOLATED ? v.verdict == VERDICT_VIOLATED
                                                   : v.verdict != VERDICT_MET && !check_erred(&v);
        if (!right)
            FAIL(e, ERR_CONFIG,
                 "%s: %s should be %s, but the check says %s; correct the check or the example",
                 where, shown(text, a), wanted[expected], verdict_words(&v, text, a));
    }
    return 0;
}

// Words, digits, long runs of one letter and of spaces: where a pattern that backtracks without
// bound meets its limits.
static struct str long_text(struct arena *a) {
    struct buf b = {0};
    for (int i = 0; b.n < LONG_BYTES; i++) {
        buf_printf(&b, "The parcel %d waits, as agreed; see line %d.\n", i * 7919 % 100000, i);
        if (i % 50 != 49) continue;
        for (int k = 0; k < 60; k++) buf_add_char(&b, (char)('a' + i / 50 % 26));
        buf_add_c(&b, "!                                        \n");
    }
    return buf_take(&b, a);
}

// Saying the rule again does not give a reply the rule's shape.
static int prove_echo(const struct check *c, const struct experiment_constraint *x,
                      struct str wording, const struct variable *vars, int var_count,
                      struct arena *a, struct err *e) {
    struct record_verdict v;
    struct str echo;
    if (x->kind != CONSTRAINT_FORMAT) return 0;
    TRY(variables_replace(wording, vars, var_count, x->id, a, &echo, e));
    judge_text(c, echo, a, &v);
    if (v.verdict != VERDICT_MET) return 0;
    FAIL(e, ERR_CONFIG,
         "constraint \"%s\": repeating the rule's own text would be met by `%s`; ask for a shape "
         "that the rule itself does not have",
         x->id, v.by);
}

static int prove_all(const struct check *c, const struct experiment_constraint *x,
                     const struct variable *vars, int var_count, struct arena *a, struct err *e) {
    TRY(prove_list(c, x, EXPECT_MET, x->example_met, x->example_met_count, vars, var_count, a, e));
    TRY(prove_list(c, x, EXPECT_NOT_MET, x->example_not, x->example_not_count, vars, var_count, a,
                   e));
    TRY(prove_list(c, x, EXPECT_VIOLATED, x->example_violated, x->example_violated_count, vars,
                   var_count, a, e));
    struct record_verdict v;
    judge_text(c, STR(""), a, &v);
    if (v.verdict == VERDICT_MET)
        FAIL(e, ERR_CONFIG,
             "constraint \"%s\": an empty reply would be met by `%s`; the check must ask for "
             "something",
             x->id, v.by);
    if (check_erred(&v))
        FAIL(e, ERR_CONFIG, "constraint \"%s\": on an empty reply a check ends in %s", x->id,
             v.reason);
    TRY(prove_echo(c, x, x->text, vars, var_count, a, e));
    for (int i = 1; i < x->variant_count; i++)
        TRY(prove_echo(c, x, x->variants[i], vars, var_count, a, e));
    judge_text(c, long_text(a), a, &v);
    if (check_erred(&v))
        FAIL(e, ERR_CONFIG,
             "constraint \"%s\": on a text of %d bytes a check ends in %s; the pattern backtracks "
             "without bound, use possessive quantifiers or atomic groups",
             x->id, LONG_BYTES, v.reason);
    return 0;
}

int check_prove(const struct check *c, const struct experiment_constraint *constraint,
                const struct variable *vars, int var_count, struct err *e) {
    struct arena *a = arena_create("proof");
    int result = prove_all(c, constraint, vars, var_count, a, e);
    arena_destroy(a);
    return result;
}
