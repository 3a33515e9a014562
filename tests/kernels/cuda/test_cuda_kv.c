// Keys and values reach their places in the pages of several sequences, and nothing else is
// touched; the first row that is not finite is told.
#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/kv.h"

enum { SPANS_MOST = 4, PAGES = 3, LAYER_GAP = 48 };

struct layout {
    uint32_t G, E;
    size_t offset, page_bytes; // of the layer in a page, of a page
};

// Where a key (part 0) or value (part 1) stands in a page, in elements behind the layer's offset.
static size_t place(const struct layout *l, int part, uint32_t g, uint32_t slot, uint32_t e) {
    return (((size_t)part * l->G + g) * ATTENTION_PAGE + slot) * l->E + e;
}

struct kv_case {
    struct layout layout;
    uint32_t spans, rows, ld;
    struct attention_span span[SPANS_MOST];
    uint8_t *pages; // [SPANS_MOST][PAGES], as they should become
    uint16_t *k, *v;
};

static uint16_t some_finite(struct rng *r) {
    uint16_t bits = (uint16_t)rng_u32(r);
    return (bits & 0x7f80u) == 0x7f80u ? (uint16_t)(bits & 0x807fu) : bits;
}

static uint16_t *operands(struct rng *r, uint32_t rows, uint32_t ld) {
    uint16_t *x = ops_alloc((size_t)rows * ld * 2);
    for (size_t i = 0; i < (size_t)rows * ld; i++) x[i] = some_finite(r);
    return x;
}

static struct kv_case draw(struct rng *r) {
    struct kv_case c = {.layout = {.G = 1 + ops_below(r, 3), .E = 8 * (1 + ops_below(r, 5))},
                        .spans = 1 + ops_below(r, SPANS_MOST)};
    c.layout.offset = LAYER_GAP;
    c.layout.page_bytes = 2 * LAYER_GAP + (size_t)4 * c.layout.G * c.layout.E * ATTENTION_PAGE;
    for (uint32_t i = 0; i < c.spans; i++) {
        struct attention_span *span = &c.span[i];
        *span = (struct attention_span){.first_row = c.rows, .rows = 1 + ops_below(r, 40)};
        uint32_t positions =
            ops_below(r, 2) ? 2 * ATTENTION_PAGE - 20 : PAGES * ATTENTION_PAGE - 40;
        span->first_position = ops_below(r, positions + 1);
        c.rows += span->rows;
    }
    c.ld = device_stride(c.layout.G * c.layout.E);
    c.k = operands(r, c.rows, c.ld);
    c.v = operands(r, c.rows, c.ld);
    size_t bytes = SPANS_MOST * PAGES * c.layout.page_bytes;
    c.pages = ops_alloc(bytes);
    for (size_t i = 0; i < bytes; i++) c.pages[i] = (uint8_t)ops_below(r, 256);
    return c;
}

static void drop(struct kv_case *c) {
    free(c->k);
    free(c->v);
    free(c->pages);
}

// Appends on the device; gives the pages as they became.
static uint8_t *append(struct kv_case *c, uint32_t *bad_row) {
    size_t bytes = SPANS_MOST * PAGES * c->layout.page_bytes;
    uint8_t *pages = device_copy(c->pages, bytes);
    uint8_t *table[SPANS_MOST * PAGES];
    for (int i = 0; i < SPANS_MOST * PAGES; i++)
        table[i] = pages + (size_t)i * c->layout.page_bytes;
    uint8_t **device_table = device_copy(table, sizeof table);
    for (uint32_t i = 0; i < c->spans; i++)
        c->span[i].pages = (const uint8_t *const *)device_table + (size_t)i * PAGES;
    uint32_t none = UINT32_MAX;
    size_t row_bytes = (size_t)c->rows * c->ld * 2;
    struct kv_call call = {.G = c->layout.G,
                           .E = c->layout.E,
                           .page_offset = c->layout.offset,
                           .spans = device_copy(c->span, sizeof c->span),
                           .span_count = c->spans,
                           .rows = c->rows,
                           .k = device_copy(c->k, row_bytes),
                           .v = device_copy(c->v, row_bytes),
                           .ld = c->ld,
                           .bad_row = device_copy(&none, sizeof none)};
    ASSERT_CUDA(kv_append_launch(NULL, &call));
    uint32_t *told = device_take(call.bad_row, sizeof none);
    *bad_row = *told;
    free(told);
    ASSERT_CUDA(cudaFree(device_table));
    ASSERT_CUDA(cudaFree((void *)call.spans));
    ASSERT_CUDA(cudaFree((void *)call.k));
    ASSERT_CUDA(cudaFree((void *)call.v));
    return device_take(pages, bytes);
}

// What the pages should become, by the definition of their layout.
static void expect(struct kv_case *c) {
    const struct layout *l = &c->layout;
    for (uint32_t i = 0; i < c->spans; i++)
        for (uint32_t t = 0; t < c->span[i].rows; t++) {
            uint32_t position = c->span[i].first_position + t, row = c->span[i].first_row + t;
            uint8_t *page = c->pages + (i * PAGES + position / ATTENTION_PAGE) * l->page_bytes;
            uint16_t *layer = (uint16_t *)(page + l->offset);
            for (uint32_t g = 0; g < l->G; g++)
                for (uint32_t e = 0; e < l->E; e++) {
                    size_t from = (size_t)row * c->ld + g * l->E + e;
                    uint32_t slot = position % ATTENTION_PAGE;
                    layer[place(l, 0, g, slot, e)] = c->k[from];
                    layer[place(l, 1, g, slot, e)] = c->v[from];
                }
        }
}

static void test_append(void **state) {
    (void)state;
    struct rng r = rng_open(91, "cuda", "kv");
    for (int round = 0; round < 20; round++) {
        struct kv_case c = draw(&r);
        uint32_t bad_row;
        uint8_t *got = append(&c, &bad_row);
        assert_int_equal(bad_row, UINT32_MAX);
        expect(&c);
        ops_assert_same(c.pages, got, SPANS_MOST * PAGES * c.layout.page_bytes, "G %u E %u",
                        c.layout.G, c.layout.E);
        free(got);
        drop(&c);
    }
}

static void test_not_finite(void **state) {
    (void)state;
    static const uint16_t bad[] = {0x7f80, 0xff80, 0x7fc1, 0xff81};
    struct rng r = rng_open(92, "cuda", "kv");
    for (int round = 0; round < 20; round++) {
        struct kv_case c = draw(&r);
        uint32_t first = ops_below(&r, c.rows), later = first + ops_below(&r, c.rows - first);
        uint32_t width = c.layout.G * c.layout.E, bad_row;
        uint16_t *in = round % 2 ? c.k : c.v;
        in[(size_t)later * c.ld + ops_below(&r, width)] = bad[round % 4];
        in[(size_t)first * c.ld + ops_below(&r, width)] = bad[(round + 1) % 4];
        free(append(&c, &bad_row));
        assert_int_equal(bad_row, first);
        drop(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_not_finite),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("cuda kv", tests, NULL, NULL);
}
