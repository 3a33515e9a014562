#include "evals/compare.h"

#include "evals/stats.h"
#include "reports/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS_MOST = 16 };
#define UNSCORED_APART 0.02

// ---- what rows there are ----

struct where {
    int model;  // of the run
    int length; // in tokens, 0: all
};

static bool selects(const void *context, const struct comparison_pair *p) {
    const struct where *w = context;
    return p->now->placed && p->now->model == w->model &&
           (w->length == 0 || p->now->length == w->length);
}

static int by_number(const void *left, const void *right) {
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

// The lengths of a model's placed pairs, ascending, each once.
static int take_lengths(const struct comparison *c, int model, struct arena *a, int **out) {
    int count = 0, last = 0;
    int *lengths = NULL;
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct baseline_trial *t = c->pairs[i].now;
        if (t->model != model || !t->placed || t->length == last) continue;
        bool known = false;
        for (int k = 0; k < count && !known; k++) known = lengths[k] == t->length;
        last = t->length;
        if (known) continue;
        lengths = arena_more(a, lengths, (size_t)count, sizeof *lengths);
        lengths[count++] = t->length;
    }
    if (count > 0) qsort(lengths, (size_t)count, sizeof *lengths, by_number);
    *out = lengths;
    return count;
}

static void add_row(struct comparison *c, const struct where *w, int constraint, bool overall,
                    uint64_t seed, struct arena *a) {
    struct comparison_row row;
    const char *model = c->now->models[w->model];
    const char *name = constraint < 0 ? "all" : c->constraints[constraint];
    const char *scope = w->length == 0 ? "all lengths" : arena_printf(a, "length %d", w->length);
    const char *stream = arena_printf(a, "compare/%s/%s/%s", model, name, scope);
    struct compare_selection s = {selects, w, constraint};
    compare_row(c, &s, stream, seed, a, &row);
    if (row.pairs == 0) return;
    row.model = model;
    row.constraint = name;
    row.scope = scope;
    row.length = w->length;
    row.overall = overall;
    c->rows = arena_more(a, c->rows, (size_t)c->row_count, sizeof *c->rows);
    c->rows[c->row_count++] = row;
}

// With one constraint, "all" is that one; with one length, that length is all of them.
static void add_details(struct comparison *c, int model, uint64_t seed, struct arena *a) {
    int *lengths, count = take_lengths(c, model, a, &lengths);
    int first = c->constraint_count > 1 ? -1 : 0;
    for (int k = first; k < c->constraint_count; k++) {
        struct where w = {model, 0};
        if (k >= 0 && c->constraint_count > 1) add_row(c, &w, k, false, seed, a);
        for (int i = 0; count > 1 && i < count; i++) {
            w.length = lengths[i];
            add_row(c, &w, k, false, seed, a);
        }
    }
}

static void add_rows(struct comparison *c, uint64_t seed, struct arena *a) {
    for (int m = 0; m < c->now->model_count; m++) {
        struct where w = {m, 0};
        add_row(c, &w, c->constraint_count > 1 ? -1 : 0, true, seed, a);
    }
    for (int m = 0; m < c->now->model_count; m++) add_details(c, m, seed, a);
}

// ---- what they say ----

static enum comparison_answer answer_of(const struct comparison *c,
                                        const struct comparison_row *r) {
    bool shown = r->p_holm <= 0.05 && r->has_interval && (r->low > 0 || r->high < 0);
    if (shown) return r->effect < 0 ? COMPARE_REGRESSED : COMPARE_IMPROVED;
    if (r->identical == r->pairs) return COMPARE_NO_DIFFERENCE; // whatever their number
    return r->has_interval && r->largest < c->margin ? COMPARE_NO_DIFFERENCE : COMPARE_UNDERPOWERED;
}

// No p-value without its interval.
static const char *test_words(const struct comparison_row *r, struct arena *a) {
    if (!r->has_interval) return "";
    char p[16], holm[16];
    layout_p(r->p, p);
    layout_p(r->p_holm, holm);
    const char *corrected =
        r->p_holm != r->p ? arena_printf(a, ", after Holm's correction %s", holm) : "";
    return arena_printf(a, "95 %% interval of the change %.1f to %.1f points, %s%s; ",
                        layout_tenths(r->low), layout_tenths(r->high), p, corrected);
}

static const char *numbers(const struct comparison_row *r, struct arena *a) {
    return arena_printf(a, "%d of %d met before, %d now; %s%d repeat%s", r->met_before, r->pairs,
                        r->met_now, test_words(r, a), r->repeats, r->repeats == 1 ? "" : "s");
}

// Forecasts for many repeats take long, and many are not too few.
static const char *detectable_words(int repeats, struct arena *a) {
    if (repeats > 200) return "";
    double detectable = stats_detectable(repeats, true);
    if (detectable > 1) return "";
    return arena_printf(a,
                        " %d repeats find changes from %.0f points on in 80 of 100 cases, where "
                        "all trials of a repeat go together.",
                        repeats, 100 * detectable);
}

static const char *power_words(const struct comparison *c, const struct comparison_row *r,
                               struct arena *a) {
    if (r->answer != COMPARE_UNDERPOWERED) return "";
    if (!r->has_interval)
        return arena_printf(a, " %d repeat%s, too few for a conclusion (%d at least).", r->repeats,
                            r->repeats == 1 ? "" : "s", STATS_REPEATS_LEAST);
    return arena_printf(a,
                        " A change of up to %.1f points is possible by the interval; below %.0f is "
                        "asked for (--margin).%s",
                        100 * r->largest, 100 * c->margin, detectable_words(r->repeats, a));
}

static const char *unscored_words(const struct comparison_row *r, struct arena *a) {
    double apart = (double)(r->unscored_now - r->unscored_before) / r->pairs;
    if (fabs(apart) <= UNSCORED_APART) return "";
    return arena_printf(a,
                        " The share of unscored replies changed by %.1f points, which may be the "
                        "cause.",
                        100 * apart);
}

static void write_sentence(const struct comparison *c, struct comparison_row *r, struct arena *a) {
    const char *what =
        strcmp(r->constraint, "all") == 0 ? "the whole set of constraints" : r->constraint;
    const char *answer = comparison_answer_name(r->answer);
    if (r->identical == r->pairs)
        r->sentence = arena_printf(a, "%s: all %d replies are identical (%d met).", answer,
                                   r->pairs, r->met_now);
    else if (r->met_before == r->met_now)
        r->sentence = arena_printf(a, "%s: %s met as often as before (%s).%s%s", answer, what,
                                   numbers(r, a), power_words(c, r, a), unscored_words(r, a));
    else
        r->sentence = arena_printf(a, "%s: %s met %.1f points %s often (%s).%s%s", answer, what,
                                   100 * fabs(r->effect), r->effect < 0 ? "less" : "more",
                                   numbers(r, a), power_words(c, r, a), unscored_words(r, a));
}

static void correct(struct comparison *c, bool overall, struct arena *a) {
    double *p = arena_array(a, (size_t)c->row_count + 1, sizeof *p);
    double *adjusted = arena_array(a, (size_t)c->row_count + 1, sizeof *adjusted);
    int count = 0;
    for (int i = 0; i < c->row_count; i++)
        if (c->rows[i].overall == overall) p[count++] = c->rows[i].p;
    stats_holm(p, count, adjusted);
    count = 0;
    for (int i = 0; i < c->row_count; i++) {
        struct comparison_row *r = &c->rows[i];
        if (r->overall != overall) continue;
        r->p_holm = adjusted[count++];
        r->answer = answer_of(c, r);
        write_sentence(c, r, a);
    }
}

// ---- flips ----

static void add_flips(struct comparison *c, bool lost, struct arena *a) {
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->before->verdicts == NULL || p->now->verdicts == NULL || !p->now->placed) continue;
        for (int k = 0; k < c->constraint_count; k++) {
            int before = c->columns_before[k], now = c->columns_now[k];
            if (!baseline_judged(p->before, before) || !baseline_judged(p->now, now)) continue;
            struct comparison_flip f = {p, c->constraints[k], baseline_verdict(p->before, before),
                                        baseline_verdict(p->now, now)};
            bool was = f.before == VERDICT_MET, is = f.now == VERDICT_MET;
            if (was == is || was != lost) continue;
            c->flips = arena_more(a, c->flips, (size_t)c->flip_count, sizeof *c->flips);
            c->flips[c->flip_count++] = f;
        }
    }
}

// ---- the whole ----

static void warn(struct comparison *c, const char *text) {
    if (c->warning_count < WARNINGS_MOST) c->warnings[c->warning_count++] = text;
}

static void warn_about_side(struct comparison *c, const struct baseline *b, const char *which,
                            struct arena *a) {
    const struct record *r = b->record;
    if (r == NULL) return;
    if (r->partial) warn(c, arena_printf(a, "The %s is partial (--only or --limit).", which));
    if (r->done_count < r->trial_count)
        warn(c, arena_printf(a, "The %s is not finished: %lld of %lld trials.", which,
                             (long long)r->done_count, (long long)r->trial_count));
}

static bool is_served(const struct baseline *b, int model) {
    const json_t *models = json_object_get(b->identity, "models");
    return json_object_get(json_array_get(models, (size_t)model), "endpoint") != NULL;
}

// How much of a difference may be a server's own.
static void warn_about_noise(struct comparison *c, const struct baseline *b, const char *which,
                             struct arena *a) {
    for (int m = 0; m < b->model_count; m++) {
        const struct record_noise *n = &b->noise[m];
        if (!is_served(b, m)) continue;
        if (n->asked == 0) {
            warn(c, arena_printf(a,
                                 "%s of the %s is served, so that its replies may differ by "
                                 "themselves; how often is not known (models[].repeat_check).",
                                 b->models[m], which));
            continue;
        }
        const int texts = n->asked - n->same_text, verdicts = n->asked - n->same_verdicts;
        const struct stats_interval i = stats_wilson(verdicts, n->asked);
        warn(c, arena_printf(a,
                             "%s of the %s is served: of %d requests that were sent twice %d got "
                             "another text and %d other verdicts (95 %% interval %.0f to %.0f %%). "
                             "A difference of that size is the server's own noise.",
                             b->models[m], which, n->asked, texts, verdicts, 100 * i.low,
                             100 * i.high));
    }
}

static void warn_about(struct comparison *c, struct arena *a) {
    c->warnings = arena_array(a, WARNINGS_MOST, sizeof *c->warnings);
    warn_about_side(c, c->before, "baseline", a);
    warn_about_side(c, c->now, "run", a);
    warn_about_noise(c, c->before, "baseline", a);
    warn_about_noise(c, c->now, "run", a);
    if (c->plans_differ && !c->needs_common)
        warn(c, arena_printf(a,
                             "Only common trials are compared: %lld are in the baseline alone, "
                             "%lld in the run alone.",
                             (long long)c->only_before, (long long)c->only_now));
    if (c->not_ok > 0)
        warn(c, arena_printf(a,
                             "%lld pairs are left out: invalid or ended in an error in one of the "
                             "two.",
                             (long long)c->not_ok));
    if (c->same_identity && c->identical < c->compared)
        warn(c, "Nothing that a reply depends on differs between the two runs, and yet replies "
                "do. That is a fault of the program or of the machine, not of the model: run "
                "`lacuna verify` on both, and `lacuna repeat` on a trial that changed.");
}

static const char *headline(const struct comparison *c, struct arena *a) {
    int counts[4] = {0};
    for (int i = 0; i < c->row_count; i++) counts[c->rows[i].answer]++;
    if (c->refused != NULL) return arena_printf(a, "not compared: %s", c->refused);
    if (c->compared > 0 && c->identical == c->compared)
        return arena_printf(a, "all %lld replies are identical", (long long)c->compared);
    if (counts[COMPARE_REGRESSED] > 0)
        return arena_printf(a, "regressed (%d of %d comparisons%s)", counts[COMPARE_REGRESSED],
                            c->row_count,
                            counts[COMPARE_IMPROVED] > 0
                                ? arena_printf(a, "; %d improved", counts[COMPARE_IMPROVED])
                                : "");
    if (counts[COMPARE_IMPROVED] > 0)
        return arena_printf(a, "improved (%d of %d comparisons)", counts[COMPARE_IMPROVED],
                            c->row_count);
    if (c->row_count == 0) return "nothing to compare: no placed trial has a reply in both";
    return comparison_answer_name(c->rows[0].answer);
}

void compare_runs(const struct baseline *before, const struct baseline *now,
                  const struct compare_options *options, struct arena *a, struct comparison *out) {
    compare_pair(before, now, options, a, out);
    warn_about(out, a);
    if (out->refused == NULL) {
        add_rows(out, options->seed, a);
        correct(out, true, a);
        correct(out, false, a);
        add_flips(out, true, a);
        out->lost = out->flip_count;
        add_flips(out, false, a);
        out->won = out->flip_count - out->lost;
    }
    out->headline = headline(out, a);
}

int compare_exit_code(const struct comparison *c) {
    bool failed = false, undecided = c->refused != NULL || c->row_count == 0;
    for (int i = 0; i < c->row_count; i++) {
        failed |= c->rows[i].answer == COMPARE_REGRESSED;
        undecided |= c->rows[i].overall && c->rows[i].answer == COMPARE_UNDERPOWERED;
    }
    for (int i = 0; i < c->gate_count; i++) {
        failed |= c->gates[i].result == GATE_FAILED;
        undecided |= c->gates[i].result == GATE_UNDECIDED;
    }
    return failed ? 100 : undecided ? 3 : 0;
}
