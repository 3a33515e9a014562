#include "evals/tally.h"

#include "evals/reply.h"
#include "evals/stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- layout ----

static int by_number(const void *left, const void *right) {
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static void collect_lengths(struct tally *t, const struct record_trial *trials, struct arena *a) {
    int most = t->x->length_count + 1;
    t->lengths = arena_array(a, (size_t)most, sizeof *t->lengths);
    for (int i = 0; i < t->x->length_count; i++) {
        bool planned = false;
        for (int64_t k = 0; k < t->trial_count && !planned; k++)
            planned = trials[k].length == t->x->lengths[i];
        if (planned) t->lengths[t->length_count++] = t->x->lengths[i];
    }
    qsort(t->lengths, (size_t)t->length_count, sizeof *t->lengths, by_number);
}

int32_t tally_depth(const char *text) {
    char *end;
    double percent = strtod(text, &end);
    if (end == text || *end != '\0' || !(percent >= 0 && percent < 1000)) return DEPTH_NONE;
    return (int32_t)(percent * 1000 + 0.5);
}

// "50.000" or an anchor's name, as plan.jsonl spells it.
static bool depth_is(const char *depth, struct place place) {
    if (depth == NULL) return false;
    if (!place_is_depth(place)) {
        char name[PLACE_TEXT_SIZE];
        place_text(place, name);
        return strcmp(name, depth) == 0;
    }
    return tally_depth(depth) == place.depth;
}

static bool is_planned(const struct tally *t, const struct record_trial *trials,
                       const struct experiment_placement *row, struct place place) {
    for (int64_t k = 0; k < t->trial_count; k++)
        if (trials[k].placement != NULL && strcmp(trials[k].placement, row->id) == 0 &&
            depth_is(trials[k].depth, place))
            return true;
    return false;
}

// Places of a row in reading order. A scattered row has those of its constraints, and behind them
// its orders, which is what its trials are planned by.
static void add_columns(struct tally *t, int placement, const struct record_trial *trials,
                        struct arena *a) {
    const struct experiment_placement *row = &t->x->placements[placement];
    const int first = t->column_count, constraints = t->x->constraint_count;
    for (int i = 0; i < row->place_count; i++) {
        if (!row->scatter && !is_planned(t, trials, row, row->places[i])) continue;
        int at = t->column_count++;
        for (; at > first && place_compare(t->columns[at - 1].place, row->places[i]) > 0; at--)
            t->columns[at] = t->columns[at - 1];
        t->columns[at] = (struct tally_column){placement, row->places[i], NULL};
    }
    for (int order = 0; order < placement_orders(row); order++) {
        if (!is_planned(t, trials, row, place_of_order(order))) continue;
        int at = t->column_count++, *of = arena_array(a, (size_t)constraints + 1, sizeof *of);
        for (int c = 0; c < constraints; c++) of[c] = at;
        for (int k = 0; k < row->move_count; k++)
            of[row->move[k]] = first + placement_order(row, order, k);
        t->columns[at] = (struct tally_column){placement, place_of_order(order), of};
    }
}

int tally_column(const struct tally *t, const struct tally_trial *trial, int constraint) {
    if (constraint == TALLY_ALL_CONSTRAINTS || trial->column < 0) return trial->column;
    const int *of = t->columns[trial->column].of;
    return of != NULL ? of[constraint] : trial->column;
}

// ---- completions ----

static int by_completion(const void *left, const void *right) {
    const struct record_trial *a = (*(struct tally_trial *const *)left)->planned;
    const struct record_trial *b = (*(struct tally_trial *const *)right)->planned;
    int order = strcmp(a->model, b->model);
    if (order == 0) order = strcmp(a->ids_sha256, b->ids_sha256);
    if (order == 0 && a->ids_sha256[0] == '\0') order = strcmp(a->prompt_sha256, b->prompt_sha256);
    return order != 0 ? order : strcmp(a->seed, b->seed);
}

static void number_completions(struct tally *t, struct arena *a) {
    struct tally_trial **sorted = arena_array(a, (size_t)t->trial_count + 1, sizeof *sorted);
    for (int64_t i = 0; i < t->trial_count; i++) sorted[i] = &t->trials[i];
    qsort(sorted, (size_t)t->trial_count, sizeof *sorted, by_completion);
    for (int64_t i = 0; i < t->trial_count; i++) {
        if (i > 0 && by_completion(&sorted[i - 1], &sorted[i]) != 0) t->completion_count++;
        sorted[i]->completion = t->completion_count;
    }
    t->completion_count++;
    t->stamps = arena_array(a, (size_t)t->completion_count, sizeof *t->stamps);
}

// ---- trials ----

static int place_trial(struct tally *t, const struct record_trial *p, struct tally_trial *out,
                       struct err *e) {
    const struct experiment *x = t->x;
    *out = (struct tally_trial){.planned = p,
                                .model = experiment_model_index(x, p->model),
                                .length = -1,
                                .column = -1,
                                .repeat = p->repeat};
    int arm = 0;
    while (arm < 3 && strcmp(arm_name((enum arm)arm), p->arm) != 0) arm++;
    out->arm = (enum arm)arm;
    for (int i = 0; i < t->length_count; i++)
        if (t->lengths[i] == p->length) out->length = i;
    int placement = experiment_placement_index(x, p->placement);
    for (int i = 0; i < t->column_count; i++)
        if (t->columns[i].placement == placement && depth_is(p->depth, t->columns[i].place))
            out->column = i;
    bool known = out->model >= 0 && arm < 3 && p->repeat >= 0 &&
                 (out->length >= 0 || arm == ARM_SHORT) && (out->column >= 0 || arm != ARM_PLACED);
    if (!known)
        FAIL(e, ERR_RECORD,
             "trial %s: the experiment has no such model, arm, length or placement; the record and "
             "the experiment do not belong together",
             p->key);
    if (p->repeat >= t->repeats) t->repeats = p->repeat + 1;
    if (p->sample >= t->samples) t->samples = p->sample + 1;
    return 0;
}

static int take_verdicts(struct tally *t, struct tally_trial *trial, struct arena *a,
                         struct err *e) {
    const struct experiment *x = t->x;
    const struct record_outcome *o = trial->outcome;
    if (o == NULL || o->status != STATUS_OK) return 0;
    trial->verdicts = arena_array(a, (size_t)x->constraint_count + 1, sizeof *trial->verdicts);
    for (int c = 0; c < x->constraint_count; c++) {
        for (int i = 0; i < o->verdict_count; i++)
            if (strcmp(o->verdicts[i].constraint, x->constraints[c].id) == 0)
                trial->verdicts[c] = &o->verdicts[i];
        if (trial->verdicts[c] == NULL && tally_holds(t, trial, c))
            FAIL(e, ERR_RECORD, "trial %s: its outcome has no verdict on the constraint '%s'",
                 o->key, x->constraints[c].id);
    }
    return 0;
}

int tally_make(const struct experiment *x, const struct record_trial *trials, int64_t trial_count,
               struct record_outcome *const *outcomes, struct arena *a, struct tally *out,
               struct err *e) {
    *out = (struct tally){.x = x, .trial_count = trial_count};
    collect_lengths(out, trials, a);
    int most = 1;
    for (int i = 0; i < x->placement_count; i++)
        most += x->placements[i].place_count + placement_orders(&x->placements[i]);
    out->columns = arena_array(a, (size_t)most, sizeof *out->columns);
    for (int i = 0; i < x->placement_count; i++) add_columns(out, i, trials, a);
    out->trials = arena_array(a, (size_t)trial_count + 1, sizeof *out->trials);
    for (int64_t i = 0; i < trial_count; i++) {
        TRY(place_trial(out, &trials[i], &out->trials[i], e));
        if (outcomes != NULL) out->trials[i].outcome = outcomes[i];
        TRY(take_verdicts(out, &out->trials[i], a, e));
    }
    number_completions(out, a);
    return 0;
}

// ---- rates ----

bool tally_holds(const struct tally *t, const struct tally_trial *trial, int constraint) {
    return constraint == TALLY_ALL_CONSTRAINTS || trial->column < 0 ||
           !placement_leaves_out(&t->x->placements[t->columns[trial->column].placement],
                                 constraint);
}

int tally_wording(const struct tally *t, const struct tally_trial *trial, int constraint) {
    const struct record_trial *p = trial->planned;
    for (int i = 0; constraint != TALLY_ALL_CONSTRAINTS && i < p->variant_count; i++)
        if (strcmp(p->variants[i].constraint, t->x->constraints[constraint].id) == 0)
            return p->variants[i].variant;
    return 0;
}

bool tally_selects(const struct tally *t, const struct tally_trial *trial,
                   const struct tally_filter *f, int constraint) {
    if (trial->arm != f->arm || !tally_holds(t, trial, constraint)) return false;
    if (f->model != TALLY_ANY && trial->model != f->model) return false;
    if (f->length != TALLY_ANY && trial->length != f->length) return false;
    if (f->wording > 0 && tally_wording(t, trial, constraint) != f->wording) return false;
    const int column = tally_column(t, trial, constraint);
    if (f->column != TALLY_ANY && column != f->column) return false;
    if (f->placement == TALLY_ANY && !f->has_place) return true;
    if (column < 0) return false;
    const struct tally_column *c = &t->columns[column];
    return (f->placement == TALLY_ANY || c->placement == f->placement) &&
           (!f->has_place || place_equal(c->place, f->place));
}

enum verdict tally_verdict(const struct tally *t, const struct tally_trial *trial, int constraint) {
    assert(trial->verdicts != NULL);
    if (constraint != TALLY_ALL_CONSTRAINTS) return trial->verdicts[constraint]->verdict;
    bool seen[4] = {false};
    for (int c = 0; c < t->x->constraint_count; c++)
        if (trial->verdicts[c] != NULL) seen[trial->verdicts[c]->verdict] = true;
    return seen[VERDICT_VIOLATED]   ? VERDICT_VIOLATED
           : seen[VERDICT_UNSCORED] ? VERDICT_UNSCORED
           : seen[VERDICT_OMITTED]  ? VERDICT_OMITTED
                                    : VERDICT_MET;
}

// Near misses of what is not met, and values of distractors.
static void count_values(const struct tally *t, const struct tally_trial *trial, int constraint,
                         struct summary_rate *r) {
    bool near = false, copied = false;
    for (int c = 0; c < t->x->constraint_count; c++) {
        const struct record_verdict *v = trial->verdicts[c];
        if (v == NULL || (constraint != TALLY_ALL_CONSTRAINTS && constraint != c)) continue;
        near |= v->verdict != VERDICT_MET && v->near_count > 0;
        copied |= v->copied_count > 0;
    }
    r->near += near;
    r->copied += copied;
}

static void count_trial(const struct tally *t, const struct tally_trial *trial, int constraint,
                        enum verdict counted, struct summary_rate *r,
                        struct stats_cluster *cluster) {
    enum verdict v = tally_verdict(t, trial, constraint);
    bool met = v == VERDICT_MET, finished = reply_finished(trial->outcome->finish);
    r->n++;
    r->met += met;
    r->omitted += v == VERDICT_OMITTED;
    r->violated += v == VERDICT_VIOLATED;
    r->unscored += v == VERDICT_UNSCORED;
    count_values(t, trial, constraint, r);
    r->finished_n += finished;
    r->finished_met += finished && met;
    cluster->n++;
    cluster->met += v == counted;
}

void tally_begin(struct tally *t) {
    t->stamp++;
}

bool tally_once(struct tally *t, const struct tally_trial *trial) {
    if (t->stamps[trial->completion] == t->stamp) return false;
    t->stamps[trial->completion] = t->stamp;
    return true;
}

static struct summary_rate take_rate(struct tally *t, const struct tally_filter *f, int constraint,
                                     enum verdict counted, bool planned_only) {
    struct summary_rate r = {0};
    struct stats_cluster *clusters = calloc((size_t)t->repeats + 1, sizeof *clusters);
    if (clusters == NULL) mem_exhausted("a rate", (size_t)t->repeats * sizeof *clusters);
    tally_begin(t);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (!tally_selects(t, trial, f, constraint)) continue;
        if (!planned_only && trial->verdicts == NULL) continue;
        if (!tally_once(t, trial)) continue;
        if (planned_only) {
            r.n++;
            clusters[trial->repeat].n++;
        } else {
            count_trial(t, trial, constraint, counted, &r, &clusters[trial->repeat]);
        }
    }
    for (int i = 0; i < t->repeats; i++) r.repeats += clusters[i].n > 0;
    r.underpowered = r.repeats < STATS_REPEATS_LEAST;
    if (r.n > 0 && !planned_only) {
        struct stats_interval interval = stats_clustered(clusters, t->repeats);
        r.rate = (double)(counted == VERDICT_MET ? r.met : r.violated) / r.n;
        r.low = interval.low;
        r.high = interval.high;
        r.effective = stats_clustered_number(clusters, t->repeats);
    }
    free(clusters);
    return r;
}

struct summary_rate tally_rate(struct tally *t, const struct tally_filter *f, int constraint) {
    return take_rate(t, f, constraint, VERDICT_MET, false);
}

struct summary_rate tally_violated(struct tally *t, const struct tally_filter *f, int constraint) {
    return take_rate(t, f, constraint, VERDICT_VIOLATED, false);
}

struct summary_rate tally_planned(struct tally *t, const struct tally_filter *f, int constraint) {
    return take_rate(t, f, constraint, VERDICT_MET, true);
}
