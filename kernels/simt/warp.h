// Shuffles, votes and the barrier of a warp.
#ifndef LACUNA_KERNELS_SIMT_WARP_H
#define LACUNA_KERNELS_SIMT_WARP_H

#include "kernels/simt/core.h"

#include <cstring>

namespace simt {

enum shuffle_kind { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };

struct shuffle_input {
    uint64_t bits;
    int argument, width;
};
uint64_t shuffle(const site &at, shuffle_kind kind, unsigned mask, uint64_t bits, int argument,
                 int width);

template <class value>
value shuffle_value(const site &at, shuffle_kind kind, unsigned mask, value v, int argument,
                    int width = warpSize) {
    static_assert(sizeof v <= sizeof(uint64_t) && std::is_trivially_copyable<value>::value,
                  "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    bits = shuffle(at, kind, mask, bits, argument, width);
    memcpy((void *)&v, &bits, sizeof v);
    return v;
}

struct ballot_result {
    unsigned yes, lanes;
};
ballot_result ballot(const site &at, unsigned mask, bool vote);
// The lanes whose bits are those of this one.
unsigned match_any(const site &at, unsigned mask, uint64_t bits);

struct warp_barrier {
    site at;
    void operator()(unsigned mask = 0xffffffffu) const;
};

} // namespace simt

#define __syncwarp(...) (simt::warp_barrier{SIMT_SITE("__syncwarp")}(__VA_ARGS__))
#define __shfl_sync(mask, ...)                                                                     \
    simt::shuffle_value(SIMT_SITE("__shfl_sync"), simt::SHUFFLE_INDEX, (mask), __VA_ARGS__)
#define __shfl_up_sync(mask, ...)                                                                  \
    simt::shuffle_value(SIMT_SITE("__shfl_up_sync"), simt::SHUFFLE_UP, (mask), __VA_ARGS__)
#define __shfl_down_sync(mask, ...)                                                                \
    simt::shuffle_value(SIMT_SITE("__shfl_down_sync"), simt::SHUFFLE_DOWN, (mask), __VA_ARGS__)
#define __shfl_xor_sync(mask, ...)                                                                 \
    simt::shuffle_value(SIMT_SITE("__shfl_xor_sync"), simt::SHUFFLE_XOR, (mask), __VA_ARGS__)
#define __match_any_sync(mask, value)                                                              \
    simt::match_any(SIMT_SITE("__match_any_sync"), (mask), (value))
#define SIMT_BALLOT(name, mask, vote) simt::ballot(SIMT_SITE(name), (mask), (vote) ? true : false)
#define __ballot_sync(mask, vote) (SIMT_BALLOT("__ballot_sync", mask, vote).yes)
#define __any_sync(mask, vote) (SIMT_BALLOT("__any_sync", mask, vote).yes != 0)
#define __all_sync(mask, vote)                                                                     \
    ([&](const simt::ballot_result &r) {                                                           \
        return r.yes == r.lanes;                                                                   \
    }(SIMT_BALLOT("__all_sync", mask, vote)))

#endif
