#include "tests/support/golden_models.h"

#include "tests/support/support.h"

#include <math.h>

static uint32_t element(const json_t *list, size_t i) {
    return (uint32_t)json_integer_value(json_array_get(list, i));
}

int golden_open(void **state) {
    struct arena *a = arena_create("golden");
    struct golden *g = arena_alloc(a, sizeof *g);
    struct err e = {0};
    g->a = a;
    ASSERT_OK(json_read_file(test_data(a, "engine/golden/golden.json"), 1 << 20, &g->index, &e), e);
    const json_t *ids = json_object_get(g->index, "ids");
    const json_t *ranges = json_object_get(g->index, "ranges");
    g->vocabulary = (uint32_t)json_integer_value(json_object_get(g->index, "vocabulary"));
    g->count = (uint32_t)json_array_size(ids);
    g->ids = arena_array(a, g->count, sizeof *g->ids);
    for (size_t i = 0; i < g->count; i++) g->ids[i] = (int32_t)element(ids, i);
    g->range_count = (uint32_t)json_array_size(ranges);
    assert_true(g->count > 0 && g->range_count > 0 && g->range_count <= GOLDEN_RANGES_MOST);
    for (size_t i = 0; i < g->range_count; i++) {
        const json_t *range = json_array_get(ranges, i);
        g->ranges[i] = (struct backend_key_range){element(range, 0), element(range, 1)};
    }
    *state = g;
    return 0;
}

int golden_close(void **state) {
    struct golden *g = *state;
    json_decref(g->index);
    arena_destroy(g->a);
    return 0;
}

static double log_sum(const float *z, uint32_t n) {
    double top = (double)z[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) top = fmax(top, (double)z[i]);
    for (uint32_t i = 0; i < n; i++) sum += exp((double)z[i] - top);
    return top + log(sum);
}

double golden_divergence(const float *reference, const float *z, uint32_t rows, uint32_t n) {
    double sum = 0;
    for (uint32_t r = 0; r < rows; r++, reference += n, z += n) {
        double a = log_sum(reference, n), b = log_sum(z, n);
        for (uint32_t i = 0; i < n; i++) {
            double p = (double)reference[i] - a, q = (double)z[i] - b;
            sum += exp(p) * (p - q);
        }
    }
    return sum / rows;
}
