#include "evals/agree.h"

#include "evals/compare_internal.h"
#include "evals/contrast_models.h"
#include "evals/stats.h"

#include <string.h>

enum { WARNINGS_MOST = 32 };

// ---- which trials are pairs ----

static const struct record_trial *planned(const struct baseline *b,
                                          const struct baseline_trial *t) {
    return &b->record->trials[t->trial];
}

static enum summary_pairing pairing_of(const struct agreement *g, const struct comparison_pair *p) {
    return contrast_pairing(planned(g->first, p->before), planned(g->second, p->now));
}

static bool is_ok(const struct comparison_pair *p) {
    return p->before->verdicts != NULL && p->now->verdicts != NULL;
}

static bool is_pair(const struct agreement *g, const struct comparison_pair *p) {
    return is_ok(p) && pairing_of(g, p) != PAIRING_NONE;
}

static int64_t count_trials(const struct baseline *b, const bool *taken) {
    int64_t n = 0;
    for (int64_t i = 0; i < b->trial_count; i++) n += taken[b->trials[i].model];
    return n;
}

// Trials of models that have no partner are nobody's.
static void count_alone(struct agreement *g, const struct compare_options *options,
                        struct arena *a) {
    const int *partner = compare_models(g->first, g->second, options, a);
    bool *first = arena_array(a, (size_t)g->first->model_count + 1, sizeof *first);
    bool *second = arena_array(a, (size_t)g->second->model_count + 1, sizeof *second);
    for (int i = 0; i < g->second->model_count; i++) {
        if (partner[i] < 0) continue;
        second[i] = true;
        first[partner[i]] = true;
    }
    g->only_first = count_trials(g->first, first) - g->pairing.pair_count;
    g->only_second = count_trials(g->second, second) - g->pairing.pair_count;
}

static void count_pairs(struct agreement *g) {
    for (int64_t i = 0; i < g->pairing.pair_count; i++) {
        const struct comparison_pair *p = &g->pairing.pairs[i];
        const enum summary_pairing pairing = pairing_of(g, p);
        g->not_ok += !is_ok(p);
        g->other_prompt += is_ok(p) && pairing == PAIRING_NONE;
        if (!is_pair(g, p)) continue;
        g->pairs++;
        g->by_ids += pairing == PAIRING_IDS;
        g->same_text += strcmp(p->before->reply, p->now->reply) == 0;
    }
}

// ---- what they say ----

static void count_verdict(struct agree_row *row, struct stats_cluster *cluster, enum verdict first,
                          enum verdict second) {
    const bool met_first = first == VERDICT_MET, met_second = second == VERDICT_MET;
    row->pairs++;
    row->table[first][second]++;
    row->same_verdict += first == second;
    row->both_met += met_first && met_second;
    row->only_first += met_first && !met_second;
    row->only_second += met_second && !met_first;
    row->neither += !met_first && !met_second;
    cluster->n++;
    cluster->met += met_first == met_second;
}

static int repeats_of(const struct comparison *c) {
    int repeats = 0;
    for (int64_t i = 0; i < c->pair_count; i++)
        if (c->pairs[i].now->repeat >= repeats) repeats = c->pairs[i].now->repeat + 1;
    return repeats;
}

// Calls `each` for every constraint that both sides judge in a pair.
static void walk(const struct agreement *g, const struct comparison_pair *p, int constraint,
                 void (*each)(void *context, const struct comparison_pair *p, int constraint,
                              enum verdict first, enum verdict second),
                 void *context) {
    const struct comparison *c = &g->pairing;
    for (int k = 0; k < c->constraint_count; k++) {
        const int before = c->columns_before[k], now = c->columns_now[k];
        if (constraint >= 0 && k != constraint) continue;
        if (!baseline_judged(p->before, before) || !baseline_judged(p->now, now)) continue;
        each(context, p, k, baseline_verdict(p->before, before), baseline_verdict(p->now, now));
    }
}

struct counting {
    struct agree_row *row;
    struct stats_cluster *clusters; // [repeat]
};

static void count_one(void *context, const struct comparison_pair *p, int constraint,
                      enum verdict first, enum verdict second) {
    struct counting *c = context;
    (void)constraint;
    count_verdict(c->row, &c->clusters[p->now->repeat], first, second);
}

static void add_row(struct agreement *g, int constraint, struct arena *a) {
    const int repeats = repeats_of(&g->pairing);
    struct agree_row row = {.constraint =
                                constraint < 0 ? "all" : g->pairing.constraints[constraint]};
    struct counting counting = {&row,
                                arena_array(a, (size_t)repeats + 1, sizeof *counting.clusters)};
    for (int64_t i = 0; i < g->pairing.pair_count; i++)
        if (is_pair(g, &g->pairing.pairs[i]))
            walk(g, &g->pairing.pairs[i], constraint, count_one, &counting);
    if (row.pairs == 0) return;
    struct stats_cluster *filled = arena_array(a, (size_t)repeats + 1, sizeof *filled);
    for (int r = 0; r < repeats; r++)
        if (counting.clusters[r].n > 0) filled[row.repeats++] = counting.clusters[r];
    const double met[] = {row.both_met, row.only_first, row.only_second, row.neither};
    row.rate = (double)(row.both_met + row.neither) / row.pairs;
    row.interval = stats_clustered(filled, row.repeats);
    row.has_kappa = stats_kappa(met, 2, &row.kappa);
    stats_ac1(met, 2, &row.ac1);
    g->rows[g->row_count++] = row;
}

struct listing {
    struct agreement *g;
    struct arena *arena;
};

static void list_one(void *context, const struct comparison_pair *p, int constraint,
                     enum verdict first, enum verdict second) {
    const struct listing *l = context;
    struct agreement *g = l->g;
    if ((first == VERDICT_MET) == (second == VERDICT_MET)) return;
    g->apart = arena_more(l->arena, g->apart, (size_t)g->apart_count, sizeof *g->apart);
    g->apart[g->apart_count++] =
        (struct agree_apart){p->before->key, g->pairing.constraints[constraint], first, second};
}

// ---- what else there is to know ----

static void warn(struct agreement *g, const char *text) {
    if (g->warning_count < WARNINGS_MOST) g->warnings[g->warning_count++] = text;
}

static const char *temperature_of(const struct baseline *b) {
    const json_t *generation = json_object_get(b->identity, "generation");
    const char *text = json_string_value(json_object_get(generation, "temperature"));
    return text != NULL ? text : "0";
}

static void warn_about(struct agreement *g, struct arena *a) {
    const struct baseline *const sides[] = {g->first, g->second};
    for (int i = 0; i < g->pairing.field_count; i++) {
        const struct comparison_field *f = &g->pairing.fields[i];
        if (strcmp(f->field, "generation") == 0)
            warn(g, arena_printf(a, "the two generate otherwise: %s there, %s here", f->before,
                                 f->after));
    }
    for (int i = 0; i < 2; i++) {
        const struct record *r = sides[i]->record;
        if (strcmp(temperature_of(sides[i]), "0") != 0)
            warn(g, arena_printf(a,
                                 "%s: replies are drawn (temperature %s), so that two runs of one "
                                 "engine would disagree as well",
                                 r->folder, temperature_of(sides[i])));
        if (r->done_count < r->trial_count)
            warn(g, arena_printf(a, "%s: is not finished: %lld of %lld trials", r->folder,
                                 (long long)r->done_count, (long long)r->trial_count));
    }
}

// ---- is there anything to compare? ----

static const char *text_of(const struct baseline *b, const char *key) {
    const char *text = json_string_value(json_object_get(b->identity, key));
    return text != NULL ? text : "";
}

static int check_model(const struct baseline *b, const char *model, struct err *e) {
    for (int i = 0; i < b->model_count; i++)
        if (strcmp(b->models[i], model) == 0) return 0;
    FAIL(e, ERR_USAGE, "%s: has no model %s", b->path, model);
}

static int check_sides(const struct baseline *first, const struct baseline *second,
                       const char *const models[2], struct err *e) {
    if (strcmp(text_of(first, "checks_sha256"), text_of(second, "checks_sha256")) != 0)
        FAIL(e, ERR_UNDECIDED,
             "%s and %s are of different experiments: their checks differ, so that their verdicts "
             "do not mean the same (%s, %s)",
             first->path, second->path, first->experiment, second->experiment);
    if (models == NULL) return 0;
    TRY(check_model(first, models[0], e));
    return check_model(second, models[1], e);
}

static int check_pairs(const struct agreement *g, bool partners, struct err *e) {
    const char *first = g->first->path, *second = g->second->path;
    if (g->pairs > 0) return 0;
    if (!partners)
        FAIL(e, ERR_UNDECIDED,
             "%s and %s have no model of one id; say which are meant with --models", first, second);
    if (g->pairing.pair_count == 0)
        FAIL(e, ERR_UNDECIDED, "%s and %s have no trial in common: %lld there, %lld here", first,
             second, (long long)g->only_first, (long long)g->only_second);
    FAIL(e, ERR_UNDECIDED,
         "%s and %s have no equal prompt: of %lld common trials %lld have other prompts (another "
         "seed, or lengths by another tokenizer: count: FILE with the same file), and %lld are "
         "invalid or ended in an error",
         first, second, (long long)g->pairing.pair_count, (long long)g->other_prompt,
         (long long)g->not_ok);
}

int agree_runs(const struct baseline *first, const struct baseline *second,
               const char *const models[2], struct arena *a, struct agreement *out, struct err *e) {
    const struct compare_options options = {.common = true,
                                            .model_before = models != NULL ? models[0] : NULL,
                                            .model_now = models != NULL ? models[1] : NULL};
    *out = (struct agreement){.first = first, .second = second};
    TRY(check_sides(first, second, models, e));
    compare_pair(first, second, &options, a, &out->pairing);
    const int *partner = compare_models(first, second, &options, a);
    bool partners = false;
    for (int i = 0; i < second->model_count; i++) partners |= partner[i] >= 0;
    count_alone(out, &options, a);
    count_pairs(out);
    TRY(check_pairs(out, partners, e));
    const int constraints = out->pairing.constraint_count;
    out->rows = arena_array(a, (size_t)constraints + 1, sizeof *out->rows);
    add_row(out, -1, a);
    for (int k = 0; constraints > 1 && k < constraints; k++) add_row(out, k, a);
    struct listing listing = {out, a};
    for (int64_t i = 0; i < out->pairing.pair_count; i++)
        if (is_pair(out, &out->pairing.pairs[i]))
            walk(out, &out->pairing.pairs[i], -1, list_one, &listing);
    out->warnings = arena_array(a, WARNINGS_MOST, sizeof *out->warnings);
    warn_about(out, a);
    return 0;
}
