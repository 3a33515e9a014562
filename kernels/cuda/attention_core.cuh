// What the attention kernels share: the arguments of a call on the device, which keys a row sees,
// and the steps from scores to weights (NUMERICS.md, Attention and CUDA).
//
// A row is a pair (token, query head). Its keys are taken in absolute blocks of 512, a block in
// tiles of 64. Within a block the maximum, rounded up to an integer, advances once per tile; sums
// and outputs so far are then scaled by a power of two. A row for which a tile or a block holds no
// visible key is left exactly as it was.
#ifndef LACUNA_KERNELS_CUDA_ATTENTION_CORE_CUH
#define LACUNA_KERNELS_CUDA_ATTENTION_CORE_CUH

#include "kernels/cuda/attention.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/numerics.h"

#define ATTENTION_TILE 64
#define ATTENTION_TILES (ATTENTION_PAGE / ATTENTION_TILE)

struct attention_args {
    const struct attention_span *spans;
    const struct attention_watch *watches; // NULL: nothing is watched
    const uint16_t *q;
    uint16_t *out;
    uint32_t ldq, ldout;
    uint32_t H, G, group; // group: query heads of one KV head
    float score_scale;    // chain -> exponent of 2, or -> argument of tanh with a softcap
    float cap_scale;      // tanh -> exponent of 2; 0 without a softcap
    uint32_t window;
    size_t page_offset;
    uint32_t *bad_row;
};

struct attention_args attention_args_of(const struct attention_call *call);
bool attention_is_valid(const struct attention_call *call);

// Keys first .. last, both of them seen; none: first > last.
struct attention_keys {
    int first, last;
};

static __device__ __forceinline__ struct attention_keys
attention_visible(const struct attention_args &a, uint32_t position) {
    uint32_t first = a.window != 0 && position >= a.window ? position - a.window + 1 : 0;
    return {(int)first, (int)position};
}

static __device__ __forceinline__ bool attention_sees(struct attention_keys keys, int key) {
    return key >= keys.first && key <= keys.last;
}

// K and V come to shared memory in stages: a tile of 64 keys by up to 128 columns.
template <int E> struct attention_stage {
    static constexpr int columns = E > 128 ? 128 : E;
    static constexpr int parts = E / columns, chunks = columns / TILE_CHUNK;
    static constexpr int elements = ATTENTION_TILE * tile_shape<chunks>::stride;
};

// Where columns of a tile, `tile` counted from the start of the sequence, of K or V of KV head g
// stand.
template <int E>
static __device__ __forceinline__ const uint16_t *
attention_source(const struct attention_args &a, const struct attention_span &span, uint32_t g,
                 bool v, int tile, int part) {
    const uint16_t *layer = (const uint16_t *)(span.pages[tile / ATTENTION_TILES] + a.page_offset);
    return layer + ((size_t)(v ? a.G : 0) + g) * ATTENTION_PAGE * E +
           tile % ATTENTION_TILES * ATTENTION_TILE * E + part * attention_stage<E>::columns;
}

// Sends them on their way. Only `keys`, absolute positions, are read; others become zeros.
template <int E, int THREADS>
static __device__ __forceinline__ void
attention_load(const uint16_t *from, struct attention_keys keys, int tile, uint16_t *stage) {
    typedef attention_stage<E> shape;
    constexpr int at_once = THREADS / shape::chunks; // rows; threads that are left over do nothing
    const int thread = gpu_opaque((int)threadIdx.x);
    const int chunk = thread % shape::chunks, start = thread / shape::chunks;
#pragma unroll
    for (int i = 0; i < (ATTENTION_TILE + at_once - 1) / at_once; i++) {
        int row = start + i * at_once;
        if (start >= at_once || row >= ATTENTION_TILE) break;
        cp_async16(tile_at<shape::chunks>(stage, row, chunk), from + row * E + chunk * TILE_CHUNK,
                   attention_sees(keys, tile * ATTENTION_TILE + row));
    }
}

static __device__ __forceinline__ float attention_score(const struct attention_args &a,
                                                        float chain) {
    float s = chain * a.score_scale;
    return a.cap_scale != 0.0f ? num_tanh(s) * a.cap_scale : s;
}

static __device__ __forceinline__ bool attention_finite(float x) {
    return (num_bits(x) & 0x7f800000u) != 0x7f800000u;
}

// num_exp2 for x <= 0, as all exponents of a softmax are.
static __device__ __forceinline__ float attention_exp2(float x) {
    float y = num_exp2_inside(x >= NUM_E_MIN ? x : NUM_E_MIN);
    return x >= NUM_E_MIN ? y : 0.0f;
}

// The maximum of a row: -infinity before its first visible key, else an integer.
struct attention_maximum {
    float value;
    float factor; // what the last advance scales sums and outputs by; 1: it did not grow
};

static __device__ __forceinline__ void attention_advance(struct attention_maximum &m,
                                                         float largest_score) {
    float next = fmaxf(m.value, ceilf(largest_score));
    m.factor = next > m.value ? attention_exp2(m.value - next) : 1.0f;
    m.value = next;
}

// Two bf16 values in a register, `low` in the lower half.
static __device__ __forceinline__ uint32_t attention_pack(float low, float high) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

// Weights rounded to bf16, by an approximation instead of the polynomial, with a test of the
// rounding (Ziv 1991): the two differ by less than ATTENTION_APART units in the last place of fp32,
// gpu_exp2_approx by at most 2.5 from the true value and the polynomial by at most 1.
// So they round to the same bf16 value but where the approximation lies that near to the middle of
// two, which is once in 4,096 times.
#define ATTENTION_APART 8u

// Of weights that were tried: how near the nearest came to a middle, and the least.
struct attention_trial {
    uint32_t nearest;
    __nv_bfloat162 least;
};

static __device__ __forceinline__ struct attention_trial attention_trial_of() {
    return {UINT32_MAX, __floats2bfloat162_rn(1.0f, 1.0f)};
}

// The lower half of an fp32 number is what rounding drops: its middle is 0x8000.
static __device__ __forceinline__ uint32_t attention_nearest(uint32_t nearest, float weight) {
    return min(nearest, (num_bits(weight) << 16) + ((0x8000u + ATTENTION_APART) << 16));
}

static __device__ __forceinline__ uint32_t attention_try(float x0, float x1,
                                                         struct attention_trial &trial) {
    float p0 = gpu_exp2_approx(x0), p1 = gpu_exp2_approx(x1);
    trial.nearest = attention_nearest(attention_nearest(trial.nearest, p0), p1);
    __nv_bfloat162 pair = __floats2bfloat162_rn(p0, p1);
    trial.least = __hmin2(trial.least, pair);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

// Whether the polynomial has to tell; with `zeros` also where a weight is zero, which may come from
// a score of -infinity.
static __device__ __forceinline__ bool attention_undecided(const struct attention_trial &trial,
                                                           bool zeros) {
    uint32_t least;
    memcpy(&least, &trial.least, sizeof least);
    bool zero = (least & 0xffffu) == 0 || least >> 16 == 0;
    return trial.nearest < ATTENTION_APART << 17 || (zeros && zero);
}

// What a new block does to the sums before it.
struct attention_fold {
    float M, kept, added;
};

static __device__ __forceinline__ struct attention_fold attention_fold_of(float M, float m_c) {
    float next = fmaxf(M, m_c);
    return {next, attention_exp2(M - next), attention_exp2(m_c - next)};
}

static __device__ __forceinline__ float attention_folded(float sum, float block,
                                                         const struct attention_fold &f) {
    float kept = sum * f.kept, added = block * f.added;
    return kept + added;
}

#endif
