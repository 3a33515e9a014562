// A token drawn from each of some rows of logits: one block a row. The row is sorted, then its
// weights are summed in that order, tile by tile: all but the first warp compute those of a tile
// while one thread sums the tile before. Sums of whole tiles are kept; the two that are looked for
// (where the kept head ends, and what u falls on) are found among those and then within one tile,
// which is summed again.
#include "kernels/cuda/sample.h"

#include "kernels/cuda/gpu.h"
#include "kernels/sample.h"

#define SAMPLE_THREADS 512
#define SAMPLE_WARP 32
#define SAMPLE_WARPS (SAMPLE_THREADS / SAMPLE_WARP)
#define SAMPLE_DIGIT_BITS 8
#define SAMPLE_DIGITS (32 / SAMPLE_DIGIT_BITS)
#define SAMPLE_VALUES (1 << SAMPLE_DIGIT_BITS)
#define SAMPLE_TILE 1024
#define SAMPLE_AHEAD 4 // loads of a lane on their way from memory at once
#define ALL_LANES 0xffffffffu

struct ranked {
    uint32_t key, id;
};

static uint32_t tiles_of(uint32_t n) {
    return (n + SAMPLE_TILE - 1) / SAMPLE_TILE;
}

// Of a row: two lists of it, and the sums of its tiles.
static size_t row_bytes(uint32_t n) {
    return 2 * (size_t)n * sizeof(ranked) + tiles_of(n) * sizeof(double);
}

size_t sample_workspace(uint32_t rows, uint32_t n) {
    return rows * row_bytes(n);
}

// ---- the order ---------------------------------------------------------------------------------

// The elements of which one warp takes care, as this lane sees them.
struct share {
    uint32_t lane, first, end;
};

static __device__ share share_of(uint32_t n) {
    uint32_t warp = threadIdx.x / SAMPLE_WARP;
    uint32_t each = (n + SAMPLE_THREADS - 1) / SAMPLE_THREADS * SAMPLE_WARP;
    return {threadIdx.x % SAMPLE_WARP, min(warp * each, n), min((warp + 1) * each, n)};
}

static __device__ __forceinline__ uint32_t digit_of(uint32_t key, int digit) {
    return key >> (digit * SAMPLE_DIGIT_BITS) & (SAMPLE_VALUES - 1);
}

// How often each value of a digit occurs in the share of this warp.
static __device__ void count_values(const ranked *from, const share &mine, int digit,
                                    uint32_t *counts) {
    for (uint32_t v = mine.lane; v < SAMPLE_VALUES; v += SAMPLE_WARP) counts[v] = 0;
    __syncwarp();
    for (uint32_t i = mine.first + mine.lane; i < mine.end; i += SAMPLE_WARP)
        atomicAdd(&counts[digit_of(from[i].key, digit)], 1u);
}

// Counts become places: value by value, and for each warp by warp, where the next element goes.
static __device__ void start_values(uint32_t (*next)[SAMPLE_VALUES], uint32_t *starts) {
    uint32_t value = threadIdx.x, lane = threadIdx.x % SAMPLE_WARP;
    if (value < SAMPLE_VALUES) {
        uint32_t sum = 0;
        for (uint32_t w = 0; w < SAMPLE_WARPS; w++) {
            uint32_t count = next[w][value];
            next[w][value] = sum;
            sum += count;
        }
        starts[value] = sum;
    }
    __syncthreads();
    if (threadIdx.x < SAMPLE_WARP) {
        const uint32_t each = SAMPLE_VALUES / SAMPLE_WARP;
        uint32_t sum = 0;
        for (uint32_t k = 0; k < each; k++) sum += starts[lane * each + k];
        uint32_t until = sum; // the sums of this lane and those before it
        for (uint32_t step = 1; step < SAMPLE_WARP; step *= 2) {
            uint32_t before = __shfl_up_sync(ALL_LANES, until, step);
            if (lane >= step) until += before;
        }
        for (uint32_t k = 0, start = until - sum; k < each; k++) {
            uint32_t count = starts[lane * each + k];
            starts[lane * each + k] = start;
            start += count;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SAMPLE_WARPS * SAMPLE_VALUES; i += SAMPLE_THREADS)
        next[i / SAMPLE_VALUES][i % SAMPLE_VALUES] += starts[i % SAMPLE_VALUES];
    __syncthreads();
}

// Puts one element of each lane, in their order, behind those of its value. Lanes that have none
// take part.
static __device__ __forceinline__ void put_lanes(ranked here, bool some, int digit, uint32_t lane,
                                                 uint32_t *next, ranked *to) {
    uint32_t value = some ? digit_of(here.key, digit) : (uint32_t)SAMPLE_VALUES;
    uint32_t same = __match_any_sync(ALL_LANES, value);
    uint32_t before = (uint32_t)__popc(same & ((1u << lane) - 1));
    uint32_t at = some ? next[value] : 0;
    __syncwarp();
    if (some && before == 0) next[value] = at + (uint32_t)__popc(same);
    __syncwarp();
    if (some) to[at + before] = here;
}

static __device__ void put_values(const ranked *from, const share &mine, int digit, uint32_t *next,
                                  ranked *to) {
    for (uint32_t first = mine.first; first < mine.end; first += SAMPLE_AHEAD * SAMPLE_WARP) {
        ranked here[SAMPLE_AHEAD];
#pragma unroll
        for (uint32_t k = 0; k < SAMPLE_AHEAD; k++)
            here[k] = from[min(first + k * SAMPLE_WARP + mine.lane, mine.end - 1)];
#pragma unroll
        for (uint32_t k = 0; k < SAMPLE_AHEAD; k++)
            put_lanes(here[k], first + k * SAMPLE_WARP + mine.lane < mine.end, digit, mine.lane,
                      next, to);
    }
}

// Radix sort from the lowest digit, each step stable. Returns the list that holds the order.
static __device__ const ranked *sort_row(const float *z, uint32_t n, ranked *from, ranked *to) {
    SHARED(uint32_t, next, [SAMPLE_WARPS][SAMPLE_VALUES]);
    SHARED(uint32_t, starts, [SAMPLE_VALUES]);
    const share mine = share_of(n);
    uint32_t *own = next[threadIdx.x / SAMPLE_WARP];
    for (uint32_t i = mine.first + mine.lane; i < mine.end; i += SAMPLE_WARP)
        from[i] = {sample_key(z[i]), i};
    for (int digit = 0; digit < SAMPLE_DIGITS; digit++) {
        count_values(from, mine, digit, own);
        __syncthreads();
        start_values(next, starts);
        put_values(from, mine, digit, own, to);
        __syncthreads();
        ranked *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

// ---- the sums ----------------------------------------------------------------------------------

// What counts of a sorted row.
struct head {
    const ranked *order;
    uint32_t count;
    float first;
    double temperature;
};

static __device__ uint32_t keys_until(const ranked *order, uint32_t n, uint32_t last_key) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (order[middle].key > last_key)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// The weights of a tile, +0 behind the last one; by all warps but the first.
static __device__ void put_weights(const head &h, uint32_t tile, double *weight) {
    if (threadIdx.x < SAMPLE_WARP) return;
    for (uint32_t k = threadIdx.x - SAMPLE_WARP; k < SAMPLE_TILE;
         k += SAMPLE_THREADS - SAMPLE_WARP) {
        uint32_t i = tile * SAMPLE_TILE + k;
        weight[k] = i < h.count ? sample_weight(h.order[i].key, h.first, h.temperature) : 0.0;
    }
}

// The running sum at the end of each tile.
static __device__ void sum_tiles(const head &h, double (*weight)[SAMPLE_TILE], double *ends) {
    uint32_t tiles = (h.count + SAMPLE_TILE - 1) / SAMPLE_TILE;
    double sum = 0.0;
    for (uint32_t tile = 0; tile <= tiles; tile++) {
        if (tile < tiles) put_weights(h, tile, weight[tile % 2]);
        if (tile > 0 && threadIdx.x == 0) {
            const double *from = weight[(tile - 1) % 2];
#pragma unroll 16
            for (uint32_t k = 0; k < SAMPLE_TILE; k++) sum += from[k];
            ends[tile - 1] = sum;
        }
        __syncthreads();
    }
}

static __device__ __forceinline__ bool reaches(double sum, double least, bool more) {
    return sum > least || (!more && sum == least);
}

struct place {
    uint32_t at;
    double sum;
};

// The first element whose running sum is `least` or more, or more than it. All threads get it.
static __device__ place first_sum(const head &h, const double *ends, double least, bool more,
                                  double *sum, place *found) {
    uint32_t tile = 0, high = (h.count - 1) / SAMPLE_TILE; // the last sum does
    while (tile < high) {
        uint32_t middle = (tile + high) / 2;
        if (reaches(ends[middle], least, more))
            high = middle;
        else
            tile = middle + 1;
    }
    double before = tile > 0 ? ends[tile - 1] : 0.0;
    put_weights(h, tile, sum);
    __syncthreads();
    if (threadIdx.x == 0) {
        double running = before;
#pragma unroll 16
        for (uint32_t k = 0; k < SAMPLE_TILE; k++) sum[k] = running += sum[k];
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < SAMPLE_TILE; k += SAMPLE_THREADS)
        if (reaches(sum[k], least, more) && (k == 0 || !reaches(sum[k - 1], least, more)))
            *found = {tile * SAMPLE_TILE + k, sum[k]};
    __syncthreads();
    return *found;
}

static __global__ void __launch_bounds__(SAMPLE_THREADS)
    sample_kernel(const float *z, uint32_t n, const sample_row *rows, uint8_t *workspace,
                  size_t bytes, int32_t *chosen) {
    SHARED(double, weight, [2][SAMPLE_TILE]);
    SHARED(place, found, [2]);
    const sample_row of = rows[blockIdx.x];
    const int32_t largest = chosen[of.row];
    if (largest < 0) return; // the whole block
    z += (size_t)of.row * n;
    ranked *lists = (ranked *)(workspace + blockIdx.x * bytes);
    double *ends = (double *)(lists + 2 * (size_t)n);
    head h = {sort_row(z, n, lists, lists + n), 0, sample_logit(sample_key(z[largest])),
              of.draw.temperature};
    h.count = keys_until(h.order, n, sample_last_key(h.first, h.temperature));
    sum_tiles(h, weight, ends);
    double total = ends[(h.count - 1) / SAMPLE_TILE];
    place kept = first_sum(h, ends, of.draw.top_p * total, false, weight[0], &found[0]);
    place drawn = first_sum(h, ends, of.draw.u * kept.sum, true, weight[1], &found[1]);
    if (threadIdx.x == 0) chosen[of.row] = (int32_t)h.order[drawn.at].id;
}

cudaError_t sample_launch(cudaStream_t stream, const float *z, uint32_t n, const sample_row *rows,
                          uint32_t count, void *workspace, int32_t *chosen) {
    if (count == 0) return cudaSuccess;
    LAUNCH(sample_kernel, count, SAMPLE_THREADS, 0, stream, z, n, rows, (uint8_t *)workspace,
           row_bytes(n), chosen);
    return cudaGetLastError();
}
