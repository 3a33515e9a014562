// What is drawn for a repeat: variables, texts, streams. Nothing here depends on models, lengths,
// placements or other repeats.
#include "evals/plan_internal.h"

#include "evals/words.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define DRAWS_MOST 1000

struct rng repeat_stream(const struct experiment *x, const struct repeat_draw *d,
                         const char *name) {
    return rng_open(x->seed, d->scope, name);
}

enum filler_words words_of(const struct experiment *x) {
    return x->filler.kind == FILLER_COMMON_WORDS ? FILLER_WORDS_COMMON : FILLER_WORDS_FREQUENT;
}

static const char *scope_make(int repeat, const char *case_id, struct arena *a) {
    return case_id != NULL ? arena_printf(a, "case %s", case_id)
                           : arena_printf(a, "repeat %d", repeat);
}

struct rng plan_sampling_stream(const struct experiment *x, const struct record_trial *t) {
    struct arena *a = arena_create("stream");
    struct rng r = rng_open(x->seed, scope_make(t->repeat, t->case_id, a),
                            arena_printf(a, "sample %d", t->sample));
    arena_destroy(a);
    return r;
}

struct reasoning_tags plan_reasoning_tags(const struct experiment_model *m,
                                          const struct record_trial *t) {
    struct reasoning_tags tags = m->reasoning;
    tags.opened = t->reasoning_opened;
    return tags;
}

// ---- values ----

static struct str digits_draw(const struct experiment_variable *v, struct rng *r, struct arena *a) {
    static const uint32_t zero[] = {'0', 0x0660, 0x06F0, 0x0966, 0xFF10}; // by script
    char *p = arena_alloc(a, 4 * (size_t)v->count + 1);
    size_t n = 0;
    for (int i = 0; i < v->count; i++)
        n += utf8_encode(zero[v->script] + (uint32_t)rng_below(r, 10), p + n);
    return (struct str){p, n};
}

struct str value_draw(const struct experiment_variable *v, struct rng *r, struct arena *a) {
    switch (v->kind) {
    case VARIABLE_CHOICE: return v->choices[rng_below(r, (uint64_t)v->choice_count)];
    case VARIABLE_NUMBER:
        return str_from(arena_printf(
            a, "%" PRId64, v->least + (int64_t)rng_below(r, (uint64_t)(v->most - v->least) + 1)));
    case VARIABLE_WORDS: {
        const char *adjective = words_draw(WORDS_ADJECTIVE, r);
        return str_from(arena_printf(a, "%s-%s", adjective, words_draw(WORDS_NOUN, r)));
    }
    case VARIABLE_UUID: {
        char text[RNG_UUID_SIZE];
        rng_uuid(r, text);
        return str_from(arena_strdup(a, text));
    }
    case VARIABLE_DIGITS: return digits_draw(v, r, a);
    case VARIABLE_FILLER:
    case VARIABLE_LETTERS: break;
    }
    char *p = arena_alloc(a, (size_t)v->count + 1);
    for (int i = 0; i < v->count; i++) p[i] = (char)('A' + rng_below(r, 26));
    return (struct str){p, (size_t)v->count};
}

bool value_used(const struct repeat_draw *d, struct str value) {
    for (int i = 0; i < d->var_count; i++)
        if (str_equal(d->vars[i].value, value)) return true;
    return false;
}

// A value that no variable before it in the file has; where there is none (a short list, very few
// digits), equal values stay.
static struct str value_choose(const struct experiment *x, const struct repeat_draw *d,
                               const char *stream, const struct experiment_variable *v,
                               struct arena *a) {
    struct rng r = repeat_stream(x, d, stream);
    struct str value = value_draw(v, &r, a);
    for (int i = 0; i < DRAWS_MOST && value_used(d, value); i++) value = value_draw(v, &r, a);
    return value;
}

// ---- columns that a constraint uses ----

struct uses {
    const struct case_table *cases;
    bool *used; // [column]
};

static int see_name(void *context, struct str name, struct err *e) {
    (void)e;
    struct uses *u = context;
    for (int i = 0; i < u->cases->column_count; i++)
        if (str_equal_c(name, u->cases->columns[i])) u->used[i] = true;
    return 0;
}

static int see_tree_text(void *context, const char *where, struct str text, bool pattern,
                         struct err *e) {
    return variables_each(text, pattern, where, see_name, context, e);
}

static int uses_find(const struct experiment_constraint *c, struct uses *u, struct err *e) {
    const struct str patterns[] = {c->met, c->violated, c->answered};
    TRY(variables_each(c->text, false, c->id, see_name, u, e));
    for (int i = 1; i < c->variant_count; i++)
        TRY(variables_each(c->variants[i], false, c->id, see_name, u, e));
    if (c->value.p != NULL) TRY(variables_each(c->value, false, c->id, see_name, u, e));
    for (int i = 0; i < 3; i++)
        if (patterns[i].p != NULL) TRY(variables_each(patterns[i], true, c->id, see_name, u, e));
    TRY(check_spec_each(c->check, see_tree_text, u, e));
    return check_spec_each(c->violated_check, see_tree_text, u, e);
}

// ---- the draw ----

static void var_add(struct repeat_draw *d, int constraint, const char *id, const char *name,
                    struct str value) {
    d->vars[d->var_count++] = (struct record_var){id, name, value};
    d->known[constraint][d->known_count[constraint]++] = (struct variable){name, value};
}

// The wording of a constraint in a repeat. Repeats come in blocks that have each wording once, in
// an order drawn for the block; a case draws for itself, as other cases may be put before it.
static int variant_draw(const struct experiment *x, const struct repeat_draw *d,
                        const struct experiment_constraint *c, struct arena *a) {
    const int n = c->variant_count;
    const char *name = arena_printf(a, "variants %s", c->id);
    if (n < 2) return 0;
    if (d->case_id != NULL) {
        struct rng r = repeat_stream(x, d, name);
        return (int)rng_below(&r, (uint64_t)n);
    }
    const int first = d->index - d->index % n;
    struct rng r =
        rng_open(x->seed, arena_printf(a, "repeats %d to %d", first, first + n - 1), name);
    int *order = arena_array(a, (size_t)n, sizeof *order);
    for (int i = 0; i < n; i++) {
        int k = (int)rng_below(&r, (uint64_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    return order[d->index - first];
}

static int constraint_draw(const struct experiment *x, const struct case_table *cases,
                           const struct case_row *row, int index, struct arena *plan_arena,
                           struct arena *a, struct repeat_draw *d, struct err *e) {
    const struct experiment_constraint *c = &x->constraints[index];
    int most = c->var_count + x->var_count + cases->column_count;
    d->known[index] = arena_array(a, (size_t)most + 1, sizeof *d->known[index]);
    for (int i = 0; i < c->var_count; i++)
        var_add(d, index, c->id, c->vars[i].name,
                value_choose(x, d, arena_printf(a, "vars %s.%s", c->id, c->vars[i].name),
                             &c->vars[i], plan_arena));
    for (int i = 0; i < x->var_count; i++)
        d->known[index][d->known_count[index]++] =
            (struct variable){x->vars[i].name, d->vars[i].value};
    struct uses u = {cases, arena_array(a, (size_t)cases->column_count + 1, sizeof(bool))};
    TRY(uses_find(c, &u, e));
    for (int i = 0; i < cases->column_count; i++)
        if (u.used[i]) var_add(d, index, c->id, cases->columns[i], row->values[i]);
    char where[256];
    snprintf(where, sizeof where, "constraint '%s'", c->id);
    const int wordings = c->variant_count > 0 ? c->variant_count : 1;
    d->wordings[index] = arena_array(a, (size_t)wordings, sizeof *d->wordings[index]);
    for (int i = 0; i < wordings; i++)
        TRY(variables_replace(c->variant_count > 0 ? c->variants[i] : c->text, d->known[index],
                              d->known_count[index], where, plan_arena, &d->wordings[index][i], e));
    d->variant[index] = variant_draw(x, d, c, a);
    d->texts[index] = d->wordings[index][d->variant[index]];
    return 0;
}

// The experiment's own variables, and the answers of a filler of words.
static void shared_draw(const struct experiment *x, struct repeat_draw *d, struct arena *plan_arena,
                        struct arena *a) {
    struct str answers[FILLER_ANSWERS_MOST];
    int answer = 0;
    if (x->filler.kind == FILLER_COMMON_WORDS || x->filler.kind == FILLER_FREQUENT_WORDS)
        filler_words_answers(words_of(x), repeat_stream(x, d, "filler"), plan_arena, answers);
    for (int i = 0; i < x->var_count; i++) {
        const struct experiment_variable *v = &x->vars[i];
        const char *stream = arena_printf(a, "shared %s", v->name);
        struct str value = v->kind == VARIABLE_FILLER ? answers[answer++]
                                                      : value_choose(x, d, stream, v, plan_arena);
        d->vars[d->var_count++] = (struct record_var){RECORD_SHARED_VARS, v->name, value};
    }
}

int repeat_draw(const struct experiment *x, const struct case_table *cases, int index,
                struct arena *plan_arena, struct arena *a, struct repeat_draw *out, struct err *e) {
    const struct case_row *row = cases->row_count > 0 ? &cases->rows[index] : NULL;
    *out = (struct repeat_draw){.index = index};
    if (row != NULL) out->case_id = arena_strdup(plan_arena, row->id);
    out->scope = scope_make(index, out->case_id, a);
    size_t constraints = (size_t)x->constraint_count, vars = (size_t)x->var_count;
    for (size_t i = 0; i < constraints; i++)
        vars += (size_t)x->constraints[i].var_count + (size_t)cases->column_count;
    out->vars = arena_array(plan_arena, vars + 1, sizeof *out->vars);
    out->known = arena_array(a, constraints + 1, sizeof *out->known);
    out->known_count = arena_array(a, constraints + 1, sizeof *out->known_count);
    out->texts = arena_array(a, constraints + 1, sizeof *out->texts);
    out->wordings = arena_array(a, constraints + 1, sizeof *out->wordings);
    out->variant = arena_array(a, constraints + 1, sizeof *out->variant);
    shared_draw(x, out, plan_arena, a);
    for (int i = 0; i < x->constraint_count; i++)
        TRY(constraint_draw(x, cases, row, i, plan_arena, a, out, e));
    return messages_draw(x, cases, row, a, out, e);
}
