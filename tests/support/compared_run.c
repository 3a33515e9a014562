#include "tests/support/compared_run.h"

#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

static void put_hash(json_t *o, const char *key, const char *text) {
    char hex[HASH_HEX_SIZE];
    hash_bytes(text, strlen(text), hex);
    json_put(o, key, json_text_c(hex));
}

static void set_identity(struct simulated_run *s, const char *weights) {
    json_t *o = s->r.identity, *models = json_array(), *generation = json_object();
    json_put(o, "format", json_integer(RECORD_FORMAT));
    json_put(o, "experiment", json_text_c(s->x.name));
    put_hash(o, "plan_sha256", "plan");
    put_hash(o, "checks_sha256", "checks");
    put_hash(o, "analysis_sha256", "analysis");
    json_put(generation, "temperature", json_text_c("0"));
    json_put(o, "generation", generation);
    for (int i = 0; i < s->x.model_count; i++) {
        json_t *model = json_object();
        json_put(model, "id", json_text_c(s->models[i].id));
        put_hash(model, "sha256", weights);
        put_hash(model, "template_sha256", "template");
        json_array_append_new(models, model);
    }
    json_put(o, "models", models);
}

void compared_run(struct simulated_run *s, uint64_t seed, const char *weights) {
    simulated_plan(s);
    simulated_answer(s, seed);
    set_identity(s, weights);
    s->r.folder = "runs/simulated";
    hash_bytes("identity", 8, s->r.identity_sha256);
    hash_bytes("ledger", 6, s->r.ledger_sha256);
    for (int64_t i = 0; i < s->r.trial_count; i++) {
        struct record_trial *t = &s->r.trials[i];
        struct record_outcome *o = s->r.outcomes[i];
        const char *rest = strchr(t->key, '/');
        hash_bytes(rest, strlen(rest), t->prompt_sha256);
        o->reply =
            str_from(arena_printf(s->arena, "order %s", verdict_name(o->verdicts[0].verdict)));
        o->ids = arena_array(s->arena, 2, sizeof *o->ids);
        o->ids[0] = 7;
        o->ids[1] = (int32_t)o->verdicts[0].verdict;
        o->id_count = 2;
    }
}

void compared_side(struct simulated_run *s, struct baseline *out) {
    struct err e = {0};
    ASSERT_OK(baseline_of_record(&s->r, s->arena, out, &e), e);
}
