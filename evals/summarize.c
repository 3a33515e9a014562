#include "evals/summarize.h"

#include "evals/aggregate.h"
#include "evals/contrast.h"
#include "evals/contrast_models.h"
#include "evals/gates.h"
#include "evals/reach.h"
#include "evals/review.h"
#include "evals/stats.h"
#include "evals/summarize_attention.h"
#include "evals/summarize_salience.h"
#include "evals/summarize_words.h"
#include "evals/tally.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTS_MOST = 64, WARNINGS_MOST = 64 };

static void warn(struct summary *s, const char *text) {
    if (s->warning_count < WARNINGS_MOST) s->warnings[s->warning_count++] = text;
}

// ---- who and what ----

static const char *text_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "";
}

// {"Q4_1":210,"F32":61} as "210 Q4_1, 61 F32".
static const char *tensor_types(const json_t *model, struct arena *a) {
    struct buf b = {0};
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(model, "tensor_types"), key, value)
        buf_printf(&b, "%s%lld %s", b.n > 0 ? ", " : "", (long long)json_integer_value(value), key);
    return buf_take(&b, a).p;
}

// Of identity.json; NULL for a model that it does not have.
static const json_t *model_identity(const struct record *r, const char *id) {
    size_t k;
    json_t *stored;
    json_array_foreach(json_object_get(r->identity, "models"), k,
                       stored) if (strcmp(text_of(stored, "id"), id) == 0) return stored;
    return NULL;
}

static void take_models(const struct record *r, const struct experiment *x, struct arena *a,
                        struct summary *s) {
    s->model_count = x->model_count;
    s->models = arena_array(a, (size_t)x->model_count + 1, sizeof *s->models);
    for (int i = 0; i < x->model_count; i++) {
        struct summary_model *m = &s->models[i];
        *m = (struct summary_model){.id = x->models[i].id,
                                    .name = "",
                                    .sha256 = "",
                                    .tensor_types = "",
                                    .numerics = text_of(r->identity, "numerics"),
                                    .backend = text_of(r->identity, "backend")};
        const json_t *stored = model_identity(r, m->id);
        if (stored == NULL) continue;
        m->name = text_of(stored, "name");
        m->sha256 = text_of(stored, "sha256");
        m->tensor_types = tensor_types(stored, a);
        // Several models may run on different backends: their own word comes first.
        if (json_object_get(stored, "numerics") != NULL) m->numerics = text_of(stored, "numerics");
        if (json_object_get(stored, "backend") != NULL) m->backend = text_of(stored, "backend");
    }
}

static void take_constraints(const struct experiment *x, struct arena *a, struct summary *s) {
    static const char *const kinds[] = {"state", "format", "forbid"};
    size_t n = (size_t)x->constraint_count + 1;
    s->constraint_count = x->constraint_count;
    s->constraints = arena_array(a, n, sizeof *s->constraints);
    s->constraint_texts = arena_array(a, n, sizeof *s->constraint_texts);
    s->constraint_kinds = arena_array(a, n, sizeof *s->constraint_kinds);
    for (int i = 0; i < x->constraint_count; i++) {
        s->constraints[i] = x->constraints[i].id;
        s->constraint_texts[i] =
            x->without_texts ? "(not kept)" : str_to_c(a, x->constraints[i].text);
        s->constraint_kinds[i] = kinds[x->constraints[i].kind];
    }
}

static void take_places(const struct tally *t, struct arena *a, struct summary *s) {
    const struct experiment *x = t->x;
    s->lengths = t->lengths;
    s->length_count = t->length_count;
    s->place_count = t->column_count;
    s->places = arena_array(a, (size_t)t->column_count + 1, sizeof *s->places);
    for (int i = 0; i < t->column_count; i++) {
        const struct experiment_placement *row = &x->placements[t->columns[i].placement];
        struct place place = t->columns[i].place;
        char spelled[PLACE_TEXT_SIZE];
        place_text(place, spelled);
        struct buf moved = {0};
        if (row->scatter) buf_add_c(&moved, "each of ");
        for (int k = 0; k < row->move_count; k++)
            buf_printf(&moved, "%s%s",
                       k == 0         ? ""
                       : row->scatter ? ", "
                                      : "+",
                       x->constraints[row->move[k]].id);
        s->places[i] =
            (struct summary_place){.placement = row->id,
                                   .place = arena_strdup(a, spelled),
                                   .depth = place_is_depth(place) ? place.depth : DEPTH_NONE,
                                   .moved = arena_memdup(a, moved.p, moved.n)};
        buf_free(&moved);
    }
}

// ---- counts ----

static void add_count(struct summary *s, const char *what, int64_t by) {
    for (int i = 0; i < s->count_count; i++) {
        if (strcmp(s->counts[i].what, what) != 0) continue;
        s->counts[i].count += by;
        return;
    }
    if (s->count_count < COUNTS_MOST)
        s->counts[s->count_count++] = (struct summary_count){.what = what, .count = by};
}

static struct summary_count *find_count(struct summary *s, const char *what) {
    for (int i = 0; i < s->count_count; i++)
        if (strcmp(s->counts[i].what, what) == 0) return &s->counts[i];
    return NULL;
}

static void count_verdicts(const struct tally *t, const struct tally_trial *trial, struct arena *a,
                           struct summary *s, int64_t *verdicts) {
    for (int c = 0; c < t->x->constraint_count; c++) {
        const struct record_verdict *v = trial->verdicts[c];
        if (v == NULL) continue; // left out of this row
        ++*verdicts;
        if (v->verdict != VERDICT_UNSCORED) continue;
        add_count(s, "unscored", 1);
        add_count(s, arena_printf(a, "unscored: %s", v->reason), 1);
    }
}

static int by_name(const void *left, const void *right) {
    const struct summary_count *a = left, *b = right;
    return strcmp(a->what, b->what);
}

// error and invalid are shares of the trials that were run; unscored of the placed arm's verdicts.
static void take_counts(const struct tally *t, struct arena *a, struct summary *s) {
    const struct experiment *x = t->x;
    s->counts = arena_array(a, COUNTS_MOST, sizeof *s->counts);
    int64_t verdicts = 0;
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        const struct record_outcome *o = trial->outcome;
        if (o == NULL) continue;
        s->done++;
        if (o->status == STATUS_OK) {
            s->ok++;
            if (trial->arm == ARM_PLACED) count_verdicts(t, trial, a, s, &verdicts);
            continue;
        }
        bool invalid = o->status == STATUS_INVALID;
        *(invalid ? &s->invalid : &s->error) += 1;
        const char *kind = invalid ? "invalid" : "error";
        add_count(s, kind, 1);
        add_count(s, arena_printf(a, "%s: %s", kind, o->reason_code ? o->reason_code : "unknown"),
                  1);
    }
    qsort(s->counts, (size_t)s->count_count, sizeof *s->counts, by_name);
    for (int i = 0; i < s->count_count; i++) {
        bool unscored = strncmp(s->counts[i].what, "unscored", 8) == 0;
        s->counts[i].share = (double)s->counts[i].count / (double)(unscored ? verdicts : s->done);
    }
    const struct {
        const char *what;
        int32_t tolerated_ppm;
    } limits[] = {{"error", x->tolerate_errors_ppm},
                  {"invalid", x->tolerate_invalid_ppm},
                  {"unscored", x->tolerate_unscored_ppm}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct summary_count *c = find_count(s, limits[i].what);
        if (c == NULL || c->share * 1e6 <= limits[i].tolerated_ppm) continue;
        c->beyond_tolerated = true;
        warn(s, arena_printf(a,
                             "%s: %lld (%.1f %%) is beyond the %.1f %% that the experiment "
                             "tolerates; the run ends with exit code 1",
                             c->what, (long long)c->count, 100 * c->share,
                             limits[i].tolerated_ppm / 1e4));
    }
}

static bool any_unscored(const struct tally *t, const struct tally_trial *trial) {
    for (int c = 0; c < t->x->constraint_count; c++)
        if (trial->verdicts[c] != NULL && trial->verdicts[c]->verdict == VERDICT_UNSCORED)
            return true;
    return false;
}

static void count_models(const struct tally *t, struct summary *s) {
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        struct summary_model *m = &s->models[trial->model];
        m->planned++;
        if (trial->outcome == NULL) continue;
        m->done++;
        m->ok += trial->outcome->status == STATUS_OK;
        m->invalid += trial->outcome->status == STATUS_INVALID;
        m->error += trial->outcome->status == STATUS_ERROR;
        m->unscored += trial->verdicts != NULL && any_unscored(t, trial);
    }
}

// ---- tables ----

struct depths {
    int32_t low, high;
    int64_t sum, count;
};

static void add_depth(struct depths *d, int32_t depth) {
    if (d->count == 0 || depth < d->low) d->low = depth;
    if (d->count == 0 || depth > d->high) d->high = depth;
    d->sum += depth;
    d->count++;
}

// What really stood there: depths of the constraint's own spans (of the moved ones for "all"), the
// mean depth of what the row moves, for the curve, and the prompts' lengths.
static void take_real(const struct tally *t, const struct tally_filter *f, int constraint,
                      struct summary_cell *cell) {
    const struct experiment *x = t->x;
    const struct experiment_placement *row = &x->placements[t->columns[f->column].placement];
    bool itself = constraint >= 0 && placement_moves(row, constraint);
    struct depths own = {0}, moved = {0};
    for (int64_t i = 0; i < t->trial_count; i++) {
        if (!tally_selects(t, &t->trials[i], f, constraint)) continue;
        const struct record_trial *p = t->trials[i].planned;
        if (cell->tokens_low == 0 || p->prompt_tokens < cell->tokens_low)
            cell->tokens_low = p->prompt_tokens;
        if (p->prompt_tokens > cell->tokens_high) cell->tokens_high = p->prompt_tokens;
        for (int k = 0; k < p->span_count; k++) {
            int32_t depth = tally_depth(p->spans[k].depth);
            int c = experiment_constraint_index(x, p->spans[k].constraint);
            if (depth == DEPTH_NONE || c < 0) continue;
            bool moves = placement_moves(row, c);
            if (constraint < 0 ? moves : c == constraint) add_depth(&own, depth);
            if (itself ? c == constraint : moves) add_depth(&moved, depth);
        }
    }
    cell->depth_real_low = own.low;
    cell->depth_real_high = own.high;
    cell->depth_mean =
        moved.count > 0 ? (int32_t)((moved.sum + moved.count / 2) / moved.count) : DEPTH_NONE;
}

static void take_cells(struct tally *t, int model, int constraint, struct arena *a,
                       struct summary_table *table) {
    size_t most = (size_t)t->length_count * (size_t)t->column_count;
    table->cells = arena_array(a, most + 1, sizeof *table->cells);
    for (int length = 0; length < t->length_count; length++) {
        for (int column = 0; column < t->column_count; column++) {
            struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
            f.model = model;
            f.length = length;
            f.column = column;
            if (tally_planned(t, &f, constraint).n == 0)
                continue; // cut away by --only, or not in this row
            struct summary_cell *cell = &table->cells[table->cell_count++];
            *cell = (struct summary_cell){.length = length, .column = column};
            cell->rate = tally_rate(t, &f, constraint);
            take_real(t, &f, constraint, cell);
            const struct summary_rate *absent = &table->absent[length];
            cell->has_lift = absent->n > 0 && cell->rate.n > 0;
            if (cell->has_lift) cell->lift = cell->rate.rate - absent->rate;
        }
    }
}

static void take_table(struct tally *t, int model, const struct reach *reach, int constraint,
                       struct arena *a, struct summary_table *table) {
    const struct experiment *x = t->x;
    *table = (struct summary_table){.model = x->models[model].id,
                                    .constraint = experiment_constraint_id(x, constraint)};
    table->absent = arena_array(a, (size_t)t->length_count + 1, sizeof *table->absent);
    struct tally_filter f = TALLY_EVERYTHING(ARM_ABSENT);
    f.model = model;
    for (f.length = 0; f.length < t->length_count; f.length++)
        table->absent[f.length] = tally_rate(t, &f, constraint);
    f = TALLY_EVERYTHING(ARM_SHORT);
    f.model = model;
    table->brief = tally_rate(t, &f, constraint);
    take_cells(t, model, constraint, a, table);
    reach_cells(reach, t, model, constraint, a, table);
    summarize_remarks(x, t, model, reach, constraint, a, table);
    if (constraint >= 0) summarize_salience(t, model, constraint, a, table);
}

static void take_tables(const struct record *r, struct tally *t, struct arena *a,
                        struct summary *s) {
    const struct experiment *x = t->x;
    s->tables = arena_array(a, (size_t)x->model_count * ((size_t)x->constraint_count + 1) + 1,
                            sizeof *s->tables);
    for (int model = 0; model < x->model_count; model++) {
        struct reach reach = reach_of(model_identity(r, x->models[model].id));
        for (int c = 0; c < x->constraint_count; c++)
            take_table(t, model, &reach, c, a, &s->tables[s->table_count++]);
        if (x->constraint_count > 1)
            take_table(t, model, &reach, TALLY_ALL_CONSTRAINTS, a, &s->tables[s->table_count++]);
    }
}

// ---- the whole ----

static void warn_about_run(const struct record *r, struct arena *a, struct summary *s) {
    if (s->partial)
        warn(s, "Partial: --only or --limit cut the plan, so this run is no baseline and its gates "
                "see a part of the experiment.");
    if (!s->complete)
        warn(s, arena_printf(a,
                             "Not finished: %lld of %lld trials are done; the same command goes "
                             "on, and gates decide nothing until then.",
                             (long long)s->done, (long long)s->planned));
    if (r->torn)
        warn(s, "The ledger's last line is torn; that trial is left out and runs again on resume.");
    if (s->repeats < STATS_REPEATS_LEAST)
        warn(s, arena_printf(a,
                             "Underpowered: %d repeat%s; comparisons of placements need 10 at "
                             "least, and intervals of rates are wide.",
                             s->repeats, s->repeats == 1 ? "" : "s"));
}

int summarize(const struct record *r, const struct experiment *x, struct arena *a,
              struct summary *out, struct err *e) {
    struct tally t;
    TRY(tally_make(x, r->trials, r->trial_count, r->outcomes, a, &t, e));
    *out = (struct summary){.experiment = x->name,
                            .request_sha256 = text_of(r->identity, "request_sha256"),
                            .plan_sha256 = text_of(r->identity, "plan_sha256"),
                            .ledger_sha256 = r->ledger_sha256,
                            .evidence_sha256 = r->evidence != NULL ? r->evidence_sha256 : NULL,
                            .partial = r->partial,
                            .repeats = t.repeats,
                            .samples = t.samples,
                            .planned = r->trial_count};
    out->warnings = arena_array(a, WARNINGS_MOST, sizeof *out->warnings);
    take_models(r, x, a, out);
    take_constraints(x, a, out);
    take_places(&t, a, out);
    take_counts(&t, a, out);
    count_models(&t, out);
    out->complete = out->done == out->planned;
    warn_about_run(r, a, out);
    for (int m = 0; m < x->model_count; m++) {
        const char *text = served_warning(&t, m, a);
        if (text != NULL) warn(out, text);
    }
    take_tables(r, &t, a, out);
    aggregate_all(&t, a, &out->aggregates, &out->aggregate_count);
    contrast_all(&t, a, &out->contrasts, &out->contrast_count);
    contrast_models(&t, a, &out->model_contrasts, &out->model_contrast_count);
    struct grids grids = {.arena = a};
    grids_wordings(&t, &grids);
    grids_conflicts(&t, &grids);
    grids_reasoning(&t, &grids);
    grids_thought(&t, &grids);
    grids_served(&t, r, &grids);
    TRY(summarize_attention(r, &t, a, out, &grids, e));
    out->grids = grids.p;
    out->grid_count = grids.count;
    out->does_not_show = summarize_limits(&t, r->evidence != NULL, a);
    TRY(review_sentence(r, a, &out->audit, e));
    return gates_judge(&t, r, out->complete, NULL, a, &out->gates, &out->gate_count, e);
}

int summary_exit_code(const struct summary *s) {
    bool failed = false, undecided = false;
    for (int i = 0; i < s->count_count; i++)
        if (s->counts[i].beyond_tolerated) return 1;
    for (int i = 0; i < s->gate_count; i++) {
        failed |= s->gates[i].result == GATE_FAILED;
        undecided |= s->gates[i].result == GATE_UNDECIDED;
    }
    return failed ? 100 : undecided ? 3 : 0;
}
