// Speed of the op tables on the shapes of SmolLM2-135M, each with its share of what this processor
// can do at most. Usage: bench_ops [TABLE|all] [THREADS]. One thread is timed by its own CPU time,
// so that other work on the machine disturbs less; more threads by the clock. Best of several runs.
#include "engine/base/rng.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/shape.h"

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int threads = 1;

static double seconds(void) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t bytes) {
    void *p = aligned_alloc(64, shape_aligned(bytes + 64));
    if (p == NULL) abort();
    memset(p, 0, bytes);
    return p;
}

// Ceilings of one thread: multiply-adds on registers, in units of 2 FLOP.
#define CEILING(name, target_text, type, flop, zero, step)                                         \
    __attribute__((target(target_text), noinline)) static double name(void) {                      \
        type a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero;       \
        type k = zero, l = zero, m = zero, n = zero, x = zero, y = zero;                           \
        double start = seconds();                                                                  \
        for (int round = 0; round < 2000000; round++) {                                            \
            step(a);                                                                               \
            step(b);                                                                               \
            step(c);                                                                               \
            step(d);                                                                               \
            step(e);                                                                               \
            step(f);                                                                               \
            step(g);                                                                               \
            step(h);                                                                               \
            step(k);                                                                               \
            step(l);                                                                               \
            step(m);                                                                               \
            step(n);                                                                               \
        }                                                                                          \
        return 2e6 * 12 * (flop) / (seconds() - start);                                            \
    }

#define STEP_FMA(to) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(to) : "v"(x), "v"(y))
#define STEP_DOT(to) __asm__ volatile("vdpbf16ps %1, %2, %0" : "+v"(to) : "v"(x), "v"(y))
CEILING(ceiling_avx2, "avx2,fma", __m256, 16, _mm256_setzero_ps(), STEP_FMA)
CEILING(ceiling_avx512f, "avx512f", __m512, 32, _mm512_setzero_ps(), STEP_FMA)
CEILING(ceiling_avx512_bf16, "avx512f,avx512bf16", __m512, 64, _mm512_setzero_ps(), STEP_DOT)

// Bytes a second of one thread reading `bytes` over and over.
__attribute__((target("avx2"), noinline)) static double read_ceiling(size_t bytes) {
    const char *p = allocate(bytes);
    __m256i sum = _mm256_setzero_si256();
    double best = 0;
    for (int run = 0; run < 6; run++) {
        double start = seconds();
        for (size_t i = 0; i < bytes / 8; i += 64) { // eight streams
            for (size_t j = 0; j < bytes; j += bytes / 8) {
                sum = _mm256_xor_si256(sum, _mm256_load_si256((const __m256i *)(p + i + j)));
                sum = _mm256_xor_si256(sum, _mm256_load_si256((const __m256i *)(p + i + j + 32)));
            }
        }
        double rate = (double)bytes / (seconds() - start);
        best = rate > best ? rate : best;
    }
    volatile int keep = _mm256_extract_epi32(sum, 0);
    (void)keep;
    free((void *)p);
    return best;
}

static double ceiling_of(const struct cpu_ops *ops) {
    double best = 0;
    for (int run = 0; run < 5; run++) {
        double rate = strcmp(ops->name, "avx512_bf16") == 0 ? ceiling_avx512_bf16()
                      : strcmp(ops->name, "avx512f") == 0   ? ceiling_avx512f()
                                                            : ceiling_avx2();
        best = rate > best ? rate : best;
    }
    return best * threads;
}

static void fill(const struct cpu_ops *ops, struct rng *r, void *operands, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = (float)(rng_unit(r) - 0.5);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (ops->numerics == CPU_F32)
            ((float *)operands)[i] = x;
        else
            ((uint16_t *)operands)[i] = (uint16_t)(bits >> 16);
    }
}

static struct cpu_pool make_pool(const struct cpu_ops *ops) {
    struct cpu_pool pool = {.team = team_open(threads), .threads = threads};
    if (pool.team == NULL) exit(1);
    pool.slice_bytes = cpu_slice_bytes(ops->numerics, 512, 1536, 49152, 9, 3, 64);
    pool.scratch = allocate(pool.slice_bytes * (size_t)threads);
    return pool;
}

static void bench_matmul(const struct cpu_ops *ops, uint32_t R, uint32_t K, uint32_t N,
                         double ceiling) {
    struct rng r = rng_open(1, "bench", "matmul");
    struct cpu_pool pool = make_pool(ops);
    size_t weights = (size_t)shape_panels(N) * CPU_PANEL * K;
    void *w = allocate(weights * ops->operand_bytes),
         *x = allocate((size_t)R * K * ops->operand_bytes);
    fill(ops, &r, w, weights < 4000000 ? weights : 4000000);
    fill(ops, &r, x, (size_t)R * K);
    float *y = allocate((size_t)R * N * sizeof *y);
    struct cpu_matrix matrix = {.N = N, .K = K, .panels = w};
    double flop = 2.0 * R * K * N, best = 1e9;
    int runs = flop > 1e9 ? 5 : 40;
    for (int run = 0; run < runs; run++) {
        double start = seconds();
        ops->matmul(&pool, x, K, R, &matrix, NULL, false, y, N);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    printf("  matmul %4u x %5u x %5u  %8.3f ms  %7.1f GFLOP/s  %5.1f %%  %6.1f GB/s of weights\n",
           R, K, N, best * 1e3, flop / best * 1e-9, 100 * flop / best / ceiling,
           (double)(weights * ops->operand_bytes) / best * 1e-9);
    free(w);
    free(x);
    free(y);
    team_close(pool.team);
    free(pool.scratch);
}

// The same over compact weights of a quantized format.
static void bench_compact(const struct cpu_ops *ops, enum tensor_type type, uint32_t R, uint32_t K,
                          uint32_t N, double ceiling) {
    struct rng r = rng_open(1, "bench", "compact");
    struct cpu_pool pool = make_pool(ops);
    const struct tensor_format *f = tensor_format_of(type);
    size_t block_bytes = (size_t)N * K / f->block * f->block_bytes;
    uint8_t *blocks = allocate(block_bytes);
    for (size_t i = 0; i < block_bytes; i++) blocks[i] = rng_u32(&r) & 0x3b;
    struct cpu_compact_part part = {.type = type, .rows = N, .data = blocks};
    struct cpu_matrix matrix;
    size_t bytes = cpu_compact_plan(&part, 1, K, &matrix);
    uint8_t *memory = allocate(bytes);
    for (uint32_t p = 0; p < shape_panels(N); p++)
        (void)cpu_compact_pack(&matrix, &part, 1, p, memory);
    matrix.compact = memory;
    void *x = allocate((size_t)R * K * ops->operand_bytes);
    fill(ops, &r, x, (size_t)R * K);
    float *y = allocate((size_t)R * N * sizeof *y);
    double flop = 2.0 * R * K * N, best = 1e9;
    for (int run = 0; run < (flop > 1e9 ? 5 : 40); run++) {
        double start = seconds();
        ops->matmul(&pool, x, K, R, &matrix, NULL, false, y, N);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    printf("  %s   %4u x %5u x %5u  %8.3f ms  %7.1f GFLOP/s  %5.1f %%  %6.1f GB/s of weights\n",
           f->name, R, K, N, best * 1e3, flop / best * 1e-9, 100 * flop / best / ceiling,
           (double)bytes / best * 1e-9);
    free(blocks);
    free(memory);
    free(x);
    free(y);
    team_close(pool.team);
    free(pool.scratch);
}

// `rows` queries that end at position `length`, nine heads on three.
static void bench_attention(const struct cpu_ops *ops, uint32_t rows, uint32_t length,
                            double ceiling) {
    enum { H = 9, G = 3, E = 64 };
    struct rng r = rng_open(2, "bench", "attention");
    struct cpu_pool pool = make_pool(ops);
    struct cpu_attention a = {.H = H, .G = G, .E = E, .scale = 0.125};
    uint8_t *pages[64] = {0};
    for (uint32_t b = 0; b * CPU_PAGE < length; b++) {
        size_t bytes = 2 * cpu_kv_bytes(ops->numerics, G, E);
        pages[b] = allocate(bytes);
        fill(ops, &r, pages[b], bytes / ops->operand_bytes);
    }
    void *q = allocate((size_t)rows * H * E * ops->operand_bytes);
    void *out = allocate((size_t)rows * H * E * ops->operand_bytes);
    fill(ops, &r, q, (size_t)rows * H * E);
    struct cpu_span span = {.rows = rows, .first_position = length - rows, .pages = pages};
    double best = 1e9, seen = 0;
    for (uint32_t i = 0; i < rows; i++) seen += length - rows + i + 1;
    double flop = seen * H * E * 4;
    for (int run = 0; run < (flop > 1e9 ? 4 : 30); run++) {
        uint32_t bad;
        double start = seconds();
        (void)ops->attention(&pool, &span, 1, &a, q, H * E, out, H * E, &bad);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    printf("  attention %4u rows to %5u  %8.3f ms  %7.1f GFLOP/s  %5.1f %%\n", rows, length,
           best * 1e3, flop / best * 1e-9, 100 * flop / best / ceiling);
    for (uint32_t b = 0; b < 64; b++) free(pages[b]);
    free(q);
    free(out);
    team_close(pool.team);
    free(pool.scratch);
}

static void bench_rows(const struct cpu_ops *ops) {
    enum { R = 512, D = 576, F = 1536, E = 64 };
    struct rng r = rng_open(3, "bench", "rows");
    struct cpu_pool pool = make_pool(ops);
    float *x = allocate((size_t)R * 2 * F * sizeof *x),
          *angles = allocate((size_t)R * E * sizeof *angles);
    void *out = allocate((size_t)R * F * sizeof(float));
    for (size_t i = 0; i < (size_t)R * 2 * F; i++) x[i] = (float)(rng_unit(&r) - 0.5);
    double best[3] = {1e9, 1e9, 1e9};
    for (int run = 0; run < 10; run++) {
        double start = seconds();
        ops->rmsnorm(&pool, x, R, D, x, 1e-5f, out, D);
        double norm = seconds();
        ops->gate(&pool, CPU_GATE_SILU, x, 2 * F, R, F, out, F);
        double gate = seconds();
        ops->rope(&pool, x, 960, R, 12, E, E, CPU_PAIR_NEIGHBOURS, angles, out, 960);
        double rope = seconds();
        const double took[3] = {norm - start, gate - norm, rope - gate};
        for (int i = 0; i < 3; i++) best[i] = took[i] < best[i] ? took[i] : best[i];
    }
    printf("  512 rows: norm %.3f ms, gate %.3f ms, rotation %.3f ms\n", best[0] * 1e3,
           best[1] * 1e3, best[2] * 1e3);
    free(x);
    free(angles);
    free(out);
    team_close(pool.team);
    free(pool.scratch);
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "all";
    threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    const uint32_t shapes[][2] = {{576, 960}, {576, 576}, {576, 3072}, {1536, 576}};
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    printf("%d thread%s; reading 512 MiB: %.1f GB/s, 1 MiB: %.1f GB/s (one thread)\n", threads,
           threads == 1 ? "" : "s", read_ceiling(512u << 20) * 1e-9, read_ceiling(1u << 20) * 1e-9);
    for (int t = 0; t < count; t++) {
        const struct cpu_ops *ops = tables[t];
        if (strcmp(only, "all") != 0 && strcmp(only, ops->name) != 0) continue;
        if (ops->name[0] == 'c' && strcmp(only, ops->name) != 0)
            continue; // plain C only when asked
        if (cpu_ops_find(ops->numerics, ops->name, NULL) == NULL) continue;
        double ceiling = ceiling_of(ops);
        printf("%s: at most %.1f GFLOP/s\n", ops->name, ceiling * 1e-9);
        for (int s = 0; s < 4; s++) bench_matmul(ops, 512, shapes[s][0], shapes[s][1], ceiling);
        bench_compact(ops, TENSOR_Q4_1, 512, 576, 3072, ceiling);
        for (uint32_t R = 1; R <= 16; R *= 2) {
            for (int s = 0; s < 4; s++) bench_matmul(ops, R, shapes[s][0], shapes[s][1], ceiling);
            bench_matmul(ops, R, 576, 49152, ceiling);
            for (int s = 0; s < 4; s++)
                bench_compact(ops, TENSOR_Q4_1, R, shapes[s][0], shapes[s][1], ceiling);
            bench_compact(ops, TENSOR_Q4_1, R, 576, 49152, ceiling);
            bench_compact(ops, TENSOR_Q8_0, R, 576, 49152, ceiling);
        }
        bench_attention(ops, 512, 512, ceiling);
        bench_attention(ops, 512, 2048, ceiling);
        bench_attention(ops, 512, 8192, ceiling);
        bench_attention(ops, 1, 2048, ceiling);
        bench_attention(ops, 1, 8192, ceiling);
        bench_rows(ops);
    }
    return 0;
}
