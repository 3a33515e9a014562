// The compact form of block-quantized weights: what the file holds, re-ordered once so that sixteen
// outputs are unpacked at a time. w = bf16(scale code + offset) has the bits of the format's own
// formula (kernels/quant.h says why), so a product over compact weights equals the one over panels.
//
// Panels of 16 outputs. A panel holds for each group of 32 or 16 elements of k: 16 fp32 scales, 16
// fp32 offsets where the run has offsets, then the codes, k ascending: one byte a code, [16] for
// each k, or one byte for an even k (low nibble) and the odd k behind it (high nibble), [16] for
// each pair. Panels of one kind that follow each other are a run.
#ifndef LACUNA_KERNELS_CPU_COMPACT_H
#define LACUNA_KERNELS_CPU_COMPACT_H

#include "kernels/cpu/ops.h"

// Rows of a matrix in a quantized format of the file.
struct cpu_compact_part {
    enum tensor_type type;
    uint32_t rows;
    const void *data;
};

// Lays out the runs of a matrix of these parts, one below the other. Returns the bytes of its
// compact form, 0 when a part's format is not quantized.
size_t cpu_compact_plan(const struct cpu_compact_part *parts, int count, uint32_t K,
                        struct cpu_matrix *out);

// Fills panel `panel` of the memory behind the matrix (cpu_compact_plan's bytes, aligned to 64).
// Panels are independent. Returns -1, or the number of a part that holds a NaN or an infinity.
int cpu_compact_pack(const struct cpu_matrix *w, const struct cpu_compact_part *parts, int count,
                     uint32_t panel, uint8_t *memory);

#endif
