#include "evals/gates.h"

#include "evals/stats.h"
#include "evals/tally.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- one gate becomes a judgement for each value of its open dimensions ----

struct judged {
    const struct experiment_gate *gate;
    struct tally_filter filter;
    const char *id, *text;
};

struct judged_list {
    struct judged *p;
    int count;
    struct arena *arena;
};

static void list_add(struct judged_list *l, struct judged j) {
    l->p = arena_more(l->arena, l->p, (size_t)l->count, sizeof *l->p);
    l->p[l->count++] = j;
}

static void add_word(struct buf *b, const char *key, const char *value) {
    buf_printf(b, "%s%s=%s", b->n > 0 ? ", " : "", key, value);
}

// "order: met rate at least 0.6 where depth=middle, pooled over length".
static const char *gate_text(const struct experiment *x, const struct experiment_gate *g,
                             const char *where, struct arena *a) {
    struct buf b = {0};
    buf_printf(&b, "%s: met rate", g->of < 0 ? "all constraints" : x->constraints[g->of].id);
    if (g->has_at_least) buf_printf(&b, " at least %g", g->at_least);
    if (g->has_at_least && g->has_at_most) buf_add_c(&b, " and");
    if (g->has_at_most) buf_printf(&b, " at most %g", g->at_most);
    if (where[0] != '\0') buf_printf(&b, " where %s", where);
    const bool pooled[] = {g->pool_model, g->pool_length, g->pool_placement, g->pool_depth};
    static const char *const names[] = {"model", "length", "placement", "depth"};
    const char *joint = ", pooled over ";
    for (int i = 0; i < 4; i++) {
        if (!pooled[i]) continue;
        buf_printf(&b, "%s%s", joint, names[i]);
        joint = " and ";
    }
    const char *text = arena_memdup(a, b.p, b.n);
    buf_free(&b);
    return text;
}

// Words for the values that were filled in for open dimensions (`open`) and for all of them
// (`where`).
static void describe(const struct tally *t, const struct experiment_gate *g, struct judged *j,
                     struct arena *a) {
    const struct experiment *x = t->x;
    struct buf where = {0}, open = {0};
    const struct tally_filter *f = &j->filter;
    if (f->arm != ARM_PLACED) add_word(&where, "arm", arm_name(f->arm));
    if (f->model != TALLY_ANY && x->model_count > 1) {
        add_word(&where, "model", x->models[f->model].id);
        if (g->where.model < 0) add_word(&open, "model", x->models[f->model].id);
    }
    if (f->length != TALLY_ANY) {
        const char *length = arena_printf(a, "%d", t->lengths[f->length]);
        add_word(&where, "length", length);
        if (g->where.length_tokens < 0) add_word(&open, "length", length);
    }
    if (f->placement != TALLY_ANY && x->placement_count > 1) {
        add_word(&where, "placement", x->placements[f->placement].id);
        if (g->where.placement < 0) add_word(&open, "placement", x->placements[f->placement].id);
    }
    if (f->has_place) {
        char place[PLACE_TEXT_SIZE];
        place_text(f->place, place);
        add_word(&where, "depth", place);
        if (!g->where.has_place) add_word(&open, "depth", place);
    }
    j->text = gate_text(x, g, where.n > 0 ? where.p : "", a);
    j->id = open.n > 0 ? arena_printf(a, "%s[%s]", g->id, open.p) : g->id;
    buf_free(&where);
    buf_free(&open);
}

// The different places, in columns' order; returns how many there are.
static int different_places(const struct tally *t, struct place *places) {
    int count = 0;
    for (int i = 0; i < t->column_count; i++) {
        bool known = false;
        for (int k = 0; k < count; k++) known |= place_equal(places[k], t->columns[i].place);
        if (!known) places[count++] = t->columns[i].place;
    }
    return count;
}

static void expand_places(struct tally *t, const struct experiment_gate *g, struct tally_filter f,
                          struct judged_list *out) {
    struct place *places = arena_array(out->arena, (size_t)t->column_count + 1, sizeof *places);
    bool each_row = f.arm == ARM_PLACED && g->where.placement < 0 && !g->pool_placement;
    bool each_place = f.arm == ARM_PLACED && !g->where.has_place && !g->pool_depth;
    int rows = each_row ? t->x->placement_count : 1;
    int place_count = each_place ? different_places(t, places) : 1;
    for (int row = 0; row < rows; row++) {
        for (int k = 0; k < place_count; k++) {
            struct judged j = {g, f, NULL, NULL};
            if (each_row) j.filter.placement = row;
            if (each_place) {
                j.filter.has_place = true;
                j.filter.place = places[k];
            }
            if (tally_planned(t, &j.filter, g->of).n == 0) continue;
            describe(t, g, &j, out->arena);
            list_add(out, j);
        }
    }
}

static struct judged_list expand(struct tally *t, struct arena *a) {
    struct judged_list out = {.arena = a};
    for (int i = 0; i < t->x->gate_count; i++) {
        const struct experiment_gate *g = &t->x->gates[i];
        struct tally_filter f = TALLY_EVERYTHING(g->where.arm);
        f.placement = g->where.placement < 0 ? TALLY_ANY : g->where.placement;
        f.has_place = g->where.has_place;
        f.place = g->where.place;
        bool each_model = g->where.model < 0 && !g->pool_model;
        bool has_length = g->where.arm != ARM_SHORT;
        bool each_length = has_length && g->where.length_tokens < 0 && !g->pool_length;
        int models = each_model ? t->x->model_count : 1, before = out.count;
        int lengths = each_length ? t->length_count : 1;
        for (int m = 0; m < models; m++) {
            for (int l = 0; l < lengths; l++) {
                f.model = each_model ? m : g->where.model < 0 ? TALLY_ANY : g->where.model;
                f.length = each_length ? l : TALLY_ANY;
                bool planned = g->where.length_tokens < 0;
                for (int k = 0; k < t->length_count && !planned; k++) {
                    planned = t->lengths[k] == g->where.length_tokens;
                    if (planned) f.length = k;
                }
                if (planned) expand_places(t, g, f, &out);
            }
        }
        if (out.count == before) { // nothing of it is planned: one judgement that says so
            struct judged none = {g, TALLY_EVERYTHING(g->where.arm), g->id,
                                  gate_text(t->x, g, "", a)};
            none.filter.model = t->x->model_count; // selects nothing
            list_add(&out, none);
        }
    }
    return out;
}

// ---- after a run ----

static void judge(const struct experiment_gate *g, bool complete, struct arena *a,
                  struct summary_gate *out) {
    const struct summary_rate *r = &out->rate;
    const char *bounds =
        arena_printf(a, "%d of %d met, 95 %% interval %.3f to %.3f", r->met, r->n, r->low, r->high);
    out->result = GATE_UNDECIDED;
    if (r->n == 0) {
        out->why = "no trial was answered";
    } else if (!complete) {
        out->why = arena_printf(a, "the run is not finished (%s)", bounds);
    } else if (g->has_at_least && r->high < g->at_least) {
        out->result = GATE_FAILED;
        out->why = arena_printf(a, "%s: the upper bound is below %g", bounds, g->at_least);
    } else if (g->has_at_most && r->low > g->at_most) {
        out->result = GATE_FAILED;
        out->why = arena_printf(a, "%s: the lower bound is above %g", bounds, g->at_most);
    } else if (g->has_at_least && r->low < g->at_least) {
        out->why = arena_printf(a, "%s: %g lies between the bounds; more repeats would decide",
                                bounds, g->at_least);
    } else if (g->has_at_most && r->high > g->at_most) {
        out->why = arena_printf(a, "%s: %g lies between the bounds; more repeats would decide",
                                bounds, g->at_most);
    } else {
        out->result = GATE_PASSED;
        out->why = bounds;
    }
}

void gates_judge(struct tally *t, bool complete, struct arena *a, struct summary_gate **gates,
                 int *count) {
    struct judged_list list = expand(t, a);
    *count = list.count;
    *gates = arena_array(a, (size_t)list.count + 1, sizeof **gates);
    for (int i = 0; i < list.count; i++) {
        struct judged *j = &list.p[i];
        struct summary_gate *out = &(*gates)[i];
        out->id = j->id;
        out->text = j->text;
        out->rate = tally_rate(t, &j->filter, j->gate->of);
        judge(j->gate, complete, a, out);
    }
}

// ---- before a run ----

static bool passes(const struct experiment_gate *g, int met, int n) {
    struct stats_interval i = stats_wilson(met, n);
    return (!g->has_at_least || i.low >= g->at_least) && (!g->has_at_most || i.high <= g->at_most);
}

// Probability that a gate passes at a true rate, over n independent repeats.
static double pass_probability(const struct experiment_gate *g, int n, double rate) {
    int first = 0,
        last = n; // the passing counts are an interval, as both bounds grow with the count
    while (first <= n && !passes(g, first, n)) first++;
    while (last >= first && !passes(g, last, n)) last--;
    return stats_binomial_tail(n, first, rate) - stats_binomial_tail(n, last + 1, rate);
}

static double sure_from(const struct experiment_gate *g, int n, double perfect) {
    double good = perfect, bad = g->has_at_least ? g->at_least : g->at_most;
    for (int i = 0; i < 30; i++) {
        double middle = (good + bad) / 2;
        if (pass_probability(g, n, middle) >= 0.8)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

static int repeats_to_pass(const struct experiment_gate *g, int met) {
    for (int n = 1; n <= 100000; n++)
        if (passes(g, met > 0 ? n : 0, n)) return n;
    return 0;
}

static void impossible(const struct experiment_gate *g, struct gate_outlook *o, struct arena *a) {
    if (g->has_at_least && g->has_at_most) {
        o->why = arena_printf(a,
                              "cannot pass: no count of %d repeats puts the whole interval between "
                              "%g and %g; use more repeats or wider bounds",
                              o->repeats, g->at_least, g->at_most);
        return;
    }
    bool low = g->has_at_least;
    struct stats_interval i = stats_wilson(low ? o->repeats : 0, o->repeats);
    int needed = repeats_to_pass(g, low);
    const char *remedy = needed > 0
                             ? arena_printf(a, "it takes %d repeats or another bound", needed)
                             : "no number of repeats reaches this bound; use another one";
    o->why = arena_printf(a,
                          "cannot pass: with %s of its %d trials (%d repeats) met, the %s bound is "
                          "%.3f, not %s %g; %s",
                          low ? "all" : "none", o->trials, o->repeats, low ? "lower" : "upper",
                          low ? i.low : i.high, low ? "at least" : "at most",
                          low ? g->at_least : g->at_most, remedy);
}

static void look_ahead(struct tally *t, const struct judged *j, struct arena *a,
                       struct gate_outlook *out) {
    const struct experiment_gate *g = j->gate;
    struct summary_rate planned = tally_planned(t, &j->filter, g->of);
    *out = (struct gate_outlook){
        .id = j->id, .text = j->text, .trials = planned.n, .repeats = planned.repeats};
    if (out->repeats == 0) {
        out->why = "cannot pass: no trial that it looks at is planned";
        return;
    }
    int n = out->repeats;
    for (int met = 0; met <= n && !out->possible; met++) out->possible = passes(g, met, n);
    if (!out->possible) {
        impossible(g, out, a);
        return;
    }
    if (g->has_at_least && g->has_at_most) {
        out->healthy_rate = (g->at_least + g->at_most) / 2;
        out->pass_probability = pass_probability(g, n, out->healthy_rate);
        out->sure_from = out->healthy_rate;
        out->why = arena_printf(a, "passes in %.0f %% of runs where the true rate is %.3f",
                                100 * out->pass_probability, out->healthy_rate);
        return;
    }
    double perfect = g->has_at_least ? 1 : 0;
    out->healthy_rate = ((g->has_at_least ? g->at_least : g->at_most) + perfect) / 2;
    out->pass_probability = pass_probability(g, n, out->healthy_rate);
    out->sure_from = sure_from(g, n, perfect);
    out->why = arena_printf(a,
                            "passes in %.0f %% of runs where the true rate is %.3f, and in 80 %% "
                            "from a true rate of %.3f",
                            100 * out->pass_probability, out->healthy_rate, out->sure_from);
}

static const char *detectable_words(double difference, struct arena *a) {
    return difference > 1 ? "none" : arena_printf(a, "%.0f points", 100 * difference);
}

static void look_at_design(struct tally *t, struct arena *a, struct design_outlook *out) {
    struct tally_filter placed = TALLY_EVERYTHING(ARM_PLACED);
    out->repeats = tally_planned(t, &placed, TALLY_ALL_CONSTRAINTS).repeats;
    out->detectable_best = stats_detectable(out->repeats, true);
    out->detectable = stats_detectable(out->repeats, false);
    out->repeats_for_20 = stats_repeats_needed(0.2);
    out->repeats_for_10 = stats_repeats_needed(0.1);
    out->sentence = arena_printf(
        a,
        "With %d repeats the smallest difference between two places that is found in 80 %% of runs "
        "(exact paired test, 5 %%) is %s, at best %s (when repeats change in one direction only). "
        "20 points take %d repeats, 10 points %d. Pooled lengths and samples help.%s",
        out->repeats, detectable_words(out->detectable, a),
        detectable_words(out->detectable_best, a), out->repeats_for_20, out->repeats_for_10,
        out->repeats < STATS_REPEATS_LEAST ? " Below 10 repeats the report says \"underpowered\"."
                                           : "");
}

int gates_plan(const struct experiment *x, const struct record_trial *trials, int64_t trial_count,
               struct arena *a, struct design_outlook *out, struct err *e) {
    struct tally t;
    TRY(tally_make(x, trials, trial_count, NULL, a, &t, e));
    struct judged_list list = expand(&t, a);
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
