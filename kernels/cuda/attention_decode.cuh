// Attention of few rows over many keys: one block of threads for each absolute block of 512 keys of
// a KV head. The 16 rows of a tensor-core tile are (token, query head of the group) of one span,
// token-major. Maximum, sums and output of each row go to the workspace; attention_combine folds
// them.
//
// The keys are read once: first all of K, which leaves the scores in shared memory, then weights
// are computed row by row, then all of V. Tiles of 64 keys by up to 128 columns are on their way
// through all of it.
#ifndef LACUNA_KERNELS_CUDA_ATTENTION_DECODE_CUH
#define LACUNA_KERNELS_CUDA_ATTENTION_DECODE_CUH

#include "kernels/cuda/attention_core.cuh"

// Partial results, for each (span, row of the span, head) and block.
struct decode_workspace {
    float *o;        // [slots][blocks][E]
    float *sums;     // [slots][blocks][DECODE_SUMS + ranges]: m, l, w, then those of the ranges
    uint32_t rows;   // of a span
    uint32_t blocks; // of keys
    uint32_t ranges;
};
enum { DECODE_M, DECODE_L, DECODE_W, DECODE_SUMS };

static __device__ __forceinline__ size_t decode_slot(const struct attention_args &a,
                                                     const struct decode_workspace &w,
                                                     uint32_t span, uint32_t token, uint32_t head) {
    return ((size_t)span * w.rows + token) * a.H + head;
}

static __device__ __forceinline__ float *decode_sums(const struct decode_workspace &w, size_t slot,
                                                     uint32_t block) {
    return w.sums + (slot * w.blocks + block) * (DECODE_SUMS + w.ranges);
}

// The watch that a row of a span is seen by, or NULL.
static __device__ __forceinline__ const struct attention_watch *
decode_watch(const struct attention_args &a, const struct attention_span &span, uint32_t token) {
    if (a.watches == NULL || span.watch == ATTENTION_UNWATCHED) return NULL;
    const struct attention_watch *watch = &a.watches[span.watch];
    return token >= watch->first_row && token - watch->first_row < watch->rows ? watch : NULL;
}

#define DECODE_THREADS 128
#define DECODE_ROWS 16
#define DECODE_STRIDE (ATTENTION_PAGE + 4) // of a row of scores, so that rows lie in other banks

template <int E> struct decode_shape : attention_stage<E> {
    static constexpr int stages = E >= 128 ? 3 : E >= 80 ? 4 : 5;
    static constexpr int pairs =
        (attention_stage<E>::columns / 16 + 3) / 4; // of 8 columns, a warp's
    static constexpr int q_chunks = E / TILE_CHUNK;
};

// Scores of a row are followed by its weights, as bf16 in the same place.
template <int E> struct decode_shared {
    typedef decode_shape<E> shape;
    float scores[DECODE_ROWS * DECODE_STRIDE];
    float factors[ATTENTION_TILES][DECODE_ROWS]; // of the maximum's advance at a tile
    uint16_t q[DECODE_ROWS * tile_shape<shape::q_chunks>::stride];
    uint16_t stages[shape::stages][shape::elements];
};

// What a block of threads does: up to 16 rows of a span, and the tiles that one of them sees.
struct decode_work {
    struct attention_span span;
    uint32_t g, block;
    uint32_t row, rows;         // of (token, head in the group)
    struct attention_keys keys; // that one of them sees, absolute
    int tile, tiles;            // of the block, that hold one: from, and how many
};

static __device__ __forceinline__ uint32_t decode_token(const struct attention_args &a,
                                                        const struct decode_work &w, uint32_t r) {
    return (w.row + r) / a.group;
}
static __device__ __forceinline__ uint32_t decode_head(const struct attention_args &a,
                                                       const struct decode_work &w, uint32_t r) {
    return w.g * a.group + (w.row + r) % a.group;
}

// The keys of the block that row r sees, counted within it.
static __device__ __forceinline__ struct attention_keys
decode_visible(const struct attention_args &a, const struct decode_work &w, uint32_t r) {
    int base = (int)w.block * ATTENTION_PAGE;
    struct attention_keys keys =
        attention_visible(a, w.span.first_position + decode_token(a, w, r));
    return {max(keys.first - base, 0), min(keys.last - base, ATTENTION_PAGE - 1)};
}

// No rows: there is nothing to do.
static __device__ __forceinline__ struct decode_work
decode_work_of(const struct attention_args &a) {
    struct decode_work w = {};
    w.span = a.spans[blockIdx.z];
    w.g = blockIdx.y % a.G;
    w.block = blockIdx.x;
    w.row = blockIdx.y / a.G * DECODE_ROWS;
    uint32_t all = w.span.rows * a.group;
    if (w.row >= all) return w;
    uint32_t rows = min(all - w.row, (uint32_t)DECODE_ROWS);
    struct attention_keys keys = {decode_visible(a, w, 0).first,
                                  decode_visible(a, w, rows - 1).last};
    if (keys.first > keys.last) return w;
    int base = (int)w.block * ATTENTION_PAGE;
    w.rows = rows;
    w.keys = {keys.first + base, keys.last + base};
    w.tile = keys.first / ATTENTION_TILE;
    w.tiles = keys.last / ATTENTION_TILE + 1 - w.tile;
    return w;
}

template <int E>
static __device__ __forceinline__ void
decode_load_queries(const struct attention_args &a, const struct decode_work &w, uint16_t *q) {
    constexpr int chunks = decode_shape<E>::q_chunks;
    for (int i = (int)threadIdx.x; i < DECODE_ROWS * chunks; i += DECODE_THREADS) {
        uint32_t r = i / chunks, chunk = i % chunks, row = r < w.rows ? r : 0;
        const uint16_t *from = a.q + (size_t)(w.span.first_row + decode_token(a, w, row)) * a.ldq +
                               decode_head(a, w, row) * E + chunk * TILE_CHUNK;
        cp_async16(tile_at<chunks>(q, r, chunk), from, r < w.rows);
    }
}

// Stage `step`: the tiles of K, part by part, then those of V. Keys that no row sees become zeros.
template <int E>
static __device__ __forceinline__ void decode_load(const struct attention_args &a,
                                                   const struct decode_work &w,
                                                   decode_shared<E> *shared, int step) {
    typedef decode_shape<E> shape;
    int of_k = w.tiles * shape::parts, at = step < of_k ? step : step - of_k;
    int tile = (int)w.block * ATTENTION_TILES + w.tile + at / shape::parts;
    if (step < 2 * of_k)
        attention_load<E, DECODE_THREADS>(
            attention_source<E>(a, w.span, w.g, step >= of_k, tile, at % shape::parts), w.keys,
            tile, shared->stages[step % shape::stages]);
    cp_async_commit();
}

// Waits for stage `step` and sends a later one on its way. Every thread has left the stage before.
template <int E>
static __device__ __forceinline__ uint16_t *decode_next(const struct attention_args &a,
                                                        const struct decode_work &w,
                                                        decode_shared<E> *shared, int step) {
    typedef decode_shape<E> shape;
    cp_async_wait(shape::stages - 2);
    __syncthreads();
    decode_load<E>(a, w, shared, step + shape::stages - 1);
    return shared->stages[step % shape::stages];
}

// The scores of all rows. Each warp has 16 keys of a tile.
template <int E>
static __device__ __forceinline__ void decode_scores(const struct attention_args &a,
                                                     const struct decode_work &w,
                                                     decode_shared<E> *shared) {
    typedef decode_shape<E> shape;
    const int lane = (int)threadIdx.x % 32, n = (int)threadIdx.x / 32 * 16;
    for (int t = 0; t < w.tiles; t++) {
        float s[2][4] = {};
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *k = decode_next<E>(a, w, shared, t * shape::parts + part);
#pragma unroll
            for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
                uint32_t q[4], b[4];
                tile_load_a<shape::q_chunks>(q, shared->q, 0, part * shape::chunks + chunk, lane);
                tile_load_b<shape::chunks>(b, k, n, chunk, lane);
                tile_multiply(s[0], s[1], q, b);
            }
        }
        float *to = shared->scores + lane / 4 * DECODE_STRIDE + (w.tile + t) * ATTENTION_TILE + n +
                    lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int lower = 0; lower < 2; lower++)
                *(float2 *)(to + lower * 8 * DECODE_STRIDE + i * 8) = make_float2(
                    attention_score(a, s[i][2 * lower]), attention_score(a, s[i][2 * lower + 1]));
        }
    }
}

// The tree of a row reduction over the 16 threads of a row.
static __device__ __forceinline__ float decode_tree(float lane_sum) {
#pragma unroll
    for (int apart = 8; apart > 0; apart /= 2)
        lane_sum += __shfl_xor_sync(0xffffffffu, lane_sum, apart);
    return lane_sum;
}

// The unrounded weights of one of a row's 16 lanes: keys lane, lane + 16, ... of the block, those
// of a tile relative to the maximum after it.
struct decode_lane {
    float p[ATTENTION_TILES][4];
    float factor[ATTENTION_TILES];
};

// Sum over `keys` by the lane rule.
static __device__ __forceinline__ float decode_range(const struct decode_lane &row,
                                                     struct attention_keys keys, int lane) {
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < ATTENTION_TILES; t++) {
        sum *= row.factor[t];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool in = attention_sees(keys, t * ATTENTION_TILE + i * 16 + lane);
            sum += in ? row.p[t][i] : 0.0f;
        }
    }
    return decode_tree(sum);
}

// A range of absolute positions, counted within the block.
static __device__ __forceinline__ struct attention_keys
decode_range_keys(const struct attention_key_range &range, uint32_t block) {
    uint32_t base = block * ATTENTION_PAGE, end = base + ATTENTION_PAGE;
    return {(int)(min(max(range.first, base), end) - base),
            (int)(min(max(range.end, base), end) - base) - 1};
}

// Weights, maximum and sums of one row by 16 threads; two rows a warp.
template <int E>
static __device__ __forceinline__ void
decode_row(const struct attention_args &a, const struct decode_work &w,
           const struct decode_workspace &workspace, decode_shared<E> *shared, uint32_t r) {
    const int lane = (int)threadIdx.x % 16;
    const bool valid = r < w.rows;
    const uint32_t token = decode_token(a, w, valid ? r : 0);
    struct attention_keys keys = decode_visible(a, w, valid ? r : 0);
    if (!valid) keys = {1, 0};
    float *scores = shared->scores + r * DECODE_STRIDE;
    uint16_t *weights = (uint16_t *)scores;
    struct attention_maximum m = {-INFINITY, 1.0f};
    struct decode_lane row;
    float l = 0.0f, all = 0.0f;
    bool finite = true;
#pragma unroll
    for (int t = 0; t < ATTENTION_TILES; t++) {
        row.factor[t] = 1.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) row.p[t][i] = 0.0f;
        if (t < w.tile || t >= w.tile + w.tiles) continue;
        float s[4], largest = -INFINITY;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = t * ATTENTION_TILE + i * 16 + lane;
            bool seen = attention_sees(keys, key);
            s[i] = seen ? scores[key] : -INFINITY;
            finite = finite && (!seen || attention_finite(s[i]));
            largest = fmaxf(largest, s[i]);
        }
#pragma unroll
        for (int apart = 8; apart > 0; apart /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
        attention_advance(m, largest);
        row.factor[t] = m.factor;
        if (lane == 0) shared->factors[t][r] = m.factor;
        l *= m.factor;
        all *= m.factor;
        __syncwarp(); // the row's scores of this tile are read; weights may take their place
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = t * ATTENTION_TILE + i * 16 + lane;
            float p = attention_sees(keys, key) ? attention_exp2(s[i] - m.value) : 0.0f;
            uint16_t rounded = num_bf16(p);
            row.p[t][i] = p;
            all += p;
            l += num_from_bf16(rounded);
            weights[key] = rounded;
        }
    }
    l = decode_tree(l);
    all = decode_tree(all);
    if (!finite) atomicMin(a.bad_row, w.span.first_row + token);
    size_t slot = decode_slot(a, workspace, blockIdx.z, token, decode_head(a, w, valid ? r : 0));
    float *sums = decode_sums(workspace, slot, w.block);
    if (valid && lane == 0) {
        sums[DECODE_M] = m.value;
        sums[DECODE_L] = l;
        sums[DECODE_W] = all;
    }
    // Both rows of the warp go through the ranges of the span's watch, for the tree needs them all.
    if (a.watches == NULL || w.span.watch == ATTENTION_UNWATCHED) return;
    const struct attention_watch *watch = &a.watches[w.span.watch];
    bool watched = valid && decode_watch(a, w.span, token) != NULL;
    for (uint32_t i = 0; i < watch->count; i++) {
        float sum = decode_range(row, decode_range_keys(watch->ranges[i], w.block), lane);
        if (watched && lane == 0) sums[DECODE_SUMS + i] = sum;
    }
}

// Weights times V. Each warp has every fourth pair of eight columns of a stage.
template <int E>
static __device__ __forceinline__ void
decode_values(const struct attention_args &a, const struct decode_work &w,
              const struct decode_workspace &workspace, decode_shared<E> *shared) {
    typedef decode_shape<E> shape;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    float o[shape::parts][shape::pairs][2][4] = {};
    for (int t = 0; t < w.tiles; t++) {
        int tile = w.tile + t;
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *v = decode_next<E>(a, w, shared, (w.tiles + t) * shape::parts + part);
            float factor[2] = {shared->factors[tile][lane / 4],
                               shared->factors[tile][lane / 4 + 8]};
#pragma unroll
            for (int n = 0; n < shape::pairs; n++) {
#pragma unroll
                for (int i = 0; i < 8; i++)
                    if (factor[i % 4 / 2] != 1.0f) o[part][n][i / 4][i % 4] *= factor[i % 4 / 2];
            }
#pragma unroll
            for (int k = 0; k < ATTENTION_TILE; k += 16) {
                uint32_t p[4], b[4];
                uint16_t *weights = (uint16_t *)shared->scores;
                ldmatrix_x4(p, weights + (lane & 15) * 2 * DECODE_STRIDE + tile * ATTENTION_TILE +
                                   k + (lane >> 4) * 8);
#pragma unroll
                for (int n = 0; n < shape::pairs; n++) {
                    int pair = warp + n * 4;
                    if (pair * 2 >= shape::chunks) break;
                    ldmatrix_x4_trans(
                        b, tile_at<shape::chunks>(v, k + (lane & 15), pair * 2 + (lane >> 4)));
                    tile_multiply(o[part][n][0], o[part][n][1], p, b);
                }
            }
        }
    }
#pragma unroll
    for (int lower = 0; lower < 2; lower++) {
        uint32_t r = lane / 4 + lower * 8;
        if (r >= w.rows) continue;
        size_t slot =
            decode_slot(a, workspace, blockIdx.z, decode_token(a, w, r), decode_head(a, w, r));
        float *to = workspace.o + (slot * workspace.blocks + w.block) * E + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < shape::parts * shape::pairs * 2; i++) {
            int part = i / 2 / shape::pairs, n = i / 2 % shape::pairs, pair = warp + n * 4;
            if (pair * 2 >= shape::chunks) continue;
            const float *from = &o[part][n][i % 2][2 * lower];
            *(float2 *)(to + part * shape::columns + pair * 16 + i % 2 * 8) =
                make_float2(from[0] + 0.0f, from[1] + 0.0f);
        }
    }
}

template <int E>
__global__ void __launch_bounds__(DECODE_THREADS, 2)
    attention_decode(struct attention_args a, struct decode_workspace workspace) {
    typedef decode_shape<E> shape;
    DYN_SHARED(decode_shared<E>, shared);
    struct decode_work w = decode_work_of(a);
    if (w.rows == 0) return;
    decode_load_queries<E>(a, w, shared->q);
#pragma unroll
    for (int step = 0; step < shape::stages - 1; step++) decode_load<E>(a, w, shared, step);
    decode_scores<E>(a, w, shared);
    __syncthreads(); // all scores are there
    for (uint32_t r = threadIdx.x / 32 * 2; r < w.rows; r += DECODE_THREADS / 16)
        decode_row<E>(a, w, workspace, shared, r + threadIdx.x % 32 / 16);
    decode_values<E>(a, w, workspace, shared);
    cp_async_wait(0);
}

// Folds the blocks of one row from left to right; a thread for each element.
template <int E>
__global__ void __launch_bounds__(256)
    attention_combine(struct attention_args a, struct decode_workspace workspace) {
    const struct attention_span span = a.spans[blockIdx.y];
    const uint32_t token = blockIdx.x / a.H, head = blockIdx.x % a.H;
    if (token >= span.rows) return;
    struct attention_keys keys = attention_visible(a, span.first_position + token);
    const uint32_t first = keys.first / ATTENTION_PAGE, last = keys.last / ATTENTION_PAGE;
    const size_t slot = decode_slot(a, workspace, blockIdx.y, token, head);
    const struct attention_watch *watch = decode_watch(a, span, token);
    const uint32_t stride = DECODE_SUMS + workspace.ranges;
    const float *sums = decode_sums(workspace, slot, 0);
    if (threadIdx.x < E) {
        const float *part = workspace.o + slot * workspace.blocks * E + threadIdx.x;
        float M = -INFINITY, l = 0.0f, o = 0.0f;
#pragma unroll 8
        for (uint32_t c = first; c <= last; c++) {
            struct attention_fold f = attention_fold_of(M, sums[(size_t)c * stride + DECODE_M]);
            M = f.M;
            l = attention_folded(l, sums[(size_t)c * stride + DECODE_L], f);
            o = attention_folded(o, part[(size_t)c * E], f);
        }
        a.out[(size_t)(span.first_row + token) * a.ldout + head * E + threadIdx.x] =
            num_bf16(o * (1.0f / l));
    }
    if (watch == NULL) return;
    for (uint32_t i = threadIdx.x; i < watch->count; i += blockDim.x) {
        float M = -INFINITY, all = 0.0f, sum = 0.0f;
        for (uint32_t c = first; c <= last; c++) {
            const float *block = sums + (size_t)c * stride;
            struct attention_fold f = attention_fold_of(M, block[DECODE_M]);
            M = f.M;
            all = attention_folded(all, block[DECODE_W], f);
            sum = attention_folded(sum, block[DECODE_SUMS + i], f);
        }
        float *shares =
            watch->shares + ((size_t)(token - watch->first_row) * a.H + head) * watch->count;
        shares[i] = sum / all;
    }
}

#endif
