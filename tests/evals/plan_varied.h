// The experiment that the tests of plans vary, planned for a made-up model.
#ifndef LACUNA_TESTS_PLAN_VARIED_H
#define LACUNA_TESTS_PLAN_VARIED_H

#include "engine/base/file.h"
#include "evals/plan.h"
#include "tests/support/fake_provider.h"
#include "tests/support/planned.h"
#include "tests/support/support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena *arena;
static struct provider *fake;

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    fake = fake_provider_open(&(struct fake_options){.start = true, .context_tokens = 4096});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_provider_close(fake);
    arena_destroy(arena);
    return 0;
}

static inline const char *file_put(const char *name, const char *text) {
    struct err e = {0};
    const char *path = path_join(arena, test_folder(), name);
    ASSERT_OK(file_write_atomic(path, str_from(text), &e), e);
    return path;
}

static const char base[] =
    "lacuna: 1\n"
    "name: plan-test\n"
    "seed: 7\n"
    "models:\n"
    "  - {id: fake, path: m.gguf, context_tokens: 4096}\n"
    "generation: {max_tokens: 32}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are a careful assistant.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nState number, day and person.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - id: order\n"
    "    kind: state\n"
    "    text: \"The order number is {{code}}.\"\n"
    "    vars: {code: {kind: digits, count: 5}}\n"
    "    value: \"{{code}}\"\n"
    "    violated: '(?<!\\d)\\d{5}(?!\\d)'\n"
    "    examples: {met: [\"It is {{code}}.\"], not: [\"It is 1{{code}}.\"]}\n"
    "  - id: day\n"
    "    kind: state\n"
    "    text: \"The pickup day is {{day}}.\"\n"
    "    vars: {day: {kind: choice, choices: [Monday, Tuesday, Friday, Sunday]}}\n"
    "    value: \"{{day}}\"\n"
    "  - id: contact\n"
    "    kind: state\n"
    "    text: \"The contact person is {{who}}.\"\n"
    "    vars: {who: {kind: letters, count: 6}}\n"
    "    value: \"{{who}}\"\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end],\n"
    "     others: {day: 25%, contact: 75%}}\n"
    "lengths: {tokens: [256, 512]}\n"
    "repeats: 3\n"
    "arms: [placed, absent, short]\n";

static int load(const char *text, const struct experiment_overrides *o, struct experiment **x,
                struct err *e) {
    return experiment_load(file_put("plan.yaml", text), o, arena, x, e);
}

static inline struct experiment *load_with(const struct experiment_overrides *o) {
    struct err e = {0};
    struct experiment *x;
    ASSERT_OK(load(base, o, &x, &e), e);
    return x;
}

// With "key=value" overrides, closed with NULL.
static inline struct experiment *load_set(const char *first, ...) {
    const char *set[8];
    int count = 0;
    va_list list;
    va_start(list, first);
    for (const char *s = first; s != NULL; s = va_arg(list, const char *)) set[count++] = s;
    va_end(list);
    return load_with(&(struct experiment_overrides){.set = set, .set_count = count, .limit = -1});
}

static inline struct plan make(const struct experiment *x) {
    struct err e = {0};
    struct plan p;
    struct provider *providers[] = {fake, fake};
    ASSERT_OK(plan_make(x, providers, NULL, arena, &p, &e), e);
    return p;
}

#endif
