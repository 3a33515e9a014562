// The tests of the GPU's kernels in one program, and what else tests/gpu/run needs.
#include "tests/gpu/gpu.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

#define TEST(name) int name(void);
#include "gpu_tests.h"
#undef TEST

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {
#define TEST(name) {#name, name},
#include "gpu_tests.h"
#undef TEST
};

static int list_tests(void) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) puts(tests[i].name);
    return 0;
}

// All its cases, or the one.
static int run_cases(const char *name, const char *only) {
    if (only != NULL) cmocka_set_test_filter(only);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(name, tests[i].name) == 0) return tests[i].run();
    fprintf(stderr, "there is no test '%s'\n", name);
    return 2;
}

int main(int count, char **words) {
    const char *verb = count > 1 ? words[1] : "";
    if (count == 2 && strcmp(verb, "list") == 0) return list_tests();
    if (count == 3 && strcmp(verb, "test") == 0) return run_cases(words[2], NULL);
    if (count == 4 && strcmp(verb, "test") == 0) return run_cases(words[2], words[3]);
    if (count == 2 && strcmp(verb, "facts") == 0) return gpu_facts();
    if (count == 3 && strcmp(verb, "rates") == 0) return gpu_rates(words[2]);
    if (count == 4 && strcmp(verb, "model") == 0) return gpu_model(words[2], words[3]);
    if (count == 4 && strcmp(verb, "speeds") == 0) return gpu_speeds(words[2], words[3]);
    fprintf(
        stderr,
        "usage: gpu_tests list | test NAME [CASE] | facts | rates full|small | model SHAPE FILE |\n"
        "                 speeds BENCH.json RATES.json\n");
    return 2;
}
