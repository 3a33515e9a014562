#include "kernels/cpu/ceiling.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHAINS 12     // independent chains, enough to hide the latency of a fused multiply-add
#define ROUNDS 300000 // about a millisecond
#define TRIES 5

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)

// Each returns the multiply-adds done; `sink` keeps the results alive.

__attribute__((target("avx2,fma"))) static double run_avx2(float *sink) {
    __m256 a[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++) a[i] = _mm256_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) a[i] = _mm256_fmadd_ps(a[i], x, y);
    }
    for (int i = 1; i < CHAINS; i++) a[0] = _mm256_add_ps(a[0], a[i]);
    _mm256_storeu_ps(sink, a[0]);
    return (double)ROUNDS * CHAINS * 8;
}

__attribute__((target("avx512f"))) static double run_avx512f(float *sink) {
    __m512 a[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++) a[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) a[i] = _mm512_fmadd_ps(a[i], x, y);
    }
    for (int i = 1; i < CHAINS; i++) a[0] = _mm512_add_ps(a[0], a[i]);
    _mm512_storeu_ps(sink, a[0]);
    return (double)ROUNDS * CHAINS * 16;
}

__attribute__((target("avx512f,avx512bf16"))) static double run_avx512_bf16(float *sink) {
    __m512 a[CHAINS];
    __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
    for (int i = 0; i < CHAINS; i++) a[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) a[i] = _mm512_dpbf16_ps(a[i], x, x);
    }
    for (int i = 1; i < CHAINS; i++) a[0] = _mm512_add_ps(a[0], a[i]);
    _mm512_storeu_ps(sink, a[0]);
    return (double)ROUNDS * CHAINS * 32;
}

static double (*runner_of(const struct cpu_ops *table))(float *) {
    if (strcmp(table->name, "avx512_bf16") == 0) return run_avx512_bf16;
    if (strncmp(table->name, "avx512f", 7) == 0) return run_avx512f;
    if (strncmp(table->name, "avx2", 4) == 0) return run_avx2;
    return NULL;
}

#else

static double (*runner_of(const struct cpu_ops *table))(float *) {
    (void)table;
    return NULL;
}

#endif

struct fma_work {
    double (*run)(float *);
    double done; // by one thread; all do the same
};

static void fma_part(void *work, int thread, int n) {
    (void)n;
    struct fma_work *w = work;
    float sink[16];
    double done = w->run(sink);
    // The compiler must believe that somebody looks at the result.
    __asm__ volatile("" : : "r"(sink) : "memory");
    if (thread == 0) w->done = done;
}

double cpu_ceiling_fma_per_s(const struct cpu_ops *table, struct team *team, int threads) {
    double (*run)(float *) = runner_of(table);
    double best = 0;
    for (int i = 0; run != NULL && i < TRIES; i++) {
        struct fma_work work = {.run = run};
        double begun = now_s();
        team_run(team, threads, fma_part, &work);
        double rate = work.done * threads / (now_s() - begun);
        if (rate > best) best = rate;
    }
    return best;
}

typedef uint64_t lanes __attribute__((vector_size(32)));
#define STEP 128 // bytes of a stream at a time: two cache lines, which prefetchers pair

// `streams` regions side by side, then what is left over. Inlined with constants.
__attribute__((always_inline)) static inline uint64_t
read_streams(const uint8_t *memory, size_t bytes, size_t streams, size_t ahead) {
    lanes sum[STEP / sizeof(lanes)] = {{0}};
    size_t region = bytes / streams / STEP * STEP;
    for (size_t i = 0; i < region; i += STEP) {
        for (size_t s = 0; s < streams; s++) {
            const uint8_t *p = memory + s * region + i;
            if (ahead > 0) {
                __builtin_prefetch(p + ahead);
                __builtin_prefetch(p + ahead + 64);
            }
            const lanes *v = (const lanes *)(const void *)p;
            for (size_t k = 0; k < STEP / sizeof(lanes); k++) sum[k] ^= v[k];
        }
    }
    for (size_t i = streams * region; i < bytes; i += sizeof(lanes))
        sum[0] ^= *(const lanes *)(const void *)(memory + i);
    for (size_t k = 1; k < STEP / sizeof(lanes); k++) sum[0] ^= sum[k];
    return sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3];
}

__attribute__((always_inline)) static inline uint64_t read_way(int way, const uint8_t *memory,
                                                               size_t bytes) {
    switch (way) {
    case 0: return read_streams(memory, bytes, 1, 0);
    case 1: return read_streams(memory, bytes, 4, 0);
    case 2: return read_streams(memory, bytes, 8, 0);
    case 3: return read_streams(memory, bytes, 16, 0);
    case 4: return read_streams(memory, bytes, 1, 2048);
    case 5: return read_streams(memory, bytes, 4, 2048);
    case 6: return read_streams(memory, bytes, 8, 2048);
    default: return read_streams(memory, bytes, 16, 2048);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t read_avx2(int way, const uint8_t *memory,
                                                          size_t bytes) {
    return read_way(way, memory, bytes);
}
#endif

uint64_t cpu_ceiling_read(int way, const void *memory, size_t bytes) {
    assert(way >= 0 && way < CPU_READ_WAYS && bytes % 64 == 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return read_avx2(way, memory, bytes);
#endif
    return read_way(way, memory, bytes);
}

struct read_work {
    int way;
    const uint8_t *memory;
    size_t part;
};

static void read_part(void *work, int thread, int n) {
    (void)n;
    const struct read_work *w = work;
    uint64_t sum = cpu_ceiling_read(w->way, w->memory + w->part * (size_t)thread, w->part);
    __asm__ volatile("" : : "r"(sum));
}

double cpu_ceiling_read_per_s(const void *memory, size_t bytes, struct team *team, int threads) {
    size_t part = bytes / (size_t)threads / 64 * 64;
    double best = 0;
    if (part == 0) return 0;
    for (int way = 0; way < CPU_READ_WAYS; way++) {
        struct read_work work = {way, memory, part};
        double begun = now_s();
        team_run(team, threads, read_part, &work);
        double rate = (double)part * threads / (now_s() - begun);
        if (rate > best) best = rate;
    }
    return best;
}
