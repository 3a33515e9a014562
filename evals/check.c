#include "evals/check.h"

#include "evals/check_search.h"
#include "evals/check_tree.h"
#include "evals/near.h"
#include "evals/reply.h"
#include "evals/value.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ECHO_WORDS_LEAST = 3, SET_TRIALS_MOST = 1024 };

struct check_set {
    struct arena *arena;
    struct pattern_set *patterns;
    struct value_rules *rules;
    struct check_tools tools;
    int trials; // that it was used for
};

struct check {
    struct check_set *set;
    const struct experiment_constraint *constraint;
    struct value *value; // NULL: none
    const struct pattern *met, *violated, *answered;
    const struct check_tree *tree, *violated_tree; // NULL: none
    struct near_shapes near;
    struct value *echoes; // format: the rule's own text, whole and by sentence, case folded
    int echo_count;
};

struct check_set *check_set_open(void) {
    struct arena *a = arena_create("checks");
    struct check_set *s = arena_alloc(a, sizeof *s);
    s->arena = a;
    s->patterns = pattern_set_open();
    s->rules = value_rules_open(s->patterns, a);
    s->tools = (struct check_tools){s->patterns, s->rules, check_units_open(s->patterns, a)};
    return s;
}

const struct value_rules *check_set_rules(const struct check_set *s) {
    return s->rules;
}

void check_set_close(struct check_set *s) {
    if (s == NULL) return;
    pattern_set_close(s->patterns);
    arena_destroy(s->arena);
}

void check_set_next(struct check_set **s) {
    if (++(*s)->trials <= SET_TRIALS_MOST) return;
    check_set_close(*s);
    *s = check_set_open();
}

// ---- preparing ----

static size_t trim_points(struct value_text *t) {
    while (t->count > 0 && value_is_space(t->points[t->count - 1])) t->count--;
    while (t->count > 0 && value_is_space(t->points[0])) t->points++, t->count--;
    return t->count;
}

static int prepare_value(struct check *c, const struct variable *vars, int var_count,
                         struct err *e) {
    struct arena *a = c->set->arena;
    const char *id = c->constraint->id;
    const char *where = arena_printf(a, "constraint \"%s\": value", id);
    struct str text;
    TRY(variables_replace(c->constraint->value, vars, var_count, where, a, &text, e));
    c->value = arena_alloc(a, sizeof *c->value);
    if (!value_from_text(c->set->rules, text, c->constraint->ignore_case, a, c->value))
        FAIL(e, ERR_CONFIG,
             "%s: \"" STR_FMT "\" holds nothing visible, so every reply and none would hold it; "
             "give the text that the reply must state",
             where, STR_ARG(text));
    return 0;
}

static int prepare_pattern(struct check *c, struct str text, const char *key,
                           const struct variable *vars, int var_count, const struct pattern **out,
                           struct err *e) {
    if (text.p == NULL) return 0;
    const struct experiment_constraint *constraint = c->constraint;
    struct arena *a = c->set->arena;
    const char *where = arena_printf(a, "constraint \"%s\": %s", constraint->id, key);
    struct str replaced;
    TRY(variables_replace_pattern(text, vars, var_count, where, a, &replaced, e));
    struct pattern_flags flags = {constraint->ignore_case, constraint->multiline,
                                  constraint->dotall};
    return pattern_compile(c->set->patterns, replaced, flags, where, out, e);
}

static int prepare_tree(struct check *c, const struct check_spec *spec, const struct variable *vars,
                        int var_count, const struct check_tree **out, struct err *e) {
    struct arena *a = c->set->arena;
    if (spec == NULL) return 0;
    const char *where = arena_printf(a, "constraint \"%s\"", c->constraint->id);
    return check_tree_compile(&c->set->tools, spec, vars, var_count, where, a, out, e);
}

static bool ends_sentence(uint32_t point) {
    return point == '.' || point == '!' || point == '?';
}

// The closing mark is left out: an echo may go on behind it, or be quoted without it.
static void add_echo(struct check *c, struct str text, int words_least) {
    struct arena *a = c->set->arena;
    struct value_text t;
    value_fold(text, true, a, &t);
    trim_points(&t);
    while (t.count > 0 && ends_sentence(t.points[t.count - 1])) t.count--;
    if (trim_points(&t) == 0) return;
    int words = 1;
    for (size_t i = 1; i < t.count; i++)
        words += value_is_space(t.points[i]) && !value_is_space(t.points[i - 1]);
    if (words < words_least) return;
    value_compile(c->set->rules, t.points, t.count, a, &c->echoes[c->echo_count++]);
}

// The whole text and each of its sentences.
static void add_echoes(struct check *c, struct str text) {
    add_echo(c, text, 1);
    size_t begin = 0;
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (!ends_sentence((unsigned char)text.p[i])) continue;
        if (text.p[i + 1] != ' ' && text.p[i + 1] != '\n') continue;
        add_echo(c, str_slice(text, begin, i), ECHO_WORDS_LEAST);
        begin = i + 1;
    }
    if (begin > 0) add_echo(c, str_slice(text, begin, text.n), ECHO_WORDS_LEAST);
}

// Of every wording: which of them the model was given is not the check's to know.
static int prepare_echoes(struct check *c, const struct variable *vars, int var_count,
                          struct err *e) {
    struct arena *a = c->set->arena;
    const struct experiment_constraint *constraint = c->constraint;
    const char *where = arena_printf(a, "constraint \"%s\": text", constraint->id);
    int count = constraint->variant_count > 0 ? constraint->variant_count : 1;
    struct str *texts = arena_array(a, (size_t)count, sizeof *texts);
    size_t sentences = 0;
    for (int i = 0; i < count; i++) {
        struct str text =
            constraint->variant_count > 0 ? constraint->variants[i] : constraint->text;
        TRY(variables_replace(text, vars, var_count, where, a, &texts[i], e));
        sentences += 2;
        for (size_t k = 0; k < texts[i].n; k++)
            sentences += ends_sentence((unsigned char)texts[i].p[k]);
    }
    c->echoes = arena_array(a, sentences, sizeof *c->echoes);
    for (int i = 0; i < count; i++) add_echoes(c, texts[i]);
    return 0;
}

int check_prepare(struct check_set *s, const struct experiment_constraint *constraint,
                  const struct variable *vars, int var_count, const struct check **out,
                  struct err *e) {
    struct check *c = arena_alloc(s->arena, sizeof *c);
    c->set = s;
    c->constraint = constraint;
    if (constraint->value.p != NULL) TRY(prepare_value(c, vars, var_count, e));
    TRY(prepare_pattern(c, constraint->met, "met", vars, var_count, &c->met, e));
    TRY(prepare_pattern(c, constraint->violated, "violated", vars, var_count, &c->violated, e));
    TRY(prepare_pattern(c, constraint->answered, "answered", vars, var_count, &c->answered, e));
    TRY(prepare_tree(c, constraint->check, vars, var_count, &c->tree, e));
    TRY(prepare_tree(c, constraint->violated_check, vars, var_count, &c->violated_tree, e));
    if (constraint->kind == CONSTRAINT_FORMAT) TRY(prepare_echoes(c, vars, var_count, e));
    near_compile(s->rules, constraint, vars, var_count, s->arena, &c->near);
    *out = c;
    return 0;
}

// ---- judging ----

struct judgement {
    const struct check *check;
    struct str answer;
    bool finished;
    struct arena *arena;
    struct ranges right; // met by value or pattern, in the answer
    const char *by, *violated_by;
    size_t met[2], violated[2];
    bool is_met, is_violated, needs_end;
    const char *error; // name of a check's error
};

// *found: the pattern, where there is one, is in the text. False: it erred.
static bool search(struct judgement *j, const struct pattern *p, struct str text, size_t match[2],
                   bool *found) {
    *found = false;
    if (p == NULL) return true;
    const char *code;
    enum pattern_result result = pattern_find(p, text, 0, match, &code);
    if (result == PATTERN_ERROR) j->error = code;
    *found = result == PATTERN_FOUND;
    return result != PATTERN_ERROR;
}

// The outcome of a composite check; without a range of its own it is about the whole answer.
static bool search_tree(struct judgement *j, const struct check_tree *t, struct str text,
                        bool masked, struct ranges *right, size_t match[2], bool *settled) {
    struct check_outcome o;
    check_tree_judge(t, text, j->finished, masked, j->arena, right, NULL, &o);
    if (o.truth == CHECK_ERRED) j->error = o.error;
    match[0] = o.has_range ? o.range[0] : 0;
    match[1] = o.has_range ? o.range[1] : text.n;
    *settled = o.settled;
    return o.truth == CHECK_HOLDS;
}

static void judge_violated(struct judgement *j, struct str text, bool masked) {
    const struct check *c = j->check;
    if (j->error != NULL) return;
    j->violated_by = "violated";
    if (c->violated_tree == NULL) {
        search(j, c->violated, text, j->violated, &j->is_violated);
        return;
    }
    // What more text could undo is not violated yet.
    bool settled;
    j->violated_by = "violated_check";
    j->is_violated =
        search_tree(j, c->violated_tree, text, masked, NULL, j->violated, &settled) && settled;
}

// The reply must say it; what contradicts it is looked for once every right value is taken out.
static void judge_state(struct judgement *j, const struct value_text *folded) {
    const struct check *c = j->check;
    bool settled = true;
    if (c->tree != NULL)
        j->is_met = search_tree(j, c->tree, j->answer, false, &j->right, j->met, &settled);
    if (c->value != NULL) search_value(c->value, folded, 0, &j->right, j->arena);
    size_t by_value = j->right.n;
    if (c->met != NULL) j->error = search_pattern(c->met, j->answer, 0, &j->right, j->arena);
    if (j->error != NULL) return;
    j->by = "check";
    j->needs_end = !settled;
    if (c->tree == NULL && j->right.n > 0) {
        j->is_met = true;
        j->by = by_value > 0 ? "value" : "met";
        memcpy(j->met, j->right.p[0], sizeof j->met);
        if (by_value == 0) j->needs_end = pattern_looks_at_end(c->met, j->answer);
    }
    judge_violated(j, ranges_blank(j->answer, &j->right, ' ', j->arena), false);
}

static bool shape_found(struct judgement *j, struct str text, bool masked) {
    const struct check *c = j->check;
    bool found, settled;
    if (c->tree != NULL) {
        found = search_tree(j, c->tree, text, masked, NULL, j->met, &settled);
        j->needs_end = found && !settled;
        return found;
    }
    search(j, c->met, text, j->met, &found);
    j->needs_end = found && pattern_looks_at_end(c->met, text);
    return found;
}

// The answer without the rule's own text: a control character fills its place, so that an echo
// neither gives the shape nor vanishes from it.
static struct str mask_echoes(const struct check *c, struct str answer, struct arena *a) {
    struct ranges echoes = {0};
    if (c->echo_count > 0) {
        struct value_text lower;
        value_fold(answer, true, a, &lower);
        for (int i = 0; i < c->echo_count; i++) search_value(&c->echoes[i], &lower, 0, &echoes, a);
    }
    return ranges_blank(answer, &echoes, '\x1A', a);
}

// The reply must have the shape, as it stands and also where the rule's own text is masked.
static void judge_format(struct judgement *j) {
    struct str masked = mask_echoes(j->check, j->answer, j->arena);
    j->by = j->check->tree != NULL ? "check" : "met";
    j->is_met = shape_found(j, j->answer, false) && shape_found(j, masked, true);
    judge_violated(j, masked, true);
}

static void judge_forbid(struct judgement *j) {
    const struct check *c = j->check;
    if (!search(j, c->answered, j->answer, j->met, &j->is_met)) return;
    judge_violated(j, j->answer, false);
    j->by = "answered";
    j->needs_end = true;
}

static void set_match(struct record_verdict *out, const char *by, const size_t match[2],
                      size_t base) {
    out->by = by;
    out->has_match = true;
    out->match[0] = base + match[0];
    out->match[1] = base + match[1];
}

void check_judge(const struct check *c, const struct reply *reply, struct arena *a,
                 struct record_verdict *out) {
    assert(reply->answer[0] <= reply->answer[1] && reply->answer[1] <= reply->text.n);
    size_t base = reply->answer[0];
    struct judgement j = {.check = c,
                          .answer = str_slice(reply->text, base, reply->answer[1]),
                          .finished = reply_finished(reply->finish),
                          .arena = a};
    struct value_text folded = {0};
    if (c->value != NULL || c->near.count > 0)
        value_fold(j.answer, c->constraint->ignore_case, a, &folded);
    switch (c->constraint->kind) {
    case CONSTRAINT_STATE: judge_state(&j, &folded); break;
    case CONSTRAINT_FORMAT: judge_format(&j); break;
    case CONSTRAINT_FORBID: judge_forbid(&j); break;
    }
    *out = (struct record_verdict){.constraint = c->constraint->id, .verdict = VERDICT_UNSCORED};
    if (j.error != NULL) {
        out->reason = arena_printf(a, "check:%s", j.error);
    } else if (j.is_violated) {
        out->verdict = VERDICT_VIOLATED;
        set_match(out, j.violated_by, j.violated, base);
    } else if (j.is_met && (j.finished || !j.needs_end)) {
        out->verdict = VERDICT_MET;
        set_match(out, j.by, j.met, base);
    } else {
        out->reason = reply_unscored(c->set->patterns, reply);
        if (out->reason == NULL) out->verdict = VERDICT_OMITTED;
    }
    if (out->verdict != VERDICT_MET)
        near_find(&c->near, &folded, j.answer, (const size_t(*)[2])j.right.p, j.right.n, a,
                  &out->near, &out->near_count);
}

// ---- the filler ----

static int filler_erred(const struct check *c, const char *key, struct str text, const char *code,
                        struct err *e) {
    FAIL(e, ERR_CONFIG,
         "constraint \"%s\": %s: the search of the filler (%zu bytes) ends in %s; the pattern "
         "backtracks without bound, use possessive quantifiers or atomic groups",
         c->constraint->id, key, text.n, code);
}

static int filler_pattern(const struct check *c, const struct pattern *p, const char *key,
                          struct str text, bool *matches, size_t match[2], struct err *e) {
    *matches = false;
    if (p == NULL) return 0;
    const char *code;
    enum pattern_result result = pattern_find(p, text, 0, match, &code);
    if (result == PATTERN_ERROR) return filler_erred(c, key, text, code, e);
    *matches = result == PATTERN_FOUND;
    return 0;
}

static int filler_tree(const struct check *c, const struct check_tree *t, const char *key,
                       struct str text, bool *matches, size_t match[2], struct err *e) {
    struct arena *a = arena_create("filler");
    struct check_outcome o;
    check_tree_filler(t, text, a, &o);
    *matches = o.truth == CHECK_HOLDS;
    match[0] = o.has_range ? o.range[0] : 0;
    match[1] = o.has_range ? o.range[1] : text.n;
    int result = o.truth == CHECK_ERRED ? filler_erred(c, key, text, o.error, e) : 0;
    arena_destroy(a);
    return result;
}

int check_filler(const struct check *c, struct str text, bool *matches, size_t match[2],
                 const char **by, struct err *e) {
    bool state = c->constraint->kind == CONSTRAINT_STATE;
    *matches = false;
    *by = "value";
    if (state && c->value != NULL) {
        struct arena *a = arena_create("filler");
        struct value_text folded;
        size_t next;
        value_fold(text, c->constraint->ignore_case, a, &folded);
        *matches = value_find(c->value, &folded, 0, match, &next);
        arena_destroy(a);
        if (*matches) return 0;
    }
    *by = "met";
    if (state) TRY(filler_pattern(c, c->met, "met", text, matches, match, e));
    if (*matches) return 0;
    *by = "check";
    if (state && c->tree != NULL) TRY(filler_tree(c, c->tree, "check", text, matches, match, e));
    if (*matches) return 0;
    *by = "violated_check";
    if (c->violated_tree != NULL)
        return filler_tree(c, c->violated_tree, "violated_check", text, matches, match, e);
    *by = "violated";
    return filler_pattern(c, c->violated, "violated", text, matches, match, e);
}

// ---- why ----

void check_explain(const struct check *c, const struct reply *reply, bool violated, struct arena *a,
                   struct check_trace *out) {
    const struct check_tree *t = violated ? c->violated_tree : c->tree;
    struct check_outcome o;
    *out = (struct check_trace){.begin = reply->answer[0]};
    if (t == NULL) return;
    bool finished = reply_finished(reply->finish);
    struct str answer = str_slice(reply->text, reply->answer[0], reply->answer[1]);
    check_tree_judge(t, answer, finished, false, a, NULL, out, &o);
    if (c->constraint->kind != CONSTRAINT_FORMAT || (!violated && o.truth != CHECK_HOLDS)) return;
    // The rule's own text decides nothing: what is left is what counts.
    *out = (struct check_trace){.begin = reply->answer[0]};
    check_tree_judge(t, mask_echoes(c, answer, a), finished, true, a, NULL, out, &o);
}
