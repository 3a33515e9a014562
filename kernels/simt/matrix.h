// mma, ldmatrix and cp.async: what kernels see. Loads and copies happen here, in the kernel's own
// translation unit and in the lane that owns them, so that the sanitizers see who read what.
#ifndef LACUNA_KERNELS_SIMT_MATRIX_H
#define LACUNA_KERNELS_SIMT_MATRIX_H

#include "kernels/simt/core.h"

namespace simt {

struct mma_lane {
    uint32_t a[4], b[2];
    float *c;
};
void mma_of_warp(const site &at, const mma_lane *lane);

inline void mma_bf16(const site &at, float (&c)[4], const uint32_t (&a)[4],
                     const uint32_t (&b)[2]) {
    const mma_lane lane = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, c};
    mma_of_warp(at, &lane);
}

// The addresses of the elements that a lane gets: two of each of the four matrices.
struct ldmatrix_lane {
    const uint16_t *element[4][2];
};
void ldmatrix_addresses(const site &at, bool transposed, const void *row, ldmatrix_lane *lane);

inline void ldmatrix(const site &at, bool transposed, uint32_t (&r)[4], const void *row) {
    ldmatrix_lane lane;
    ldmatrix_addresses(at, transposed, row, &lane);
    for (int i = 0; i < 4; i++) r[i] = *lane.element[i][0] | (uint32_t)*lane.element[i][1] << 16;
}

// Stores that the compiler does not turn into calls, of which a sanitizer would not see the caller.
inline void store16(void *to, uint64_t low, uint64_t high) {
    uint64_t *words = (uint64_t *)to;
    words[0] = low;
    words[1] = high;
}

// The target holds NaNs until the wait, so that whoever reads too early shows it.
inline void copy_begin(void *to, const void *from, bool valid) {
    copy_issue(async_copy{to, from, valid});
    store16(to, UINT64_MAX, UINT64_MAX);
}

inline void copy_end(int groups_left) {
    async_copy c;
    while (copy_take(groups_left, &c)) {
        const uint64_t *words = (const uint64_t *)c.from;
        if (c.valid)
            store16(c.to, words[0], words[1]);
        else
            store16(c.to, 0, 0);
    }
}

} // namespace simt

#endif
