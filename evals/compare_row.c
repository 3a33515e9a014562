// One paired comparison.
#include "evals/compare.h"

#include "evals/stats.h"

// Normal quantiles: 0.975, and with 0.8 added the number of standard errors of 80 % power.
#define STANDARD_ERRORS (STATS_Z95 + 0.8416212335729143)

struct repeat_sum {
    int pairs, change; // change: now met minus then met
};

static bool is_met(const int *columns, int count, int constraint, const struct baseline_trial *t) {
    if (constraint >= 0) return baseline_met(t, columns[constraint]);
    for (int i = 0; i < count; i++)
        if (!baseline_met(t, columns[i])) return false;
    return true;
}

static bool is_unscored(const int *columns, int count, int constraint,
                        const struct baseline_trial *t) {
    if (constraint >= 0) return t->verdicts[columns[constraint]] == 'u';
    for (int i = 0; i < count; i++)
        if (t->verdicts[columns[i]] == 'u') return true;
    return false;
}

static void add_pair(const struct comparison *c, const struct comparison_pair *p, int constraint,
                     struct repeat_sum *sum, struct comparison_row *out) {
    int n = c->constraint_count;
    bool before = is_met(c->columns_before, n, constraint, p->before);
    bool now = is_met(c->columns_now, n, constraint, p->now);
    out->pairs++;
    out->identical += p->identical;
    out->met_before += before;
    out->met_now += now;
    out->lost += before && !now;
    out->won += now && !before;
    out->unscored_before += is_unscored(c->columns_before, n, constraint, p->before);
    out->unscored_now += is_unscored(c->columns_now, n, constraint, p->now);
    sum->pairs++;
    sum->change += now - before;
}

void compare_row(const struct comparison *c, const struct compare_selection *s, const char *stream,
                 uint64_t seed, struct arena *a, struct comparison_row *out) {
    int repeats = 0;
    for (int64_t i = 0; i < c->pair_count; i++)
        if (c->pairs[i].now->repeat >= repeats) repeats = c->pairs[i].now->repeat + 1;
    struct repeat_sum *sums = arena_array(a, (size_t)repeats + 1, sizeof *sums);
    double *d = arena_array(a, (size_t)repeats + 1, sizeof *d);
    *out = (struct comparison_row){.p = 1, .p_holm = 1, .detectable = 2};
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->before->verdicts == NULL || p->now->verdicts == NULL) continue;
        if (s->selects(s->context, p)) add_pair(c, p, s->constraint, &sums[p->now->repeat], out);
    }
    double total = 0;
    for (int r = 0; r < repeats; r++) {
        if (sums[r].pairs == 0) continue;
        d[out->repeats] = (double)sums[r].change / sums[r].pairs;
        total += d[out->repeats++];
    }
    if (out->repeats == 0) return;
    out->effect = total / out->repeats;
    out->p = stats_sign_flip(d, out->repeats, seed, stream, &out->nonzero);
    if (out->repeats < STATS_REPEATS_LEAST) return;
    struct stats_interval i = stats_paired(d, out->repeats);
    out->low = i.low;
    out->high = i.high;
    out->has_interval = true;
    out->detectable = (i.high - i.low) / 2 / STATS_Z95 * STANDARD_ERRORS;
}
