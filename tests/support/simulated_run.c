#include "tests/support/simulated_run.h"

#include "engine/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void simulated_open(struct simulated_run *s, double (*rate)(const struct record_trial *t)) {
    *s = (struct simulated_run){.arena = arena_create("run"), .rate = rate};
    s->models[0] = (struct experiment_model){.id = "toy"};
    s->constraints[0] = (struct experiment_constraint){
        .id = "order", .kind = CONSTRAINT_STATE, .text = STR("The order number is {{code}}.")};
    s->constraints[1] = (struct experiment_constraint){
        .id = "price", .kind = CONSTRAINT_FORBID, .text = STR("Never quote a price.")};
    for (int i = 0; i < 3; i++) s->places[i].depth = i * DEPTH_MOST / 2;
    s->move[0] = 0;
    s->move[1] = 1;
    s->rows[0] = (struct experiment_placement){.id = "order-moves",
                                               .move = s->move,
                                               .move_count = 1,
                                               .places = s->places,
                                               .place_count = 3};
    s->lengths[0] = 512;
    s->lengths[1] = 1024;
    s->x = (struct experiment){.name = "simulated",
                               .seed = 7,
                               .models = s->models,
                               .model_count = 1,
                               .generation = {.max_tokens = 96, .samples = 1},
                               .constraints = s->constraints,
                               .constraint_count = 2,
                               .placements = s->rows,
                               .placement_count = 1,
                               .lengths = s->lengths,
                               .length_count = 2,
                               .repeats = 20,
                               .arms = {true, true, true},
                               .short_tokens = 64,
                               .tolerate_unscored_ppm = 200000,
                               .limit = -1};
    s->r.identity = json_object();
    json_put(s->r.identity, "numerics", json_text_c("bf16-1"));
    json_put(s->r.identity, "backend", json_text_c("cpu"));
}

void simulated_close(struct simulated_run *s) {
    json_decref(s->r.identity);
    arena_destroy(s->arena);
}

static void add_trial(struct simulated_run *s, int model, enum arm arm, int length, int row,
                      struct place place, int repeat, int sample) {
    struct arena *a = s->arena;
    struct record_trial *t = &s->r.trials[s->r.trial_count];
    char spelled[PLACE_TEXT_SIZE], depth[24];
    place_text(place, spelled);
    snprintf(depth, sizeof depth, "%d.%03d", place.depth / 1000, place.depth % 1000);
    bool placed = arm == ARM_PLACED;
    *t = (struct record_trial){.trial = s->r.trial_count++,
                               .model = s->models[model].id,
                               .arm = arm_name(arm),
                               .length = arm == ARM_SHORT ? -1 : length,
                               .placement = placed ? s->rows[row].id : NULL,
                               .depth = placed ? arena_strdup(a, depth) : NULL,
                               .repeat = repeat,
                               .sample = sample};
    t->key = arena_printf(a, "%s/%s/%d/%s@%s/%d/%d", t->model, t->arm, t->length,
                          placed ? t->placement : "-", placed ? spelled : "-", repeat, sample);
    hash_bytes(t->key, strlen(t->key), t->ids_sha256);
    snprintf(t->seed, sizeof t->seed, "%032x", repeat * 1000 + sample);
    if (!placed) return;
    t->spans = arena_array(a, 1, sizeof *t->spans);
    t->span_count = 1;
    t->spans[0].constraint = s->constraints[s->rows[row].move[0]].id;
    snprintf(t->spans[0].depth, sizeof t->spans[0].depth, "%d.%03d", place.depth / 1000,
             (place.depth % 1000) + repeat % 2);
}

void simulated_plan(struct simulated_run *s) {
    const struct experiment *x = &s->x;
    int places = 0;
    for (int i = 0; i < x->placement_count; i++) places += x->placements[i].place_count;
    size_t most = (size_t)x->model_count * (size_t)x->repeats * (size_t)x->generation.samples *
                  ((size_t)x->length_count * (size_t)(places + 1) + 1);
    s->r.trials = arena_array(s->arena, most, sizeof *s->r.trials);
    s->r.outcomes = arena_array(s->arena, most, sizeof *s->r.outcomes);
    s->r.trial_count = 0;
    struct place none = place_at(0);
    for (int m = 0; m < x->model_count; m++)
        for (int r = 0; r < x->repeats; r++)
            for (int k = 0; k < x->generation.samples; k++) {
                for (int l = 0; l < x->length_count; l++) {
                    for (int row = 0; row < x->placement_count; row++)
                        for (int p = 0; p < x->placements[row].place_count; p++)
                            add_trial(s, m, ARM_PLACED, x->lengths[l], row,
                                      x->placements[row].places[p], r, k);
                    if (x->arms[ARM_ABSENT])
                        add_trial(s, m, ARM_ABSENT, x->lengths[l], 0, none, r, k);
                }
                if (x->arms[ARM_SHORT]) add_trial(s, m, ARM_SHORT, -1, 0, none, r, k);
            }
}

// Uniform, as a trial's own draw would be.
static double draw_of(const struct simulated_run *s, const struct record_trial *t, struct rng *r) {
    if (s->agreement <= 0 || rng_unit(r) >= sqrt(s->agreement)) return rng_unit(r);
    char scope[40];
    snprintf(scope, sizeof scope, "repeat %d", t->repeat);
    struct rng shared = rng_open(s->luck, scope, "simulated");
    return rng_unit(&shared);
}

void simulated_answer(struct simulated_run *s, uint64_t seed) {
    struct rng r = rng_open(seed, "simulated", "verdicts");
    for (int64_t i = 0; i < s->r.trial_count; i++) {
        struct record_outcome *o = arena_alloc(s->arena, sizeof *o);
        *o = (struct record_outcome){.trial = i,
                                     .key = s->r.trials[i].key,
                                     .attempt = 1,
                                     .status = STATUS_OK,
                                     .reply = STR("A reply."),
                                     .finish = "stop",
                                     .answer = {0, 8},
                                     .verdict_count = 2};
        o->verdicts = arena_array(s->arena, 2, sizeof *o->verdicts);
        bool met = draw_of(s, &s->r.trials[i], &r) < s->rate(&s->r.trials[i]);
        o->verdicts[0].constraint = "order";
        o->verdicts[0].verdict = met ? VERDICT_MET : VERDICT_OMITTED;
        o->verdicts[1].constraint = "price";
        o->verdicts[1].verdict = VERDICT_MET;
        s->r.outcomes[i] = o;
    }
    s->r.done_count = s->r.trial_count;
}

struct record_verdict *simulated_verdict(struct simulated_run *s, int64_t i, int c) {
    return &s->r.outcomes[i]->verdicts[c];
}

struct experiment_gate simulated_gate(double bound) {
    return (struct experiment_gate){.id = "g",
                                    .metric = "met_rate",
                                    .of = 0,
                                    .has_at_least = true,
                                    .at_least = bound,
                                    .where = {.model = -1,
                                              .length_tokens = -1,
                                              .placement = -1,
                                              .has_place = true,
                                              .place = place_at(DEPTH_MOST / 2),
                                              .arm = ARM_PLACED},
                                    .pool_length = true};
}
