// Gates before a run: can they pass at all, and how probably when nothing is wrong?
#include "evals/gates_internal.h"

#include "engine/base/file.h"

#include <string.h>

// "Nothing is wrong" for a difference: there is none, and one repeat in ten changes by chance.
#define CHANCE_SHARE 0.1
#define WEIGHT_LEAST 1e-9

// One gate over n repeats.
struct outlook {
    const struct experiment_gate *gate;
    enum gate_metric metric;
    int n;
    double *scratch; // [n]
};

// The interval of n repeats of which `plus` are 1, `minus` are -1 and the rest 0.
static struct stats_interval difference_interval(const struct outlook *o, int plus, int minus) {
    for (int i = 0; i < o->n; i++) o->scratch[i] = i < plus ? 1 : i < plus + minus ? -1 : 0;
    return gate_interval(o->metric, o->scratch, o->n);
}

// With `count` repeats met (violated, lifted).
static struct stats_interval interval_of(const struct outlook *o, int count) {
    return o->metric == GATE_LIFT ? difference_interval(o, count, 0) : stats_exact(count, o->n);
}

static bool high_enough(const struct outlook *o, int count) {
    if (!o->gate->has_at_least) return true;
    if (o->metric != GATE_LIFT) return stats_exact_above(count, o->n, o->gate->at_least);
    return difference_interval(o, count, 0).low >= o->gate->at_least;
}

static bool low_enough(const struct outlook *o, int count) {
    if (!o->gate->has_at_most) return true;
    if (o->metric != GATE_LIFT) return stats_exact_below(count, o->n, o->gate->at_most);
    return difference_interval(o, count, 0).high <= o->gate->at_most;
}

static bool passes(const struct outlook *o, int count) {
    return high_enough(o, count) && low_enough(o, count);
}

// The least count from 0 to n for which `is` holds; n + 1 for none. It holds for all above it.
static int least_count(const struct outlook *o, bool (*is)(const struct outlook *o, int count)) {
    int none = -1, from = o->n + 1;
    while (from - none > 1) {
        int middle = none + (from - none) / 2;
        if (is(o, middle))
            from = middle;
        else
            none = middle;
    }
    return from;
}

static bool too_high(const struct outlook *o, int count) {
    return !low_enough(o, count);
}

// Probability that a gate passes at a true rate, over n independent repeats.
static double pass_probability(const struct outlook *o, double rate) {
    // The passing counts are an interval: both bounds grow with the count.
    int first = least_count(o, high_enough), behind = least_count(o, too_high);
    if (behind <= first) return 0;
    return stats_binomial_tail(o->n, first, rate) - stats_binomial_tail(o->n, behind, rate);
}

static double sure_from(const struct outlook *o, double perfect) {
    double good = perfect, bad = o->gate->has_at_least ? o->gate->at_least : o->gate->at_most;
    for (int i = 0; i < 30; i++) {
        double middle = (good + bad) / 2;
        if (pass_probability(o, middle) >= 0.8)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

static bool is_possible(const struct outlook *o) {
    return least_count(o, high_enough) < least_count(o, too_high);
}

// The repeats from which perfect data passes; 0: none up to 20,000.
static int repeats_to_pass(const struct outlook *o, bool all, struct arena *a) {
    enum { MOST = 20000 };
    struct outlook more = *o;
    more.scratch = arena_array(a, MOST, sizeof *more.scratch);
    int least = gate_is_difference(o->metric) ? STATS_REPEATS_LEAST : 1;
    for (more.n = least; more.n <= MOST; more.n += 1 + more.n / 200)
        if (passes(&more, all ? more.n : 0)) return more.n;
    return 0;
}

static const char *remedy(const struct outlook *o, bool all, struct arena *a) {
    int needed = repeats_to_pass(o, all, a);
    return needed > 0 ? arena_printf(a, "it takes %d repeats or another bound", needed)
                      : "no number of repeats reaches this bound; use another one";
}

static void impossible(const struct outlook *o, struct gate_outlook *out, struct arena *a) {
    const struct experiment_gate *g = o->gate;
    if (g->has_at_least && g->has_at_most) {
        out->why = arena_printf(a,
                                "cannot pass: no count of %d repeats puts the whole interval "
                                "between %g and %g; use more repeats or wider bounds",
                                o->n, g->at_least, g->at_most);
        return;
    }
    bool low = g->has_at_least;
    struct stats_interval i = interval_of(o, low ? o->n : 0);
    out->why =
        arena_printf(a,
                     "cannot pass: with %s of its %d trials (%d repeats) %s, the %s bound is %.3f, "
                     "not %s %g; %s",
                     low ? "all" : "none", out->trials, o->n,
                     o->metric == GATE_VIOLATED_RATE ? "violated" : "met", low ? "lower" : "upper",
                     low ? i.low : i.high, low ? "at least" : "at most",
                     low ? g->at_least : g->at_most, remedy(o, low, a));
}

static void look_at_rate(const struct outlook *o, struct gate_outlook *out, struct arena *a) {
    const struct experiment_gate *g = o->gate;
    const char *what = o->metric == GATE_LIFT ? "lift" : "rate";
    out->possible = is_possible(o);
    if (!out->possible) {
        impossible(o, out, a);
        return;
    }
    if (g->has_at_least && g->has_at_most) {
        out->healthy_rate = (g->at_least + g->at_most) / 2;
        out->pass_probability = pass_probability(o, out->healthy_rate);
        out->sure_from = out->healthy_rate;
        out->why = arena_printf(a, "passes in %.0f %% of runs where the true %s is %.3f",
                                100 * out->pass_probability, what, out->healthy_rate);
        return;
    }
    double perfect = g->has_at_least ? 1 : 0;
    out->healthy_rate = ((g->has_at_least ? g->at_least : g->at_most) + perfect) / 2;
    out->pass_probability = pass_probability(o, out->healthy_rate);
    out->sure_from = sure_from(o, perfect);
    out->why =
        arena_printf(a,
                     "passes in %.0f %% of runs where the true %s is %.3f, and in 80 %% "
                     "from a true %s of %.3f",
                     100 * out->pass_probability, what, out->healthy_rate, what, out->sure_from);
}

// ---- differences that should be none ----

// No true difference; each repeat changes with CHANCE_SHARE, either way alike.
static double chance_probability(const struct outlook *o) {
    double sum = 0;
    for (int changed = 0; changed <= o->n; changed++) {
        double weight = stats_binomial(o->n, changed, CHANCE_SHARE);
        if (weight < WEIGHT_LEAST) continue;
        for (int plus = 0; plus <= changed; plus++) {
            struct stats_interval i = difference_interval(o, plus, changed - plus);
            if (gate_passes(o->gate, i.low, i.high))
                sum += weight * stats_binomial(changed, plus, 0.5);
        }
    }
    return sum;
}

static void look_at_difference(const struct outlook *o, struct gate_outlook *out, struct arena *a) {
    bool gap = o->metric == GATE_MIDDLE_GAP;
    struct stats_interval none = difference_interval(o, 0, 0);
    out->possible = o->n >= STATS_REPEATS_LEAST && gate_passes(o->gate, none.low, none.high);
    if (!out->possible) {
        out->why = arena_printf(
            a,
            "cannot pass: with no %s in any of its %d repeats the upper bound is "
            "%.3f, not at most %g; %s",
            gap ? "gap" : "change", o->n, none.high, o->gate->at_most, remedy(o, false, a));
        return;
    }
    out->pass_probability = chance_probability(o);
    out->why = arena_printf(
        a,
        "passes for sure when no repeat %s, and in %.0f %% of runs where there is no "
        "true %s and one repeat in ten differs by chance",
        gap ? "has a gap" : "changes", 100 * out->pass_probability, gap ? "gap" : "change");
}

static int count_repeats(const struct tally *t, const struct judged *j, int planned,
                         struct arena *a) {
    double *values;
    enum gate_metric m = gate_metric_of(j->gate);
    if (m == GATE_LIFT) return gate_lift(t, j, true, a, &values);
    if (m == GATE_MIDDLE_GAP) return gate_gap(t, j, true, a, &values);
    return planned;
}

static void look_ahead(struct tally *t, const struct judged *j, struct arena *a,
                       struct gate_outlook *out) {
    const struct experiment_gate *g = j->gate;
    struct summary_rate planned = tally_planned(t, &j->filter, g->of);
    struct outlook o = {.gate = g, .metric = gate_metric_of(g)};
    o.n = count_repeats(t, j, planned.repeats, a);
    *out = (struct gate_outlook){.id = j->id, .text = j->text, .trials = planned.n, .repeats = o.n};
    if (o.n == 0) {
        out->why = "cannot pass: no trial that it looks at is planned";
        return;
    }
    o.scratch = arena_array(a, (size_t)o.n, sizeof *o.scratch);
    if (o.metric == GATE_CHANGED_REPLIES) {
        out->possible = true;
        out->pass_probability = 1;
        out->why = "passes for sure when every reply is the baseline's, and never otherwise";
    } else if (o.metric == GATE_MIDDLE_GAP || o.metric == GATE_REGRESSION) {
        look_at_difference(&o, out, a);
    } else {
        look_at_rate(&o, out, a);
    }
    if (out->possible && g->baseline != NULL) gate_look_at_baseline(t, g, out, a);
}

// What 80 % of runs find between two places, by the exact paired test on the 5 % level.
static const char *detectable_words(const struct design_outlook *o, struct arena *a) {
    if (o->detectable > 1)
        return "no difference between two places, however large, is found in 80 % of runs (exact "
               "paired test, 5 %)";
    return arena_printf(
        a,
        "the smallest difference between two places that is found in 80 %% of runs "
        "(exact paired test, 5 %%) is %.0f points, at best %.0f points (when repeats "
        "change in one direction only)",
        100 * o->detectable, 100 * o->detectable_best);
}

static void look_at_design(struct tally *t, struct arena *a, struct design_outlook *out) {
    struct tally_filter placed = TALLY_EVERYTHING(ARM_PLACED);
    out->repeats = tally_planned(t, &placed, TALLY_ALL_CONSTRAINTS).repeats;
    out->detectable_best = stats_detectable(out->repeats, true);
    out->detectable = stats_detectable(out->repeats, false);
    out->repeats_for_20 = stats_repeats_needed(0.2);
    out->repeats_for_10 = stats_repeats_needed(0.1);
    out->sentence = arena_printf(
        a, "With %d repeat%s %s. 20 points take %d repeats, 10 points %d. %s%s", out->repeats,
        out->repeats == 1 ? "" : "s", detectable_words(out, a), out->repeats_for_20,
        out->repeats_for_10, "Pooled lengths and samples help.",
        out->repeats < STATS_REPEATS_LEAST ? " Below 10 repeats the report says \"underpowered\"."
                                           : "");
}

int gates_plan(const struct experiment *x, const struct record_trial *trials, int64_t trial_count,
               struct arena *a, struct design_outlook *out, struct err *e) {
    struct tally t;
    for (int i = 0; i < x->gate_count; i++)
        if (x->gates[i].baseline != NULL && file_exists(x->gates[i].baseline))
            TRY(gates_check_baseline(&x->gates[i], e));
    TRY(tally_make(x, trials, trial_count, NULL, a, &t, e));
    struct judged_list list = gates_expand(&t, a);
    *out = (struct design_outlook){.gate_count = list.count};
    out->gates = arena_array(a, (size_t)list.count + 1, sizeof *out->gates);
    struct buf wrong = {0};
    for (int i = 0; i < list.count; i++) {
        look_ahead(&t, &list.p[i], a, &out->gates[i]);
        if (!out->gates[i].possible)
            buf_printf(&wrong, "%sgate %s (%s) %s", wrong.n > 0 ? "\n" : "", out->gates[i].id,
                       out->gates[i].text, out->gates[i].why);
    }
    look_at_design(&t, a, out);
    bool partial = x->only_count > 0 || x->limit >= 0;
    bool refused = wrong.n > 0 && !partial;
    if (refused) ERR_SET(e, ERR_CONFIG, "%s", wrong.p);
    buf_free(&wrong);
    return refused ? -1 : 0;
}
