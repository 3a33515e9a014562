// Gates after a run.
#include "evals/gates_internal.h"

#include "engine/base/file.h"
#include "evals/compare.h"

#include <string.h>

#define DETAILS_MOST 50 // trials that are named in a gate's details

struct judging {
    struct tally *tally;
    const struct gates_against *against;
    bool complete;
    struct arena *arena;
    struct baseline now;
    bool has_now;
    struct baseline *files; // read so far
    int file_count;
};

// ---- bounds ----

static void judge_bounds(const struct experiment_gate *g, double low, double high,
                         const char *bounds, struct arena *a, struct summary_gate *out) {
    out->result = GATE_UNDECIDED;
    if (g->has_at_least && high < g->at_least) {
        out->result = GATE_FAILED;
        out->why = arena_printf(a, "%s: the upper bound is below %g", bounds, g->at_least);
    } else if (g->has_at_most && low > g->at_most) {
        out->result = GATE_FAILED;
        out->why = arena_printf(a, "%s: the lower bound is above %g", bounds, g->at_most);
    } else if (g->has_at_least && low < g->at_least) {
        out->why = arena_printf(a, "%s: %g lies between the bounds; more repeats would decide",
                                bounds, g->at_least);
    } else if (g->has_at_most && high > g->at_most) {
        out->why = arena_printf(a, "%s: %g lies between the bounds; more repeats would decide",
                                bounds, g->at_most);
    } else {
        out->result = GATE_PASSED;
        out->why = bounds;
    }
}

static void judge_rate(struct judging *k, const struct judged *j, struct summary_gate *out) {
    bool violated = gate_metric_of(j->gate) == GATE_VIOLATED_RATE;
    struct summary_rate r = violated ? tally_violated(k->tally, &j->filter, j->gate->of)
                                     : tally_rate(k->tally, &j->filter, j->gate->of);
    const char *word = violated ? "violated" : "met";
    int count = violated ? r.violated : r.met;
    out->n = r.n;
    out->repeats = r.repeats;
    out->value = r.rate;
    struct stats_interval exact = {0, 1};
    if (r.n > 0) exact = stats_exact(r.rate * r.effective, r.effective);
    out->low = exact.low;
    out->high = exact.high;
    out->measured = arena_printf(k->arena, "%d/%d %s", count, r.n, word);
    const char *bounds = arena_printf(k->arena, "%d of %d %s, exact 95 %% interval %.3f to %.3f",
                                      count, r.n, word, exact.low, exact.high);
    if (r.n == 0)
        out->why = "no trial was answered";
    else if (!k->complete)
        out->why = arena_printf(k->arena, "the run is not finished (%s)", bounds);
    else
        judge_bounds(j->gate, exact.low, exact.high, bounds, k->arena, out);
}

// A difference of rates over `repeats` repeats, `what` in words.
static void judge_interval(struct judging *k, const struct experiment_gate *g, const char *what,
                           double value, double low, double high, int repeats,
                           struct summary_gate *out) {
    out->repeats = repeats;
    out->value = value;
    out->low = low;
    out->high = high;
    out->measured = arena_printf(k->arena, "%s %.1f points", what, 100 * value);
    const char *bounds =
        arena_printf(k->arena, "%s of %.3f over %d repeats, 95 %% interval %.3f to %.3f", what,
                     value, repeats, low, high);
    if (repeats < STATS_REPEATS_LEAST)
        out->why =
            arena_printf(k->arena, "underpowered: %s over %d repeats, and a conclusion needs %d",
                         out->measured, repeats, STATS_REPEATS_LEAST);
    else if (!k->complete)
        out->why = arena_printf(k->arena, "the run is not finished (%s)", bounds);
    else
        judge_bounds(g, low, high, bounds, k->arena, out);
}

static void judge_values(struct judging *k, const struct judged *j, struct summary_gate *out) {
    bool lift = gate_metric_of(j->gate) == GATE_LIFT;
    double *d, sum = 0;
    int n = lift ? gate_lift(k->tally, j, false, k->arena, &d)
                 : gate_gap(k->tally, j, false, k->arena, &d);
    if (n == 0) {
        out->measured = "nothing";
        out->why = lift ? "no repeat has an answered trial both placed and absent"
                        : "no repeat has answered trials at the start, the middle and the end";
        return;
    }
    for (int i = 0; i < n; i++) sum += d[i];
    struct stats_interval i = gate_interval(gate_metric_of(j->gate), d, n);
    out->n = tally_rate(k->tally, &j->filter, j->gate->of).n;
    judge_interval(k, j->gate, lift ? "lift" : "gap", sum / n, i.low, i.high, n, out);
}

// ---- against a baseline ----

static int open_baseline(struct judging *k, const char *path, const struct baseline **out,
                         struct err *e) {
    for (int i = 0; i < k->file_count; i++) {
        *out = &k->files[i];
        if (strcmp(k->files[i].path, path) == 0) return 0;
    }
    struct baseline b;
    TRY(baseline_read(path, k->arena, &b, e));
    k->files = arena_more(k->arena, k->files, (size_t)k->file_count, sizeof *k->files);
    k->files[k->file_count] = b;
    *out = &k->files[k->file_count++];
    return 0;
}

struct selected {
    struct tally *tally;
    const struct judged *judged;
};

static bool selects(const void *context, const struct comparison_pair *p) {
    const struct selected *s = context;
    return tally_selects(s->tally, &s->tally->trials[p->now->trial], &s->judged->filter,
                         s->judged->gate->of);
}

static void name_flips(const struct comparison *c, const struct compare_selection *s,
                       struct buf *out) {
    int shown = 0;
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->before->verdicts == NULL || p->now->verdicts == NULL) continue;
        if (!s->selects(s->context, p)) continue;
        for (int k = 0; k < c->constraint_count; k++) {
            int before = c->columns_before[k], now = c->columns_now[k];
            if (s->constraint >= 0 && k != s->constraint) continue;
            if (!baseline_judged(p->before, before) || !baseline_judged(p->now, now)) continue;
            enum verdict then = baseline_verdict(p->before, before);
            enum verdict is = baseline_verdict(p->now, now);
            if ((then == VERDICT_MET) == (is == VERDICT_MET) || ++shown > DETAILS_MOST) continue;
            buf_printf(out, "%s %s %s: %s, was %s\n", is == VERDICT_MET ? "won" : "lost",
                       p->now->key, c->constraints[k], verdict_name(is), verdict_name(then));
        }
    }
    if (shown > DETAILS_MOST) buf_printf(out, "... and %d more\n", shown - DETAILS_MOST);
}

static void judge_regression(struct judging *k, const struct comparison *c,
                             const struct compare_selection *s, const struct judged *j,
                             struct summary_gate *out) {
    struct comparison_row r;
    struct buf flips = {0};
    compare_row(c, s, arena_printf(k->arena, "gate/%s", j->id), k->tally->x->seed, k->arena, &r);
    if (r.pairs == 0) {
        out->measured = "nothing";
        out->why = "no trial that it looks at has a reply in both";
        return;
    }
    out->n = r.pairs;
    // 0 minus, so that no change is no "-0.000".
    judge_interval(k, j->gate, "drop", 0 - r.effect, 0 - r.high, 0 - r.low, r.repeats, out);
    name_flips(c, s, &flips);
    out->detail = buf_take(&flips, k->arena).p;
}

static void judge_changed(struct judging *k, const struct comparison *c,
                          const struct compare_selection *s, struct summary_gate *out) {
    struct buf names = {0};
    int64_t changed = 0, compared = 0, missing = 0;
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (!s->selects(s->context, p)) continue;
        bool both = p->before->verdicts != NULL && p->now->verdicts != NULL;
        compared += both;
        missing += !both;
        if (!both || p->identical || ++changed > DETAILS_MOST) continue;
        buf_printf(&names, "changed %s\n", p->now->key);
    }
    if (changed > DETAILS_MOST)
        buf_printf(&names, "... and %lld more\n", (long long)changed - DETAILS_MOST);
    out->detail = buf_take(&names, k->arena).p;
    out->n = (int)compared;
    out->value = (double)changed;
    out->measured =
        arena_printf(k->arena, "%lld/%lld changed", (long long)changed, (long long)compared);
    const char *count = arena_printf(k->arena, "%lld of %lld replies changed", (long long)changed,
                                     (long long)compared);
    if (changed > 0) {
        out->result = GATE_FAILED;
        out->why = count;
    } else if (missing > 0 || compared == 0 || !k->complete) {
        out->why =
            arena_printf(k->arena, "%s; %lld trials have no reply in one of the two%s", count,
                         (long long)missing, k->complete ? "" : ", and the run is not finished");
    } else {
        out->result = GATE_PASSED;
        out->why = count;
    }
}

static const char *refusal(const struct comparison *c, struct arena *a) {
    if (c->allow == NULL) return c->refused;
    return arena_printf(a, "%s; if that is meant, the gate has to say so: allow: [%s]", c->refused,
                        c->allow);
}

// Its own words, and those of the command line.
static const char **allowances(const struct judging *k, const struct experiment_gate *g,
                               int *count) {
    const struct gates_against *more = k->against;
    int extra = more == NULL ? 0 : more->options->allow_count;
    const char **words = arena_array(k->arena, (size_t)(g->allow_count + extra) + 1, sizeof *words);
    *count = 0;
    for (int i = 0; i < g->allow_count; i++) words[(*count)++] = g->allow[i];
    for (int i = 0; i < extra; i++) words[(*count)++] = more->options->allow[i];
    return words;
}

static int find_constraint(const struct comparison *c, const struct experiment *x, int of) {
    for (int i = 0; of >= 0 && i < c->constraint_count; i++)
        if (strcmp(c->constraints[i], x->constraints[of].id) == 0) return i;
    return -1;
}

static int judge_against(struct judging *k, const struct judged *j, struct summary_gate *out,
                         struct err *e) {
    const struct experiment_gate *g = j->gate;
    const struct baseline *before = k->against != NULL ? k->against->baseline : NULL;
    out->measured = "not compared";
    if (before == NULL && (g->baseline == NULL || !file_exists(g->baseline))) {
        out->why = arena_printf(k->arena,
                                "there is no baseline %s; `lacuna baseline RUN -o %s` makes one "
                                "of a good run",
                                g->baseline_name, g->baseline_name);
        return 0;
    }
    if (before == NULL) TRY(open_baseline(k, g->baseline, &before, e));
    struct comparison c;
    struct compare_options o = {.common = k->against != NULL && k->against->options->common};
    int count;
    o.allow = allowances(k, g, &count);
    o.allow_count = count;
    compare_pair(before, &k->now, &o, k->arena, &c);
    if (c.refused != NULL) {
        out->why = refusal(&c, k->arena);
        return 0;
    }
    struct selected selected = {k->tally, j};
    struct compare_selection s = {selects, &selected, find_constraint(&c, k->tally->x, g->of)};
    if (g->of >= 0 && s.constraint < 0)
        out->why = "the baseline has no verdicts on this constraint";
    else if (gate_metric_of(g) == GATE_REGRESSION)
        judge_regression(k, &c, &s, j, out);
    else
        judge_changed(k, &c, &s, out);
    return 0;
}

// ---- all ----

static int judge(struct judging *k, const struct judged *j, struct summary_gate *out,
                 struct err *e) {
    *out = (struct summary_gate){.id = j->id,
                                 .text = j->text,
                                 .result = GATE_UNDECIDED,
                                 .measured = "",
                                 .why = "",
                                 .detail = ""};
    switch (gate_metric_of(j->gate)) {
    case GATE_MET_RATE:
    case GATE_VIOLATED_RATE: judge_rate(k, j, out); return 0;
    case GATE_LIFT:
    case GATE_MIDDLE_GAP: judge_values(k, j, out); return 0;
    default: return judge_against(k, j, out, e);
    }
}

static int judge_all(struct judging *k, const struct record *r, const struct judged_list *list,
                     struct summary_gate *gates, struct err *e) {
    for (int i = 0; i < list->count; i++) {
        enum gate_metric m = gate_metric_of(list->p[i].gate);
        if (!k->has_now && (m == GATE_REGRESSION || m == GATE_CHANGED_REPLIES)) {
            TRY(baseline_of_record(r, k->arena, &k->now, e));
            k->has_now = true;
        }
        TRY(judge(k, &list->p[i], &gates[i], e));
    }
    return 0;
}

int gates_judge(struct tally *t, const struct record *r, bool complete,
                const struct gates_against *against, struct arena *a, struct summary_gate **gates,
                int *count, struct err *e) {
    struct judged_list list = gates_expand(t, a);
    struct judging k = {.tally = t, .against = against, .complete = complete, .arena = a};
    *count = list.count;
    *gates = arena_array(a, (size_t)list.count + 1, sizeof **gates);
    int result = judge_all(&k, r, &list, *gates, e);
    if (k.has_now) baseline_close(&k.now);
    for (int i = 0; i < k.file_count; i++) baseline_close(&k.files[i]);
    return result;
}
