// Contrasts between two simulated models: what is paired, what the numbers are, level and effects.
#include "tests/support/support.h"

#include "evals/stats.h"
#include "evals/summarize.h"
#include "tests/support/simulated_run.h"

#include <math.h>
#include <string.h>

static double better = 0.9, worse = 0.5;

static double by_model(const struct record_trial *t) {
    return strcmp(t->model, "toy") == 0 ? better : worse;
}

enum same { SAME_IDS, SAME_TEXT, SAME_NOTHING };

static void open_two(struct simulated_run *s, enum same same, uint64_t seed) {
    simulated_open(s, by_model);
    s->models[1] = (struct experiment_model){.id = "other"};
    s->x.model_count = 2;
    simulated_plan(s);
    for (int64_t i = 0; i < s->r.trial_count; i++) {
        struct record_trial *t = &s->r.trials[i];
        const char *cell = strchr(t->key, '/');
        // Prompts differ by the template even where the messages are equal.
        hash_bytes(t->key, strlen(t->key), t->prompt_sha256);
        if (same != SAME_NOTHING) hash_bytes(cell, strlen(cell), t->text_sha256);
        if (same == SAME_IDS) hash_bytes(cell, strlen(cell), t->ids_sha256);
    }
    simulated_answer(s, seed);
}

static const struct summary_contrast *find(const struct summary *s, const char *constraint,
                                           const char *scope) {
    for (int i = 0; i < s->model_contrast_count; i++)
        if (strcmp(s->model_contrasts[i].constraint, constraint) == 0 &&
            strcmp(s->model_contrasts[i].scope, scope) == 0)
            return &s->model_contrasts[i];
    fail_msg("no contrast of %s at %s", constraint, scope);
    return NULL;
}

static double rate(const struct simulated_run *s, const char *model, int length) {
    int n = 0, met = 0;
    for (int64_t i = 0; i < s->r.trial_count; i++) {
        const struct record_trial *t = &s->r.trials[i];
        if (strcmp(t->model, model) != 0 || strcmp(t->arm, "placed") != 0) continue;
        if (length > 0 && t->length != length) continue;
        n++;
        met += s->r.outcomes[i]->verdicts[0].verdict == VERDICT_MET;
    }
    return (double)met / n;
}

static void take(struct simulated_run *s, struct summary *out) {
    struct err e = {0};
    ASSERT_OK(summarize(&s->r, &s->x, s->arena, out, &e), e);
}

static void pairs_where_prompts_are_equal(void **state) {
    (void)state;
    static const char *const said[] = {"paired by repeat, equal token ids",
                                       "paired by repeat, equal text",
                                       "unpaired, as the two get different prompts"};
    static const enum summary_pairing pairing[] = {PAIRING_IDS, PAIRING_TEXT, PAIRING_NONE};
    for (int same = SAME_IDS; same <= SAME_NOTHING; same++) {
        struct simulated_run s;
        struct summary out;
        better = 0.9;
        worse = 0.4;
        open_two(&s, (enum same)same, 11);
        take(&s, &out);
        assert_int_equal(out.model_contrast_count, 3 * 3); // order, price, all; 512, 1024, both
        const struct summary_contrast *c = find(&out, "order", "all lengths");
        assert_int_equal(c->pairing, pairing[same]);
        assert_true(strstr(c->sentence, said[same]) != NULL);
        assert_true(strstr(c->sentence, "more often by toy than by other") != NULL);
        assert_true(strstr(c->sentence, "Difference shown") != NULL);
        assert_string_equal(c->model, "toy");
        assert_string_equal(c->other, "other");
        assert_true(fabs(c->effect - (rate(&s, "toy", 0) - rate(&s, "other", 0))) < 1e-12);
        assert_true(c->low < c->effect && c->effect < c->high && c->p <= c->p_holm);
        c = find(&out, "order", "length 1024");
        assert_true(fabs(c->effect - (rate(&s, "toy", 1024) - rate(&s, "other", 1024))) < 1e-12);
        c = find(&out, "price", "all lengths"); // always met by both
        assert_true(c->effect == 0 && c->p == 1 && c->low < 0 && c->high > 0);
        simulated_close(&s);
    }
}

// One prompt that differs, and the models are no pairs.
static void one_difference_is_enough(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    open_two(&s, SAME_IDS, 3);
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (strstr(s.r.trials[i].key, "other/placed/512/order-moves@middle/7/0") != NULL)
            hash_bytes("x", 1, s.r.trials[i].ids_sha256);
    take(&s, &out);
    assert_int_equal(find(&out, "order", "all lengths")->pairing, PAIRING_TEXT);
    simulated_close(&s);
    simulated_open(&s, by_model); // one model: nothing to compare
    simulated_plan(&s);
    simulated_answer(&s, 3);
    take(&s, &out);
    assert_int_equal(out.model_contrast_count, 0);
    simulated_close(&s);
}

static void equal_models_seldom_differ(void **state) {
    (void)state;
    enum { ROUNDS = 40 };
    better = worse = 0.7;
    for (int same = SAME_IDS; same <= SAME_NOTHING; same += 2) {
        int alarms = 0;
        for (int i = 0; i < ROUNDS; i++) {
            struct simulated_run s;
            struct summary out;
            open_two(&s, (enum same)same, 50 + (uint64_t)i);
            take(&s, &out);
            for (int k = 0; k < out.model_contrast_count; k++)
                if (strstr(out.model_contrasts[k].sentence, "Difference shown") != NULL) {
                    alarms++;
                    break;
                }
            simulated_close(&s);
        }
        assert_in_range(alarms, 0, 6); // 5 % of 40 is 2
    }
}

static void few_repeats_are_underpowered(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    better = 1;
    worse = 0;
    simulated_open(&s, by_model);
    s.models[1] = (struct experiment_model){.id = "other"};
    s.x.model_count = 2;
    s.x.repeats = 8;
    simulated_plan(&s);
    simulated_answer(&s, 1);
    take(&s, &out);
    const struct summary_contrast *c = find(&out, "order", "all lengths");
    assert_true(c->underpowered && !c->has_interval && fabs(c->effect - 1) < 1e-12);
    assert_true(strstr(c->sentence, "Underpowered: 8 repeats") != NULL);
    simulated_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_where_prompts_are_equal),
        cmocka_unit_test(one_difference_is_enough),
        cmocka_unit_test(equal_models_seldom_differ),
        cmocka_unit_test(few_repeats_are_underpowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
