// Attention of many rows of a sequence. A block of threads takes consecutive rows of one query
// head, each warp 16 TILES of them, through the tiles of 64 keys from left to right. Scores,
// weights and the output of the current block of 512 keys stay in registers; the output of the
// blocks before it, which is met once in 512 keys, lies in shared memory.
//
// With two tiles of 16 rows a fragment of K or V that is read from shared memory serves four
// products. Weights of 16 keys are computed while tensor cores work on those of the 16 before.
#ifndef LACUNA_KERNELS_CUDA_ATTENTION_PREFILL_CUH
#define LACUNA_KERNELS_CUDA_ATTENTION_PREFILL_CUH

#include "kernels/cuda/attention_core.cuh"

#include <float.h>

template <int E, int TILES, int WARPS, int STAGES> struct prefill_shape : attention_stage<E> {
    static constexpr int head = E, tiles = TILES, threads = 32 * WARPS, stages = STAGES;
    static constexpr int warp_rows = 16 * TILES, rows = warp_rows * WARPS;
    static constexpr int q_chunks = E / TILE_CHUNK;
    static constexpr int q_elements = rows * tile_shape<q_chunks>::stride;
    // Queries stay in shared memory where registers are taken; else they are kept there.
    static constexpr bool q_stays = attention_stage<E>::parts > 1 || TILES > 1;
};

struct prefill_work {
    struct attention_span span;
    uint32_t head, g;
    uint32_t row, rows;         // of the span
    struct attention_keys keys; // that one of the rows sees
    int tile, tiles;            // that hold one: from, and how many
};

template <class shape> struct prefill_shared {
    uint16_t stages[shape::stages][shape::elements];
    // Each thread's own part of O; before that, queries.
    float4 o[shape::tiles][shape::head / 8][shape::threads];
    uint16_t q[shape::q_stays ? shape::q_elements : TILE_CHUNK];
    float2 sums[shape::rows]; // M and l over the blocks before
    struct prefill_work work;
};

// The maximum of a row without a visible key, from which all scores differ by -infinity.
#define PREFILL_NO_KEY (-FLT_MAX)

// A thread's part of a row: the 16 lanes of a sum are (half of 16 keys, thread of four, pair).
struct prefill_row {
    struct attention_maximum m; // of the current block
    float lanes[2][2];          // of l of the current block
};

// No rows: there is nothing to do.
template <class shape>
static __device__ __forceinline__ struct prefill_work
prefill_work_of(const struct attention_args &a) {
    struct prefill_work w = {};
    w.span = a.spans[blockIdx.z];
    w.head = blockIdx.y;
    w.g = w.head / a.group;
    w.row = (gridDim.x - 1 - blockIdx.x) * shape::rows; // the longest first
    if (w.row >= w.span.rows) return w;
    w.rows = min(w.span.rows - w.row, (uint32_t)shape::rows);
    uint32_t position = w.span.first_position + w.row;
    w.keys = {attention_visible(a, position).first, (int)(position + w.rows - 1)};
    w.tile = w.keys.first / ATTENTION_TILE;
    w.tiles = w.keys.last / ATTENTION_TILE + 1 - w.tile;
    return w;
}

template <class shape>
static __device__ __forceinline__ void
prefill_load_queries(const struct attention_args &a, const struct prefill_work &w, uint16_t *q) {
    for (int i = (int)threadIdx.x; i < shape::rows * shape::q_chunks; i += shape::threads) {
        uint32_t r = i / shape::q_chunks, chunk = i % shape::q_chunks, row = r < w.rows ? r : 0;
        cp_async16(tile_at<shape::q_chunks>(q, r, chunk),
                   a.q + (size_t)(w.span.first_row + w.row + row) * a.ldq + w.head * shape::head +
                       chunk * TILE_CHUNK,
                   r < w.rows);
    }
    cp_async_commit();
}

// Where stage `step` comes from: of each tile the parts of K, then those of V.
template <class shape>
static __device__ __forceinline__ const uint16_t *
prefill_source(const struct attention_args &a, const struct prefill_work &w, int step) {
    int tile = step / (2 * shape::parts), part = step % (2 * shape::parts);
    if (tile >= w.tiles) return NULL;
    return attention_source<shape::head>(a, w.span, w.g, part >= shape::parts, w.tile + tile,
                                         part % shape::parts);
}

template <class shape>
static __device__ __forceinline__ void prefill_load(const struct prefill_work &w,
                                                    prefill_shared<shape> *shared, int step,
                                                    const uint16_t *from) {
    if (from != NULL)
        attention_load<shape::head, shape::threads>(
            from, w.keys, w.tile + step / (2 * shape::parts), shared->stages[step % shape::stages]);
    cp_async_commit();
}

// Waits for stage `step` and sends a later one on its way. Every thread has left the stage before.
template <class shape>
static __device__ __forceinline__ uint16_t *prefill_next(const struct attention_args &a,
                                                         const struct prefill_work &w,
                                                         prefill_shared<shape> *shared, int step) {
    const int later = step + shape::stages - 1;
    const uint16_t *from = prefill_source<shape>(a, w, later);
    cp_async_wait(shape::stages - 2);
    __syncthreads();
    prefill_load<shape>(w, shared, later, from);
    return shared->stages[step % shape::stages];
}

// Chains of a part of K over the warp's rows and 64 keys.
template <class shape>
static __device__ __forceinline__ void prefill_chains(float (&s)[shape::tiles][8][4], uint16_t *k,
                                                      uint16_t *q, const uint32_t (*kept)[4],
                                                      int part, int lane) {
    const int warp_row = (int)threadIdx.x / 32 * shape::warp_rows;
#pragma unroll
    for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
        uint32_t a[shape::tiles][4], b[4];
#pragma unroll
        for (int i = 0; i < shape::tiles; i++) {
            if (shape::q_stays)
                tile_load_a<shape::q_chunks>(a[i], q, warp_row + i * 16,
                                             part * shape::chunks + chunk, lane);
            else
                for (int n = 0; n < 4; n++) a[i][n] = kept[chunk / 2][n];
        }
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            tile_load_b<shape::chunks>(b, k, j * 8, chunk, lane);
#pragma unroll
            for (int i = 0; i < shape::tiles; i++) tile_multiply(s[i][j], s[i][j + 1], a[i], b);
        }
    }
}

// A score of row `r` of the block is not finite.
static __device__ __forceinline__ void prefill_tell(const struct attention_args &a,
                                                    const struct prefill_work &w, uint32_t r) {
    if (r < w.rows) atomicMin(a.bad_row, w.span.first_row + w.row + r);
}

// What is done to scores before their scale, where something is: the softcap, and at an edge of
// what rows see. Keys that a row does not see become -infinity. The thread's rows are `r` of the
// block and every eighth after it, its keys `first`, the next one, and so on every eight.
template <class shape>
static __device__ __forceinline__ void
prefill_hide(const struct attention_args &a, const struct prefill_work &w,
             float (&s)[shape::tiles][8][4], uint32_t r, int first, bool edge, float scale) {
#pragma unroll
    for (int i = 0; i < shape::tiles * 2; i++) {
        const struct attention_keys keys =
            attention_visible(a, w.span.first_position + w.row + r + i * 8);
        bool bad = false;
#pragma unroll
        for (int n = 0; n < 16; n++) {
            float &x = s[i / 2][n / 2][i % 2 * 2 + n % 2];
            if (a.cap_scale != 0.0f) x = attention_score(a, x);
            if (!edge) continue;
            bool seen = attention_sees(keys, first + n / 2 * 8 + n % 2);
            bad = bad || (seen && !attention_finite(x * scale));
            x = seen ? x : -INFINITY;
        }
        if (bad) prefill_tell(a, w, r + i * 8);
    }
}

// The maximum of each row advances over a tile; what was summed so far is scaled.
template <class shape>
static __device__ __forceinline__ void
prefill_advance(float (&o)[shape::tiles][shape::head / 8][4], const float (&s)[shape::tiles][8][4],
                struct prefill_row (&rows)[shape::tiles][2], float scale) {
    float most[shape::tiles * 2];
    bool grows = false;
#pragma unroll
    for (int n = 0; n < shape::tiles * 2; n++) {
        most[n] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 16; i++) most[n] = fmaxf(most[n], s[n / 2][i / 2][n % 2 * 2 + i % 2]);
    }
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
#pragma unroll
        for (int n = 0; n < shape::tiles * 2; n++)
            most[n] = fmaxf(most[n], __shfl_xor_sync(0xffffffffu, most[n], step));
#pragma unroll
    for (int n = 0; n < shape::tiles * 2; n++) {
        most[n] *= scale; // which keeps the order
        grows = grows || ceilf(most[n]) > rows[n / 2][n % 2].m.value;
    }
    if (!__any_sync(0xffffffffu, grows)) return;
#pragma unroll
    for (int n = 0; n < shape::tiles * 2; n++) {
        struct prefill_row &r = rows[n / 2][n % 2];
        attention_advance(r.m, most[n]);
        if (r.m.factor == 1.0f) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) r.lanes[i / 2][i % 2] *= r.m.factor;
#pragma unroll
        for (int i = 0; i < shape::head / 8; i++) {
            o[n / 2][i][n % 2 * 2] *= r.m.factor;
            o[n / 2][i][n % 2 * 2 + 1] *= r.m.factor;
        }
    }
}

// Weights of 16 keys on trial, rounded, as operands of the product with V.
template <class shape>
static __device__ __forceinline__ void
prefill_weights(const float (&s)[shape::tiles][8][4],
                const struct prefill_row (&rows)[shape::tiles][2], int k, float scale,
                uint32_t (&p)[shape::tiles][4][4], struct attention_trial &trial) {
#pragma unroll
    for (int i = 0; i < shape::tiles * 4; i++) {
        const int tile = i / 4, n = i % 4;
        const float *x = &s[tile][k * 2 + n / 2][n % 2 * 2], at = rows[tile][n % 2].m.value;
        p[tile][k][n] = attention_try(x[0] * scale - at, x[1] * scale - at, trial);
    }
}

// The same by the polynomial where a trial does not tell; and the sums of all.
template <class shape>
static __device__ __forceinline__ void
prefill_settle(const struct attention_args &a, const struct prefill_work &w,
               const float (&s)[shape::tiles][8][4], struct prefill_row (&rows)[shape::tiles][2],
               uint32_t r, int k, float scale, bool edge, uint32_t (&p)[shape::tiles][4][4],
               const struct attention_trial &trial) {
    if (__any_sync(0xffffffffu, attention_undecided(trial, !edge))) {
#pragma unroll
        for (int i = 0; i < shape::tiles * 4; i++) {
            const int tile = i / 4, n = i % 4;
            const float *x = &s[tile][k * 2 + n / 2][n % 2 * 2], at = rows[tile][n % 2].m.value;
            float s0 = x[0] * scale, s1 = x[1] * scale;
            if (!edge && !(attention_finite(s0) && attention_finite(s1)))
                prefill_tell(a, w, r + tile * 16 + n % 2 * 8);
            p[tile][k][n] = attention_pack(attention_exp2(s0 - at), attention_exp2(s1 - at));
        }
    }
#pragma unroll
    for (int i = 0; i < shape::tiles * 4; i++) {
        const int tile = i / 4, n = i % 4;
        float(&lanes)[2] = rows[tile][n % 2].lanes[n / 2];
        lanes[0] += num_float(p[tile][k][n] << 16);
        lanes[1] += num_float(p[tile][k][n] & 0xffff0000u);
    }
}

// Weights of 16 keys times a part of V.
template <class shape>
static __device__ __forceinline__ void
prefill_values(float (&o)[shape::tiles][shape::head / 8][4], uint16_t *v,
               const uint32_t (&p)[shape::tiles][4][4], int part, int k, int lane) {
#pragma unroll
    for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
        const int at = part * shape::chunks + chunk;
        uint32_t b[4];
        tile_load_b_rows<shape::chunks>(b, v, k * 16, chunk, lane);
#pragma unroll
        for (int i = 0; i < shape::tiles; i++) tile_multiply(o[i][at], o[i][at + 1], p[i][k], b);
    }
}

// Folds the current block of two rows, `r` of the block and r + 8, into those before it and starts
// the next one.
template <class shape>
static __device__ __forceinline__ void
prefill_fold(const struct attention_args &a, const struct prefill_work &w,
             prefill_shared<shape> *shared, uint32_t r, int tile, float (&o)[shape::head / 8][4],
             struct prefill_row (&rows)[2]) {
    struct attention_fold folds[2];
    bool seen[2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float tree[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float(&lanes)[2][2] = rows[row].lanes;
            tree[e] = lanes[0][e] + lanes[1][e];
            tree[e] += __shfl_xor_sync(0xffffffffu, tree[e], 2);
            tree[e] += __shfl_xor_sync(0xffffffffu, tree[e], 1);
            lanes[0][e] = lanes[1][e] = 0.0f;
        }
        float l = tree[0] + tree[1];
        if (!attention_finite(l)) prefill_tell(a, w, r + row * 8);
        float2 &sums = shared->sums[r + row * 8], before = sums;
        folds[row] = attention_fold_of(before.x, rows[row].m.value);
        seen[row] = l > 0.0f;
        __syncwarp(); // all four threads of the row have read
        if (seen[row] && threadIdx.x % 4 == 0)
            sums = make_float2(folds[row].M, attention_folded(before.y, l, folds[row]));
        rows[row].m.value = PREFILL_NO_KEY;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < shape::head / 8; i++) {
        float4 &sums = shared->o[tile][i][threadIdx.x], before = sums;
        float all[4] = {before.x, before.y, before.z, before.w};
#pragma unroll
        for (int n = 0; n < 4; n++) {
            if (seen[n / 2]) all[n] = attention_folded(all[n], o[i][n] + 0.0f, folds[n / 2]);
            o[i][n] = 0.0f;
        }
        sums = make_float4(all[0], all[1], all[2], all[3]);
    }
}

// O x (1 / l) of the thread's rows.
template <class shape>
static __device__ __forceinline__ void
prefill_leave(const struct attention_args &a, const struct prefill_work &w,
              const prefill_shared<shape> *shared, uint32_t r) {
    const int column = (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < shape::tiles * 2; n++) {
        if (r + n * 8 >= w.rows) continue;
        uint32_t at = w.span.first_row + w.row + r + n * 8;
        uint16_t *to = a.out + (size_t)at * a.ldout + w.head * shape::head + column;
        float inverse = 1.0f / shared->sums[r + n * 8].y;
#pragma unroll
        for (int i = 0; i < shape::head / 8; i++) {
            float4 o = shared->o[n / 2][i][threadIdx.x];
            *(uint32_t *)(to + i * 8) = n % 2 == 0 ? attention_pack(o.x * inverse, o.y * inverse)
                                                   : attention_pack(o.z * inverse, o.w * inverse);
        }
    }
}

// Queries come to shared memory, or from there to registers; first stages are on their way; sums
// are empty.
template <class shape>
static __device__ __forceinline__ void
prefill_begin(const struct attention_args &a, const struct prefill_work &w,
              prefill_shared<shape> *shared, uint16_t *q, uint32_t (*kept)[4], int warp_row) {
    const int lane = (int)threadIdx.x % 32;
    prefill_load_queries<shape>(a, w, q);
#pragma unroll
    for (int step = 0; step < shape::stages - 1; step++)
        prefill_load<shape>(w, shared, step, prefill_source<shape>(a, w, step));
    cp_async_wait(shape::stages - 1);
    __syncthreads(); // the queries are there
    if (!shape::q_stays) {
#pragma unroll
        for (int i = 0; i < shape::head / 16; i++)
            tile_load_a<shape::q_chunks>(kept[i], q, warp_row, i * 2, lane);
        __syncthreads(); // and read: O takes their place
    }
    for (int tile = 0; tile < shape::tiles; tile++)
        for (int i = 0; i < shape::head / 8; i++)
            shared->o[tile][i][threadIdx.x] = make_float4(0, 0, 0, 0);
    for (int i = lane; i < shape::warp_rows; i += 32)
        shared->sums[warp_row + i] = make_float2(-INFINITY, 0.0f);
    __syncwarp();
}

template <int E, int TILES, int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS, 1) attention_prefill(struct attention_args a) {
    typedef prefill_shape<E, TILES, WARPS, STAGES> shape;
    DYN_SHARED(prefill_shared<shape>, shared);
    const int warp_row = (int)threadIdx.x / 32 * shape::warp_rows;
    int lane = (int)threadIdx.x % 32;
    if (threadIdx.x == 0) shared->work = prefill_work_of<shape>(a);
    __syncthreads();
    const struct prefill_work &w = shared->work; // registers are rare
    if (w.rows == 0) return;
    uint16_t *q = shape::q_stays ? shared->q : (uint16_t *)shared->o;
    uint32_t kept[shape::q_stays ? 1 : E / 16][4];
    prefill_begin<shape>(a, w, shared, q, kept, warp_row);
    const uint32_t r = warp_row + lane / 4; // the thread's first row of the block
    const int position = (int)(w.span.first_position + w.row) + warp_row;
    const float scale = a.cap_scale != 0.0f ? 1.0f : a.score_scale; // the softcap has its own
    struct prefill_row rows[TILES][2] = {};
#pragma unroll
    for (int n = 0; n < TILES * 2; n++) rows[n / 2][n % 2].m.value = PREFILL_NO_KEY;
    float o[TILES][E / 8][4] = {};
    for (int t = 0; t < w.tiles; t++) {
        const int first = (w.tile + t) * ATTENTION_TILE, last = first + ATTENTION_TILE - 1;
        // Without an edge all rows of the warp see all keys of the tile.
        const bool edge =
            first < attention_visible(a, position + shape::warp_rows - 1).first || last > position;
        lane = gpu_opaque(lane); // or addresses of all fragments are kept in registers
        float s[TILES][8][4] = {};
        uint32_t p[TILES][4][4];
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *k = prefill_next<shape>(a, w, shared, t * 2 * shape::parts + part);
            prefill_chains<shape>(s, k, q, kept, part, lane);
        }
        struct attention_trial trial = attention_trial_of();
        if (edge || a.cap_scale != 0.0f)
            prefill_hide<shape>(a, w, s, r, first + lane % 4 * 2, edge, scale);
        prefill_advance<shape>(o, s, rows, scale);
        prefill_weights<shape>(s, rows, 0, scale, p, trial);
        prefill_settle<shape>(a, w, s, rows, r, 0, scale, edge, p, trial);
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *v = prefill_next<shape>(a, w, shared, (t * 2 + 1) * shape::parts + part);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const bool more = part == 0 && k < 3;
                trial = attention_trial_of();
                if (more) prefill_weights<shape>(s, rows, k + 1, scale, p, trial);
                prefill_values<shape>(o, v, p, part, k, lane);
                if (more) prefill_settle<shape>(a, w, s, rows, r, k + 1, scale, edge, p, trial);
            }
        }
        if ((last + 1) % ATTENTION_PAGE == 0 || t + 1 == w.tiles) {
#pragma unroll
            for (int i = 0; i < TILES; i++)
                prefill_fold<shape>(a, w, shared, r + i * 16, i, o[i], rows[i]);
        }
    }
    cp_async_wait(0);
    prefill_leave<shape>(a, w, shared, r);
}

#endif
