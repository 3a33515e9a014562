// Attention of many rows of a sequence. A block of threads takes 16 WARPS consecutive rows of one
// query head, each warp 16 of them, through the tiles of 64 keys from left to right. Scores,
// weights and the output of the current block of 512 keys stay in registers; the output of the
// blocks before it, which is met once in 512 keys, lies in shared memory.
#ifndef LACUNA_KERNELS_CUDA_ATTENTION_PREFILL_CUH
#define LACUNA_KERNELS_CUDA_ATTENTION_PREFILL_CUH

#include "kernels/cuda/attention_core.cuh"

template <int E, int WARPS, int STAGES> struct prefill_shape : attention_stage<E> {
    static constexpr int head = E, threads = 32 * WARPS, rows = 16 * WARPS, stages = STAGES;
    static constexpr int q_chunks = E / TILE_CHUNK;
    static constexpr int q_elements = rows * tile_shape<q_chunks>::stride;
    static constexpr bool q_stays = attention_stage<E>::parts > 1; // else it is kept in registers
};

template <class shape> struct prefill_shared {
    uint16_t stages[shape::stages][shape::elements];
    // Each thread's own part of O; before that, queries.
    float4 o[shape::head / 8][shape::threads];
    float2 sums[2][shape::threads]; // M and l of a thread's two rows, over the blocks before
    uint16_t q[shape::q_stays ? shape::q_elements : TILE_CHUNK];
};

struct prefill_work {
    struct attention_span span;
    uint32_t head, g;
    uint32_t row, rows;         // of the span
    struct attention_keys keys; // that one of the rows sees
    int tile, tiles;            // that hold one: from, and how many
};

// A thread's part of two rows: the 16 lanes of a sum are (half of 16 keys, thread of four, pair).
struct prefill_row {
    struct attention_maximum m; // of the current block
    float lanes[2][2];          // of l of the current block
    bool bad;
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

// Stage `step`: of each tile the parts of K, then those of V.
template <class shape>
static __device__ __forceinline__ void prefill_load(const struct attention_args &a,
                                                    const struct prefill_work &w,
                                                    prefill_shared<shape> *shared, int step) {
    int tile = step / (2 * shape::parts), part = step % (2 * shape::parts);
    if (tile < w.tiles)
        attention_load<shape::head, shape::threads>(a, w.span, w.g, w.keys, part >= shape::parts,
                                                    w.tile + tile, part % shape::parts,
                                                    shared->stages[step % shape::stages]);
    cp_async_commit();
}

// Waits for stage `step` and sends a later one on its way. Every thread has left the stage before.
template <class shape>
static __device__ __forceinline__ uint16_t *prefill_next(const struct attention_args &a,
                                                         const struct prefill_work &w,
                                                         prefill_shared<shape> *shared, int step) {
    cp_async_wait(shape::stages - 2);
    __syncthreads();
    prefill_load<shape>(a, w, shared, step + shape::stages - 1);
    return shared->stages[step % shape::stages];
}

// Chains of a part of K over 16 rows and 64 keys.
template <class shape>
static __device__ __forceinline__ void prefill_chains(float (&s)[8][4], uint16_t *k, uint16_t *q,
                                                      const uint32_t (*kept)[4], int part,
                                                      int lane) {
#pragma unroll
    for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
        uint32_t a[4], b[4];
        if (shape::q_stays)
            tile_load_a<shape::q_chunks>(a, q, (int)threadIdx.x / 32 * 16,
                                         part * shape::chunks + chunk, lane);
        else
            for (int i = 0; i < 4; i++) a[i] = kept[chunk / 2][i];
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            tile_load_b<shape::chunks>(b, k, j * 8, chunk, lane);
            tile_multiply(s[j], s[j + 1], a, b);
        }
    }
}

// Of one row of a thread, at `position`: chains to scores; where the tile has an edge, unseen keys
// become -infinity. The thread's keys are `first`, the next one, and so on every eight. Returns the
// largest of its scores, the least in *least.
static __device__ __forceinline__ float prefill_scores(const struct attention_args &a,
                                                       float (&s)[8][4], int row, int position,
                                                       int first, bool edge, struct prefill_row &r,
                                                       float *least) {
    const struct attention_keys keys = attention_visible(a, position);
    float largest = -INFINITY;
    *least = INFINITY;
#pragma unroll
    for (int j = 0; j < 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float &x = s[j][2 * row + e];
            x = attention_score(a, x);
            if (edge) {
                bool seen = attention_sees(keys, first + j * 8 + e);
                r.bad = r.bad || (seen && !attention_finite(x));
                x = seen ? x : -INFINITY;
            }
            largest = fmaxf(largest, x);
            *least = fminf(*least, x);
        }
    }
    return largest;
}

// Scores of one row to weights, unrounded.
static __device__ __forceinline__ void prefill_weights(float (&s)[8][4], int row, float least,
                                                       bool edge, struct prefill_row &r) {
    float at = r.m.value;
    if (least - at >= NUM_E_MIN) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float &x = s[i / 2][2 * row + i % 2];
            x = attention_exp2_inside(x - at);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float &x = s[i / 2][2 * row + i % 2];
        r.bad = r.bad || (!edge && !attention_finite(x));
        x = attention_exp2(x - at);
    }
}

// Weights of both rows, rounded, as operands of the product with V; their sums go to the lanes of
// l.
static __device__ __forceinline__ void prefill_round(const float (&s)[8][4], uint32_t (&p)[4][4],
                                                     struct prefill_row (&rows)[2]) {
#pragma unroll
    for (int j = 0; j < 8; j++) {
#pragma unroll
        for (int row = 0; row < 2; row++) {
            uint32_t pair = attention_pack(s[j][2 * row], s[j][2 * row + 1]);
            rows[row].lanes[j % 2][0] += num_float(pair << 16);
            rows[row].lanes[j % 2][1] += num_float(pair & 0xffff0000u);
            p[j / 2][j % 2 * 2 + row] = pair;
        }
    }
}

// Weights times a part of V.
template <class shape>
static __device__ __forceinline__ void prefill_values(float (&o)[shape::chunks][4], uint16_t *v,
                                                      const uint32_t (&p)[4][4], int lane) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
            uint32_t b[4];
            ldmatrix_x4_trans(b,
                              tile_at<shape::chunks>(v, k * 16 + (lane & 15), chunk + (lane >> 4)));
            tile_multiply(o[chunk], o[chunk + 1], p[k], b);
        }
    }
}

// The maximum of both rows advances over a tile; what was summed so far is scaled.
template <int COLUMNS>
static __device__ __forceinline__ void
prefill_advance(float (&o)[COLUMNS][4], const float (&largest)[2], struct prefill_row (&rows)[2]) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float most = fmaxf(largest[row], __shfl_xor_sync(0xffffffffu, largest[row], 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        struct prefill_row &r = rows[row];
        attention_advance(r.m, most);
        if (r.m.factor == 1.0f) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) r.lanes[i / 2][i % 2] *= r.m.factor;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            o[i][2 * row] *= r.m.factor;
            o[i][2 * row + 1] *= r.m.factor;
        }
    }
}

// Folds the current block of both rows into those before it and starts the next one.
template <class shape>
static __device__ __forceinline__ void prefill_fold(float (&o)[shape::head / 8][4],
                                                    prefill_shared<shape> *shared,
                                                    struct prefill_row (&rows)[2]) {
    float scales[2][2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
        struct prefill_row &r = rows[row];
        float tree[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            tree[e] = r.lanes[0][e] + r.lanes[1][e];
            tree[e] += __shfl_xor_sync(0xffffffffu, tree[e], 2);
            tree[e] += __shfl_xor_sync(0xffffffffu, tree[e], 1);
            r.lanes[0][e] = r.lanes[1][e] = 0.0f;
        }
        float l = tree[0] + tree[1];
        float2 &before = shared->sums[row][threadIdx.x];
        struct attention_fold f = attention_fold_of(before.x, r.m.value);
        r.bad = r.bad || !attention_finite(l);
        if (r.m.value > -INFINITY) before = make_float2(f.M, attention_folded(before.y, l, f));
        scales[row][0] = f.kept;
        scales[row][1] = f.added;
    }
#pragma unroll
    for (int i = 0; i < shape::head / 8; i++) {
        float4 &before = shared->o[i][threadIdx.x];
        float all[4] = {before.x, before.y, before.z, before.w};
#pragma unroll
        for (int n = 0; n < 4; n++) {
            struct attention_fold f = {0.0f, scales[n / 2][0], scales[n / 2][1]};
            if (rows[n / 2].m.value > -INFINITY)
                all[n] = attention_folded(all[n], o[i][n] + 0.0f, f);
            o[i][n] = 0.0f;
        }
        before = make_float4(all[0], all[1], all[2], all[3]);
    }
    rows[0].m.value = rows[1].m.value = -INFINITY;
}

// O x (1 / l) of both rows.
template <class shape>
static __device__ __forceinline__ void
prefill_leave(const struct attention_args &a, const struct prefill_work &w,
              const prefill_shared<shape> *shared, const struct prefill_row (&rows)[2]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        uint32_t r = threadIdx.x / 32 * 16 + lane / 4 + row * 8;
        if (r >= w.rows) continue;
        uint32_t at = w.span.first_row + w.row + r;
        if (rows[row].bad) atomicMin(a.bad_row, at);
        uint16_t *to = a.out + (size_t)at * a.ldout + w.head * shape::head + lane % 4 * 2;
        float inverse = 1.0f / shared->sums[row][threadIdx.x].y;
#pragma unroll
        for (int i = 0; i < shape::head / 8; i++) {
            float4 o = shared->o[i][threadIdx.x];
            *(uint32_t *)(to + i * 8) = row == 0 ? attention_pack(o.x * inverse, o.y * inverse)
                                                 : attention_pack(o.z * inverse, o.w * inverse);
        }
    }
}

template <int E, int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS, 1) attention_prefill(struct attention_args a) {
    typedef prefill_shape<E, WARPS, STAGES> shape;
    DYN_SHARED(prefill_shared<shape>, shared);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    struct prefill_work w = prefill_work_of<shape>(a);
    if (w.rows == 0) return;
    uint16_t *q = shape::q_stays ? shared->q : (uint16_t *)shared->o;
    prefill_load_queries<shape>(a, w, q);
#pragma unroll
    for (int step = 0; step < STAGES - 1; step++) prefill_load<shape>(a, w, shared, step);
    cp_async_wait(STAGES - 1);
    __syncthreads(); // the queries are there
    uint32_t kept[shape::q_stays ? 1 : E / 16][4];
    if (!shape::q_stays) {
#pragma unroll
        for (int i = 0; i < E / 16; i++)
            tile_load_a<shape::q_chunks>(kept[i], q, warp * 16, i * 2, lane);
        __syncthreads(); // and read: O takes their place
    }
#pragma unroll
    for (int i = 0; i < E / 8; i++) shared->o[i][threadIdx.x] = make_float4(0, 0, 0, 0);
    const int position = (int)(w.span.first_position + w.row) + warp * 16;
    struct prefill_row rows[2] = {};
#pragma unroll
    for (int row = 0; row < 2; row++) {
        rows[row].m.value = -INFINITY;
        shared->sums[row][threadIdx.x] = make_float2(-INFINITY, 0.0f);
    }
    float o[shape::parts][shape::chunks][4] = {};
    for (int t = 0; t < w.tiles; t++) {
        const int tile = w.tile + t, first = tile * ATTENTION_TILE;
        // Without an edge all 16 rows of the warp see all keys of the tile.
        const bool edge = first < attention_visible(a, position + 15).first ||
                          first + ATTENTION_TILE - 1 > position;
        float s[8][4] = {}, largest[2], least[2];
        uint32_t p[4][4];
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *k = prefill_next<shape>(a, w, shared, t * 2 * shape::parts + part);
            prefill_chains<shape>(s, k, q, kept, part, lane);
        }
#pragma unroll
        for (int row = 0; row < 2; row++)
            largest[row] = prefill_scores(a, s, row, position + lane / 4 + row * 8,
                                          first + lane % 4 * 2, edge, rows[row], &least[row]);
        prefill_advance(*(float(*)[E / 8][4]) o, largest, rows);
#pragma unroll
        for (int row = 0; row < 2; row++) prefill_weights(s, row, least[row], edge, rows[row]);
        prefill_round(s, p, rows);
#pragma unroll
        for (int part = 0; part < shape::parts; part++) {
            uint16_t *v = prefill_next<shape>(a, w, shared, (t * 2 + 1) * shape::parts + part);
            prefill_values<shape>(o[part], v, p, lane);
        }
        if (tile % ATTENTION_TILES == ATTENTION_TILES - 1 || t + 1 == w.tiles)
            prefill_fold<shape>(*(float(*)[E / 8][4]) o, shared, rows);
    }
    cp_async_wait(0);
    prefill_leave<shape>(a, w, shared, rows);
}

#endif
