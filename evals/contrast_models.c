#include "evals/contrast_models.h"

#include "evals/contrast_words.h"
#include "evals/cube.h"
#include "evals/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- are they pairs? ----

static const char *behind_model(const struct record_trial *t) {
    return t->key + strlen(t->model);
}

static int by_cell(const void *left, const void *right) {
    const struct record_trial *a = *(const struct record_trial *const *)left;
    const struct record_trial *b = *(const struct record_trial *const *)right;
    return strcmp(behind_model(a), behind_model(b));
}

static const struct record_trial **placed_trials(const struct tally *t, int model, struct arena *a,
                                                 int64_t *count) {
    const struct record_trial **list = arena_array(a, (size_t)t->trial_count + 1, sizeof *list);
    *count = 0;
    for (int64_t i = 0; i < t->trial_count; i++)
        if (t->trials[i].model == model && t->trials[i].arm == ARM_PLACED)
            list[(*count)++] = t->trials[i].planned;
    qsort(list, (size_t)*count, sizeof *list, by_cell);
    return list;
}

// Equal, and known.
static bool same(const char *a, const char *b) {
    return a[0] != '\0' && strcmp(a, b) == 0;
}

// Equal messages, each in its model's template; older records know equal prompts only.
static bool same_text(const struct record_trial *a, const struct record_trial *b) {
    return same(a->text_sha256, b->text_sha256) || same(a->prompt_sha256, b->prompt_sha256);
}

enum summary_pairing contrast_pairing(const struct record_trial *a, const struct record_trial *b) {
    if (same(a->ids_sha256, b->ids_sha256)) return PAIRING_IDS;
    return same_text(a, b) ? PAIRING_TEXT : PAIRING_NONE;
}

static enum summary_pairing pairing_of(const struct tally *t, int first, int second,
                                       struct arena *a) {
    int64_t n, m, i = 0, k = 0, both = 0;
    const struct record_trial **x = placed_trials(t, first, a, &n);
    const struct record_trial **y = placed_trials(t, second, a, &m);
    bool ids = true, text = true;
    while (i < n && k < m) {
        int order = by_cell(&x[i], &y[k]);
        if (order == 0) {
            const enum summary_pairing pairing = contrast_pairing(x[i], y[k]);
            ids = ids && pairing == PAIRING_IDS;
            text = text && pairing != PAIRING_NONE;
            both++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    return both == 0 ? PAIRING_NONE : ids ? PAIRING_IDS : text ? PAIRING_TEXT : PAIRING_NONE;
}

// ---- one contrast ----

struct sides {
    struct cube first, second;
    struct cube_sum sum; // over the columns that both have
    enum summary_pairing pairing;
};

static void take_sides(const struct tally *t, int first, int second, int constraint,
                       struct arena *a, struct sides *s) {
    size_t most = (size_t)t->column_count + 1;
    int *columns = arena_array(a, most, sizeof *columns), count = 0;
    double *weights = arena_array(a, most, sizeof *weights);
    cube_fill(&s->first, t, first, constraint, a);
    cube_fill(&s->second, t, second, constraint, a);
    for (int c = 0; c < t->column_count; c++)
        if (cube_has_trials(&s->first, c) && cube_has_trials(&s->second, c)) columns[count++] = c;
    for (int c = 0; c < count; c++) weights[c] = 1.0 / count;
    s->sum = (struct cube_sum){columns, weights, count, 0, 0};
}

static void test_pairs(const struct sides *s, const char *stream, struct arena *a,
                       struct summary_contrast *c) {
    const struct tally *t = s->first.tally;
    double *d = arena_array(a, (size_t)t->repeats + 1, sizeof *d), x, y;
    for (int r = 0; r < t->repeats; r++)
        if (cube_value(&s->first, &s->sum, r, &x) && cube_value(&s->second, &s->sum, r, &y))
            d[c->repeats++] = x - y;
    c->defined = c->repeats > 0;
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    if (!c->defined) return;
    c->effect = stats_mean(d, c->repeats);
    c->p = stats_sign_flip(d, c->repeats, t->x->seed, stream, &c->nonzero);
    contrast_take_interval(c, stats_paired(d, c->repeats));
}

static void test_groups(const struct sides *s, const char *stream, struct arena *a,
                        struct summary_contrast *c) {
    const struct tally *t = s->first.tally;
    double *x = arena_array(a, (size_t)t->repeats + 1, sizeof *x);
    double *y = arena_array(a, (size_t)t->repeats + 1, sizeof *y);
    int n = cube_values(&s->first, &s->sum, x), m = cube_values(&s->second, &s->sum, y);
    c->repeats = n < m ? n : m;
    c->defined = c->repeats > 0;
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    if (!c->defined) return;
    double p = stats_mean(x, n), q = stats_mean(y, m);
    double most = (double)s->sum.count * (s->sum.last_length - s->sum.first_length) * t->samples;
    c->effect = p - q;
    c->p = stats_two(x, n, y, m, t->x->seed, stream);
    contrast_take_interval(
        c, stats_two_difference(p, stats_shares(x, n, most), q, stats_shares(y, m, most)));
}

static double unscored_share(const struct cube *g, const struct cube_sum *s) {
    double share = 0;
    for (int k = 0; k < s->count; k++)
        share += cube_unscored(g, s->columns[k], s->first_length, s->last_length) / s->count;
    return share;
}

static const char *seen_words(const struct summary_contrast *c, struct arena *a) {
    static const char *const pairings[] = {
        [PAIRING_NONE] = "unpaired, as the two get different prompts: permutation test",
        [PAIRING_TEXT] = "paired by repeat, equal text",
        [PAIRING_IDS] = "paired by repeat, equal token ids"};
    return arena_printf(a, "%s is met %.1f points %s often by %s than by %s at %s, %s",
                        contrast_what(c), 100 * fabs(c->effect), c->effect < 0 ? "less" : "more",
                        c->model, c->other, c->scope, pairings[c->pairing]);
}

static void add_one(struct contrast_list *f, struct sides *s, int first_length, int last_length) {
    const struct tally *t = s->first.tally;
    const struct experiment *x = t->x;
    struct contrast_draft p = {
        .contrast = {.model = x->models[s->first.model].id,
                     .other = x->models[s->second.model].id,
                     .constraint = experiment_constraint_id(x, s->first.constraint),
                     .placement = "all rows",
                     .name = "model_against_model",
                     .pairing = s->pairing,
                     .p = 1,
                     .p_holm = 1}};
    struct summary_contrast *c = &p.contrast;
    c->scope = contrast_scope(t, first_length, last_length, f->arena);
    s->sum.first_length = first_length;
    s->sum.last_length = last_length;
    const char *stream =
        arena_printf(f->arena, "models/%s/%s/%s/%s", c->model, c->other, c->constraint, c->scope);
    (s->pairing == PAIRING_NONE ? test_groups : test_pairs)(s, stream, f->arena, c);
    if (!c->defined) return;
    p.apart = fabs(unscored_share(&s->first, &s->sum) - unscored_share(&s->second, &s->sum));
    p.seen = seen_words(c, f->arena);
    contrast_add(f, &p);
}

static void add_constraint(struct contrast_list *f, const struct tally *t, int first, int second,
                           int constraint, enum summary_pairing pairing) {
    struct sides s = {.pairing = pairing};
    take_sides(t, first, second, constraint, f->arena, &s);
    if (s.sum.count == 0) return;
    int lengths = t->length_count;
    for (int l = 0; l < lengths && lengths > 1; l++) add_one(f, &s, l, l + 1);
    add_one(f, &s, 0, lengths);
}

// ---- the family ----

void contrast_models(struct tally *t, struct arena *a, struct summary_contrast **out, int *count) {
    struct contrast_list f = {.arena = a};
    const int models = t->x->model_count, constraints = t->x->constraint_count;
    for (int first = 0; first < models; first++)
        for (int second = first + 1; second < models; second++) {
            enum summary_pairing pairing = pairing_of(t, first, second, a);
            for (int c = 0; c < constraints; c++) add_constraint(&f, t, first, second, c, pairing);
            if (constraints > 1)
                add_constraint(&f, t, first, second, TALLY_ALL_CONSTRAINTS, pairing);
        }
    contrast_correct(&f, false, "models");
    *count = contrast_finish(&f, out);
}
