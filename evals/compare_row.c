// One paired comparison.
#include "evals/compare.h"

#include "evals/stats.h"

struct repeat_sum {
    int pairs, change; // change: now met minus then met
};

// What both sides judge of a pair: one constraint, or all of them (-1).
struct outcome {
    bool any, met_before, met_now, unscored_before, unscored_now;
};

static struct outcome outcome_of(const struct comparison *c, const struct comparison_pair *p,
                                 int constraint) {
    struct outcome o = {.met_before = true, .met_now = true};
    for (int i = 0; i < c->constraint_count; i++) {
        int before = c->columns_before[i], now = c->columns_now[i];
        if (constraint >= 0 && i != constraint) continue;
        if (!baseline_judged(p->before, before) || !baseline_judged(p->now, now)) continue;
        enum verdict then = baseline_verdict(p->before, before);
        enum verdict is = baseline_verdict(p->now, now);
        o.any = true;
        o.met_before &= then == VERDICT_MET;
        o.met_now &= is == VERDICT_MET;
        o.unscored_before |= then == VERDICT_UNSCORED;
        o.unscored_now |= is == VERDICT_UNSCORED;
    }
    return o;
}

static void add_pair(const struct comparison *c, const struct comparison_pair *p, int constraint,
                     struct repeat_sum *sum, struct comparison_row *out) {
    struct outcome o = outcome_of(c, p, constraint);
    if (!o.any) return;
    out->pairs++;
    out->identical += p->identical;
    out->met_before += o.met_before;
    out->met_now += o.met_now;
    out->lost += o.met_before && !o.met_now;
    out->won += o.met_now && !o.met_before;
    out->unscored_before += o.unscored_before;
    out->unscored_now += o.unscored_now;
    sum->pairs++;
    sum->change += o.met_now - o.met_before;
}

void compare_row(const struct comparison *c, const struct compare_selection *s, const char *stream,
                 uint64_t seed, struct arena *a, struct comparison_row *out) {
    int repeats = 0;
    for (int64_t i = 0; i < c->pair_count; i++)
        if (c->pairs[i].now->repeat >= repeats) repeats = c->pairs[i].now->repeat + 1;
    struct repeat_sum *sums = arena_array(a, (size_t)repeats + 1, sizeof *sums);
    double *d = arena_array(a, (size_t)repeats + 1, sizeof *d);
    *out = (struct comparison_row){.p = 1, .p_holm = 1, .largest = 1};
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
    out->largest = i.high > -i.low ? i.high : -i.low;
}
