// The experiment file: what loads, what it becomes, and what is said about files that do not load.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

static const char *write_file(const char *name, struct str content) {
    struct err e = {0};
    const char *path = path_join(arena, test_folder(), name);
    ASSERT_OK(file_write_atomic(path, content, &e), e);
    return path;
}

// The example of the design, whole.
static const char *const sketch =
    "lacuna: 1\n"
    "name: three-constraints\n"
    "seed: 7\n"
    "models:\n"
    "  - {id: smollm2, path: ../models/m.gguf, backend: auto, context_tokens: 8192}\n"
    "generation: {max_tokens: 96, temperature: 0, samples: 1}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are a careful assistant.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nWrite a short reply.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - id: order\n"
    "    kind: state\n"
    "    text: \"The order number is {{code}}.\"\n"
    "    vars: {code: {kind: digits, count: 5}}\n"
    "    value: \"{{code}}\"                  # the whole value\n"
    "    violated: '(?<!\\d)\\d{5}(?!\\d)'     # after every right value was taken out\n"
    "    examples: {met: [\"Order {{code}}.\"], not: [\"Order 1{{code}}.\", \"\"]}\n"
    "  - {id: day, kind: state, text: \"The pickup day is {{day}}.\", value: \"{{day}}\",\n"
    "     vars: {day: {kind: choice, choices: [Monday, Friday]}}}\n"
    "  - {id: contact, kind: format, text: \"Name a contact.\", met: '[A-Z][a-z]+'}\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end],\n"
    "     others: {day: 25%, contact: 75%}}\n"
    "lengths: {tokens: [512, 1024, 2048], tolerance: 0%}\n"
    "repeats: 20\n"
    "arms: [placed, absent, short]\n"
    "tolerate: {errors: 0%, invalid: 0%, unscored: 20%}\n"
    "primary: {metric: met_rate, of: order, contrast: middle_against_ends}\n"
    "gates:\n"
    "  - {metric: met_rate, of: order, at_least: 0.6, where: {depth: middle}, pool: [length]}\n";

static int load_text(const char *text, const struct experiment_overrides *overrides,
                     struct experiment **x, struct err *e) {
    return experiment_load(write_file("x.yaml", str_from(text)), overrides, arena, x, e);
}

static void sketch_loads(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    ASSERT_OK(load_text(sketch, NULL, &x, &e), e);
    assert_int_equal(x->warning_count, 0);
    struct buf out = {0};
    json_pretty(x->resolved, &out);
    if (getenv("SHOW")) puts(out.p);
    buf_free(&out);
    experiment_close(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sketch_loads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
