// The bits themselves: one hash of all logits for each numerics id and model, the same on every
// processor and every op table. A change here is a change of the numerics id (NUMERICS.md).
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "kernels/cpu/ops.h"

#include <string.h>

struct run {
    struct hash *hash;
    size_t bytes;
};

static int add_row(void *context, struct session *s, const struct session_row *row, struct err *e) {
    (void)e;
    struct run *r = context;
    hash_add(r->hash, session_row_logits(s, row), r->bytes);
    return 0;
}

static void hash_model(const char *path, const struct cpu_ops *table, const int32_t *ids,
                       uint32_t count, char hex[HASH_HEX_SIZE]) {
    struct session_options o = {.numerics = table->numerics == CPU_F32 ? "f32" : "bf16-1",
                                .op_table = table->name,
                                .threads = 1};
    struct probe p = probe_open(path, &o);
    struct run r = {hash_open(), p.model->config.V * sizeof(float)};
    struct session_item item = {
        .sequence = probe_sequence(&p), .ids = ids, .count = count, .logits = SESSION_ALL};
    struct session_sink sink = {add_row, &r};
    struct err e = {0};
    ASSERT_OK(session_forward(p.session, &item, 1, &sink, &e), e);
    hash_close(r.hash, hex);
    probe_close(&p);
}

static bool usable(const struct cpu_ops *table) {
    const char *why;
    return cpu_ops_find(table->numerics, table->name, &why) != NULL;
}

// Compares every usable table with the golden hash; prints and counts what differs.
static void compare(const json_t *golden, const char *model, const char *path, const int32_t *ids,
                    uint32_t count, int *findings) {
    int tables;
    const struct cpu_ops *const *all = cpu_ops_all(&tables);
    for (int i = 0; i < tables; i++) {
        if (!usable(all[i])) continue;
        char hex[HASH_HEX_SIZE];
        hash_model(path, all[i], ids, count, hex);
        const char *numerics = all[i]->numerics == CPU_F32 ? "f32" : "bf16-1";
        const char *expected =
            json_string_value(json_object_get(json_object_get(golden, numerics), model));
        if (expected == NULL || strcmp(hex, expected) != 0)
            (*findings)++, print_error("%s %s by %s: %s\n", numerics, model, all[i]->name, hex);
    }
}

static void test_every_model_and_table(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    json_t *golden, *list;
    struct err e = {0};
    int findings = 0;
    ASSERT_OK(json_read_file(test_data(a, "engine/golden/bits.json"), 1 << 20, &golden, &e), e);
    ASSERT_OK(json_read_file(test_data(a, "engine/golden/golden.json"), 1 << 20, &list, &e), e);
    int32_t ids[200];
    uint32_t count = 0;
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(list, "ids"), i, value) {
        assert_true(count < 200);
        ids[count++] = (int32_t)json_integer_value(value);
    }
    json_array_foreach(json_object_get(list, "models"), i, value) {
        const char *model = json_string_value(value);
        const char *path = test_data(a, arena_printf(a, "engine/golden/%s.gguf", model));
        compare(golden, model, path, ids, count, &findings);
    }
    // Beyond two attention blocks.
    static int32_t many[1100];
    probe_ids(17, 320, many, 1100);
    const char *path = probe_model(
        "bits", &(struct tiny_model_options){.seed = 9, .L = 1, .D = 32, .H = 2, .F = 64});
    compare(golden, "tiny-1100", path, many, 1100, &findings);
    json_decref(golden);
    json_decref(list);
    arena_destroy(a);
    assert_int_equal(findings, 0); // each was printed: numerics, model, table, its hash
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_model_and_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
