// Which op tables there are, and which of them this processor may use.
#include "kernels/cpu/ops.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tables.h"

#include <string.h>

static const struct cpu_ops *const tables[] = {
    &cpu_ops_c,        &cpu_ops_c_f32,
#if defined(__x86_64__)
    &cpu_ops_avx2_f32, &cpu_ops_avx2,  &cpu_ops_avx512f, &cpu_ops_avx512_bf16,
#endif
};

const struct cpu_ops *const *cpu_ops_all(int *count) {
    *count = (int)(sizeof tables / sizeof *tables);
    return tables;
}

const struct cpu_ops *cpu_ops_find(enum cpu_numerics numerics, const char *name, const char **why) {
    const struct cpu_ops *best = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (tables[i]->numerics != numerics) continue;
        if (name == NULL || strcmp(tables[i]->name, name) == 0) best = tables[i];
    }
    if (best == NULL && why != NULL) *why = "there is no such table for these numerics";
    return best;
}

size_t cpu_kv_bytes(enum cpu_numerics numerics, uint32_t G, uint32_t E) {
    size_t Ep = (size_t)shape_panels(E) * CPU_PANEL;
    return G * Ep * CPU_PAGE * shape_operand_bytes(numerics);
}

size_t cpu_slice_bytes(enum cpu_numerics numerics, uint32_t rows, uint32_t K, uint32_t N,
                       uint32_t H, uint32_t G, uint32_t E) {
    (void)rows; // blocks of rows have a fixed size
    (void)N;
    (void)H;
    (void)G;
    size_t depth = shape_depth(numerics, K), Ep = (size_t)shape_panels(E) * CPU_PANEL;
    size_t tile = (size_t)SHAPE_TILE_ROWS_MAX * SHAPE_GROUP_PANELS * CPU_PANEL * sizeof(float);
    size_t a = shape_aligned(SHAPE_TILE_ROWS_MAX * depth * sizeof(float));
    size_t row = shape_aligned((size_t)K * sizeof(float));
    size_t panels = SHAPE_GROUP_PANELS * CPU_PANEL * depth * shape_operand_bytes(numerics);
    size_t matmul = tile + a + row + panels;
    size_t scores = (size_t)SHAPE_QUERY_ROWS * CPU_PAGE * sizeof(float);
    size_t outputs = 2 * SHAPE_QUERY_ROWS * Ep * sizeof(float);
    size_t columns = 6 * SHAPE_QUERY_ROWS * sizeof(float);
    size_t queries = shape_aligned((size_t)SHAPE_QUERY_ROWS * E * sizeof(float));
    size_t attention = scores + outputs + columns + queries;
    return shape_aligned(matmul > attention ? matmul : attention);
}
