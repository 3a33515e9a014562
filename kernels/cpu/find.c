// Which op tables there are, and which of them this processor may use; sizes that do not depend on
// the table.
#include "kernels/cpu/ops.h"
#include "kernels/cpu/sample.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tables.h"

#include <string.h>

// From the plain C table of each numerics to the newest instructions.
static const struct cpu_ops *const tables[] = {
    &cpu_ops_c_f32,
#if defined(__x86_64__)
    &cpu_ops_avx2_f32,
#endif
    &cpu_ops_c,
#if defined(__x86_64__)
    &cpu_ops_avx2,     &cpu_ops_avx512f, &cpu_ops_avx512_bf16,
#endif
};
enum { TABLES = sizeof tables / sizeof *tables };

const struct cpu_ops *const *cpu_ops_all(int *count) {
    *count = TABLES;
    return tables;
}

// NULL when the processor and the operating system can run the table, else what is missing.
static const char *processor_lacks(const struct cpu_ops *table) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (table == &cpu_ops_avx2 || table == &cpu_ops_avx2_f32)
        return avx2 ? NULL : "the processor has no AVX2 and FMA";
    if (table == &cpu_ops_avx512f || table == &cpu_ops_avx512_bf16) {
        if (!avx2 || !avx512) return "the processor has no AVX-512 F, BW, VL and DQ";
        if (table == &cpu_ops_avx512_bf16 && !__builtin_cpu_supports("avx512bf16"))
            return "the processor has no AVX512_BF16";
    }
#else
    (void)table;
#endif
    return NULL;
}

static const char *table_refused(const struct cpu_ops *table) {
    const struct cpu_ops *c = table->numerics == CPU_F32 ? &cpu_ops_c_f32 : &cpu_ops_c;
    const char *why = processor_lacks(table);
    if (why == NULL && table != c) why = cpu_probe(table, c);
    return why;
}

const struct cpu_ops *cpu_ops_find(enum cpu_numerics numerics, const char *name, const char **why) {
    const char *reason = "there is no op table of this name for these numerics";
    const struct cpu_ops *best = NULL;
    double best_seconds = 0;
    for (int i = TABLES - 1; i >= 0; i--) {
        const struct cpu_ops *table = tables[i];
        bool plain_c = table == &cpu_ops_c || table == &cpu_ops_c_f32;
        if (table->numerics != numerics) continue;
        if (name != NULL && strcmp(table->name, name) != 0) continue;
        if (best != NULL && plain_c) continue; // never the fastest
        const char *refused = table_refused(table);
        if (refused != NULL) {
            reason = refused;
            continue;
        }
        if (name != NULL || plain_c) return table;
        double seconds = cpu_probe_seconds(table);
        if (best == NULL || seconds < best_seconds) {
            best = table;
            best_seconds = seconds;
        }
    }
    if (best == NULL && why != NULL) *why = reason;
    return best;
}

// K needs G * E * 512 operands, V the same with E rounded up to whole panels; both get V's room.
size_t cpu_kv_bytes(enum cpu_numerics numerics, uint32_t G, uint32_t E) {
    size_t Ep = (size_t)shape_panels(E) * CPU_PANEL;
    return G * Ep * CPU_PAGE * shape_operand_bytes(numerics);
}

// The sums that matmul_slice_of and attention_slice_of lay out, for the tables' largest blocks.
size_t cpu_slice_bytes(enum cpu_numerics numerics, uint32_t rows, uint32_t K, uint32_t N,
                       uint32_t H, uint32_t G, uint32_t E) {
    (void)H; // heads, and outputs of products, are taken in blocks of fixed sizes
    (void)G;
    size_t depth = shape_depth(numerics, K), Ep = (size_t)shape_panels(E) * CPU_PANEL;
    size_t tile = (size_t)SHAPE_TILE_ROWS_MAX * SHAPE_GROUP_PANELS * CPU_PANEL * sizeof(float);
    size_t a = shape_aligned(shape_band_rows(rows) * depth * sizeof(float));
    size_t panels = SHAPE_GROUP_PANELS * CPU_PANEL * depth * shape_operand_bytes(numerics);
    size_t matmul = tile + a + panels + shape_wide_bytes(rows);
    size_t scores = (size_t)SHAPE_QUERY_ROWS * SHAPE_SCORE_STRIDE * sizeof(float);
    size_t outputs = 2 * SHAPE_QUERY_ROWS * Ep * sizeof(float);
    size_t columns = 8 * SHAPE_QUERY_ROWS * sizeof(float);
    size_t queries = shape_aligned((size_t)SHAPE_QUERY_ROWS * E * sizeof(float));
    size_t expanded = SHAPE_EXPANDED_FLOATS * sizeof(float);
    size_t attention = expanded + scores + outputs + columns + queries;
    size_t most = matmul > attention ? matmul : attention, sample = cpu_sample_bytes(N);
    return shape_aligned(most > sample ? most : sample);
}
