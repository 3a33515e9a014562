// libFuzzer: any bytes as an experiment file, and what loads once more from its resolved form.
#include "evals/experiment_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_create("fuzz");
    struct experiment *x = NULL, *y = NULL;
    struct err e = {0};
    struct str text = {arena_memdup(a, data, size), size};
    if (experiment_read(text, "fuzzed.yaml", NULL, a, &x, &e) == 0) {
        int again = experiment_from_json(x->resolved, "resolved.json", ".", a, &y, &e);
        assert(again == 0 && json_equal(x->resolved, y->resolved));
        experiment_close(x);
        experiment_close(y);
    }
    arena_destroy(a);
    return 0;
}
