// A small experiment planned for a made-up model: what the tests of places, wordings and conflicts
// share. Placements are given by each test, and so may be overrides.
#ifndef LACUNA_TESTS_PLAN_SAMPLE_H
#define LACUNA_TESTS_PLAN_SAMPLE_H

#include "engine/base/file.h"
#include "evals/plan.h"
#include "evals/summarize.h"
#include "tests/support/fake_provider.h"
#include "tests/support/planned.h"
#include "tests/support/support.h"

#include <string.h>

static struct arena *arena;
static struct provider *fake;
static const char *overrides[8]; // "key=value", set by a test; forgotten behind it
static int override_count;

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    fake = fake_provider_open(&(struct fake_options){.start = true, .context_tokens = 4096});
    override_count = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_provider_close(fake);
    arena_destroy(arena);
    return 0;
}

static inline void override(const char *text) {
    overrides[override_count++] = text;
}

static const char head[] =
    "lacuna: 1\n"
    "name: sample\n"
    "seed: 7\n"
    "models: [{id: fake, path: m.gguf, context_tokens: 4096}]\n"
    "generation: {max_tokens: 32}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are a careful assistant.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nState number, day and person.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is {{code}}.\", value: \"{{code}}\",\n"
    "     vars: {code: {kind: digits, count: 5}}}\n"
    "  - {id: day, kind: state, text: \"The pickup day is {{day}}.\", value: \"{{day}}\",\n"
    "     vars: {day: {kind: choice, choices: [Monday, Tuesday, Friday, Sunday]}}}\n"
    "  - {id: contact, kind: state, text: \"The contact person is {{who}}.\",\n"
    "     vars: {who: {kind: letters, count: 6}}, value: \"{{who}}\"}\n"
    "lengths: {tokens: [256]}\n"
    "repeats: 4\n"
    "arms: [placed, absent]\n"
    "placements:\n";

static inline int load(const char *placements, const char *only, struct experiment **x,
                       struct err *e) {
    const char *path = path_join(arena, test_folder(), "sample.yaml");
    test_write(path, str_from(arena_printf(arena, "%s%s", head, placements)));
    const struct experiment_overrides o = {
        .set = overrides, .set_count = override_count, .only = only, .limit = -1};
    return experiment_load(path, &o, arena, x, e);
}

static inline struct plan make(const char *placements, const char *only, struct experiment **x) {
    struct err e = {0};
    struct plan p;
    struct provider *providers[] = {fake, fake};
    ASSERT_OK(load(placements, only, x, &e), e);
    ASSERT_OK(plan_make(*x, providers, NULL, arena, &p, &e), e);
    return p;
}

// Outcomes of a made-up model: `met` says whether a reply meets a constraint.
static inline struct record made_up(const struct plan *p, const struct experiment *x,
                                    bool (*met)(const struct record_trial *t, int constraint)) {
    struct record_outcome **list = arena_array(arena, (size_t)p->trial_count + 1, sizeof *list);
    for (int64_t i = 0; i < p->trial_count; i++) {
        const struct record_trial *t = &p->trials[i];
        struct record_outcome *o = list[i] = arena_alloc(arena, sizeof *o);
        *o = (struct record_outcome){.trial = i, .key = t->key, .attempt = 1, .finish = "stop"};
        o->verdicts = arena_array(arena, (size_t)x->constraint_count + 1, sizeof *o->verdicts);
        for (int c = 0; c < x->constraint_count; c++)
            o->verdicts[o->verdict_count++] =
                (struct record_verdict){.constraint = x->constraints[c].id,
                                        .verdict = met(t, c) ? VERDICT_MET : VERDICT_OMITTED};
    }
    return (struct record){.trials = p->trials,
                           .trial_count = p->trial_count,
                           .outcomes = list,
                           .done_count = p->trial_count};
}

#endif
