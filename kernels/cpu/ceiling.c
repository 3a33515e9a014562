#include "kernels/cpu/ceiling.h"

#include <omp.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHAINS 12 // independent chains, enough to hide the latency of a fused multiply-add
#define ROUNDS 200000
#define TRIES 7 // the best one counts: whatever else runs can only take away

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

double cpu_ceiling_fma_per_s(const struct cpu_ops *table, int threads) {
    double (*run)(float *) = runner_of(table);
    double best = 0;
    for (int i = 0; run != NULL && i < TRIES; i++) {
        double done = 0, begun = now_s();
#pragma omp parallel num_threads(threads) reduction(+ : done)
        {
            float sink[16];
            done += run(sink);
            // The compiler must believe that somebody looks at the result.
            __asm__ volatile("" : : "r"(sink) : "memory");
        }
        double rate = done / (now_s() - begun);
        if (rate > best) best = rate;
    }
    return best;
}

double cpu_ceiling_read_per_s(const void *memory, size_t bytes, int threads) {
    const uint64_t *p = memory;
    size_t words = bytes / sizeof *p / 8 * 8;
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        uint64_t sum = 0;
        double begun = now_s();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (size_t w = 0; w < words; w += 8)
            sum +=
                p[w] + p[w + 1] + p[w + 2] + p[w + 3] + p[w + 4] + p[w + 5] + p[w + 6] + p[w + 7];
        __asm__ volatile("" : : "r"(sum));
        double rate = (double)(words * sizeof *p) / (now_s() - begun);
        if (rate > best) best = rate;
    }
    return best;
}
