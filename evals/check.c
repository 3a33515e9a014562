#include "evals/check.h"

#include "evals/near.h"
#include "evals/pattern.h"
#include "evals/reply.h"
#include "evals/value.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ECHO_WORDS_LEAST = 3 };

struct check_set {
    struct arena *arena;
    struct pattern_set *patterns;
    struct value_rules *rules;
};

struct check {
    struct check_set *set;
    const struct experiment_constraint *constraint;
    struct value *value; // NULL: none
    const struct pattern *met, *violated, *answered;
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
    return s;
}

void check_set_close(struct check_set *s) {
    if (s == NULL) return;
    pattern_set_close(s->patterns);
    arena_destroy(s->arena);
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
    struct value_text folded;
    value_fold(text, c->constraint->ignore_case, a, &folded);
    if (trim_points(&folded) == 0)
        FAIL(e, ERR_CONFIG,
             "%s: \"" STR_FMT "\" holds nothing visible, so every reply and none would hold it; "
             "give the text that the reply must state",
             where, STR_ARG(text));
    c->value = arena_alloc(a, sizeof *c->value);
    value_compile(c->set->rules, folded.points, folded.count, a, c->value);
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

static int prepare_echoes(struct check *c, const struct variable *vars, int var_count,
                          struct err *e) {
    struct arena *a = c->set->arena;
    const char *where = arena_printf(a, "constraint \"%s\": text", c->constraint->id);
    struct str text;
    TRY(variables_replace(c->constraint->text, vars, var_count, where, a, &text, e));
    size_t sentences = 2;
    for (size_t i = 0; i < text.n; i++) sentences += ends_sentence((unsigned char)text.p[i]);
    c->echoes = arena_array(a, sentences, sizeof *c->echoes);
    add_echo(c, text, 1);
    size_t begin = 0;
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (!ends_sentence((unsigned char)text.p[i])) continue;
        if (text.p[i + 1] != ' ' && text.p[i + 1] != '\n') continue;
        add_echo(c, str_slice(text, begin, i), ECHO_WORDS_LEAST);
        begin = i + 1;
    }
    if (begin > 0) add_echo(c, str_slice(text, begin, text.n), ECHO_WORDS_LEAST);
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
    if (constraint->kind == CONSTRAINT_FORMAT) TRY(prepare_echoes(c, vars, var_count, e));
    near_compile(s->rules, constraint, vars, var_count, s->arena, &c->near);
    *out = c;
    return 0;
}

// ---- judging ----

// Byte ranges of the answer that hold a right value.
struct ranges {
    size_t (*p)[2];
    size_t n;
};

static void ranges_add(struct ranges *r, const size_t match[2], struct arena *a) {
    r->p = arena_more(a, r->p, r->n, sizeof *r->p);
    memcpy(r->p[r->n++], match, sizeof *r->p);
}

static struct str blank_ranges(struct str text, const struct ranges *r, char fill,
                               struct arena *a) {
    if (r->n == 0) return text;
    char *copy = arena_memdup(a, text.p, text.n);
    for (size_t i = 0; i < r->n; i++) memset(copy + r->p[i][0], fill, r->p[i][1] - r->p[i][0]);
    return (struct str){copy, text.n};
}

static void find_values(const struct value *v, const struct value_text *t, struct ranges *r,
                        struct arena *a) {
    size_t at = 0, match[2];
    while (value_find(v, t, at, match, &at)) ranges_add(r, match, a);
}

// All matches of a pattern; an error's name, or NULL.
static const char *find_matches(const struct pattern *p, struct str text, struct ranges *r,
                                struct arena *a) {
    for (size_t at = 0, match[2]; at <= text.n;) {
        const char *code;
        enum pattern_result result = pattern_find(p, text, at, match, &code);
        if (result == PATTERN_ERROR) return code;
        if (result == PATTERN_ABSENT) return NULL;
        ranges_add(r, match, a);
        at = match[1];
        if (match[1] > match[0]) continue;
        do at++; // behind an empty match: on at the next character
        while (at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80);
    }
    return NULL;
}

struct judgement {
    const struct check *check;
    struct str answer;
    bool finished;
    struct arena *arena;
    struct ranges right; // met by value or pattern, in the answer
    const char *by;      // of the first right value
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

// The reply must say it; what contradicts it is looked for once every right value is taken out.
static void judge_state(struct judgement *j, const struct value_text *folded) {
    const struct check *c = j->check;
    if (c->value != NULL) find_values(c->value, folded, &j->right, j->arena);
    size_t by_value = j->right.n;
    if (c->met != NULL) {
        j->error = find_matches(c->met, j->answer, &j->right, j->arena);
        if (j->error != NULL) return;
    }
    j->is_met = j->right.n > 0;
    if (j->is_met) {
        j->by = by_value > 0 ? "value" : "met";
        memcpy(j->met, j->right.p[0], sizeof j->met);
        if (by_value == 0) j->needs_end = pattern_looks_at_end(c->met, j->answer);
    }
    struct str rest = blank_ranges(j->answer, &j->right, ' ', j->arena);
    search(j, c->violated, rest, j->violated, &j->is_violated);
}

// The reply must have the shape, as it stands and also where the rule's own text is masked; the
// mask is a control character, so that an echo neither gives the shape nor vanishes from it.
static void judge_format(struct judgement *j) {
    const struct check *c = j->check;
    struct ranges echoes = {0};
    if (c->echo_count > 0) {
        struct value_text lower;
        value_fold(j->answer, true, j->arena, &lower);
        for (int i = 0; i < c->echo_count; i++)
            find_values(&c->echoes[i], &lower, &echoes, j->arena);
    }
    struct str masked = blank_ranges(j->answer, &echoes, '\x1A', j->arena);
    bool as_it_stands;
    if (!search(j, c->met, j->answer, j->met, &as_it_stands)) return;
    if (as_it_stands && !search(j, c->met, masked, j->met, &j->is_met)) return;
    j->by = "met";
    if (j->is_met) j->needs_end = pattern_looks_at_end(c->met, masked);
    search(j, c->violated, masked, j->violated, &j->is_violated);
}

static void judge_forbid(struct judgement *j) {
    const struct check *c = j->check;
    if (!search(j, c->answered, j->answer, j->met, &j->is_met)) return;
    if (!search(j, c->violated, j->answer, j->violated, &j->is_violated)) return;
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
        set_match(out, "violated", j.violated, base);
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

static int filler_pattern(const struct check *c, const struct pattern *p, const char *key,
                          struct str text, bool *matches, size_t match[2], struct err *e) {
    *matches = false;
    if (p == NULL) return 0;
    const char *code;
    enum pattern_result result = pattern_find(p, text, 0, match, &code);
    if (result == PATTERN_ERROR)
        FAIL(e, ERR_CONFIG,
             "constraint \"%s\": %s: the search of the filler (%zu bytes) ends in %s; the pattern "
             "backtracks without bound, use possessive quantifiers or atomic groups",
             c->constraint->id, key, text.n, code);
    *matches = result == PATTERN_FOUND;
    return 0;
}

int check_filler(const struct check *c, struct str text, bool *matches, size_t match[2],
                 const char **by, struct err *e) {
    *matches = false;
    *by = "value";
    if (c->constraint->kind == CONSTRAINT_STATE) {
        if (c->value != NULL) {
            struct arena *a = arena_create("filler");
            struct value_text folded;
            size_t next;
            value_fold(text, c->constraint->ignore_case, a, &folded);
            *matches = value_find(c->value, &folded, 0, match, &next);
            arena_destroy(a);
            if (*matches) return 0;
        }
        *by = "met";
        TRY(filler_pattern(c, c->met, "met", text, matches, match, e));
        if (*matches) return 0;
    }
    *by = "violated";
    return filler_pattern(c, c->violated, "violated", text, matches, match, e);
}
