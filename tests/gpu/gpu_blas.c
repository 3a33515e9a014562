#include "tests/gpu/gpu_blas.h"

#include "engine/base/rng.h"
#include "kernels/numerics.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE_LEAST 64
#define SIDE_MOST 8192
#define LEAST_MS 1.0f // of a measure that counts
#define RUNS 5
#define WORKSPACE ((size_t)64 << 20)

#define CALLS(X)                                                                                   \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

static struct {
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
} blas;

// The emulator's stand-in is part of the program.
static bool find_library(char why[256]) {
#ifdef LACUNA_GPU
    void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) library = dlopen("/usr/local/cuda/lib64/libcublasLt.so.13", RTLD_NOW);
    if (library == NULL) {
        snprintf(why, 256, "not on this machine: %.200s", dlerror());
        return false;
    }
#define X(name)                                                                                    \
    if ((*(void **)&blas.name = dlsym(library, #name)) == NULL) {                                  \
        snprintf(why, 256, "the library has no %s", #name);                                        \
        return false;                                                                              \
    }
    CALLS(X)
#undef X
#else
    (void)why;
#define X(name) blas.name = name;
    CALLS(X)
#undef X
#endif
    return true;
}

// d = a^T b, all square, in column order as the library has it.
struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t operand, result;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t chosen;
    void *a, *b, *d, *workspace;
};

static bool good(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool describe(struct product *p, uint64_t side) {
    int32_t transposed = CUBLAS_OP_T;
    size_t workspace = WORKSPACE;
    int count = 0;
    return good(blas.cublasLtMatmulDescCreate(&p->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
           good(blas.cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                                    &transposed, sizeof transposed)) &&
           good(blas.cublasLtMatrixLayoutCreate(&p->operand, CUDA_R_16BF, side, side,
                                                (int64_t)side)) &&
           good(blas.cublasLtMatrixLayoutCreate(&p->result, CUDA_R_32F, side, side,
                                                (int64_t)side)) &&
           good(blas.cublasLtMatmulPreferenceCreate(&p->preference)) &&
           good(blas.cublasLtMatmulPreferenceSetAttribute(p->preference,
                                                          CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                          &workspace, sizeof workspace)) &&
           good(blas.cublasLtMatmulAlgoGetHeuristic(p->handle, p->operation, p->operand, p->operand,
                                                    p->result, p->result, p->preference, 1,
                                                    &p->chosen, &count)) &&
           count == 1;
}

// Random numbers: zeros cost less power and would flatter.
static bool fill(struct product *p, size_t n) {
    uint16_t *host = malloc(n * sizeof *host);
    struct rng r = rng_open(1, "blas", "operands");
    for (size_t i = 0; host != NULL && i < n; i++) {
        uint32_t bits = rng_u32(&r);
        host[i] = (uint16_t)(0x3f00u | (bits & 0x80ffu)); // size 1, any sign
    }
    bool filled = host != NULL && cudaMalloc(&p->a, n * 2) == cudaSuccess &&
                  cudaMalloc(&p->b, n * 2) == cudaSuccess &&
                  cudaMalloc(&p->d, n * 4) == cudaSuccess &&
                  cudaMalloc(&p->workspace, WORKSPACE) == cudaSuccess &&
                  cudaMemcpy(p->a, host, n * 2, cudaMemcpyHostToDevice) == cudaSuccess &&
                  cudaMemcpy(p->b, host, n * 2, cudaMemcpyHostToDevice) == cudaSuccess;
    free(host);
    return filled;
}

// Milliseconds of the fastest of some runs; 0 when one failed.
static float fastest(struct product *p) {
    float best = 0, one = 1, zero = 0;
    cudaEvent_t begun, ended;
    if (cudaEventCreate(&begun) != cudaSuccess) return 0;
    if (cudaEventCreate(&ended) == cudaSuccess) {
        for (int i = 0; i < RUNS; i++) {
            float ms = 0;
            cudaEventRecord(begun, NULL);
            bool done = good(blas.cublasLtMatmul(
                p->handle, p->operation, &one, p->a, p->operand, p->b, p->operand, &zero, p->d,
                p->result, p->d, p->result, &p->chosen.algo, p->workspace, WORKSPACE, NULL));
            cudaEventRecord(ended, NULL);
            done = done && cudaEventSynchronize(ended) == cudaSuccess &&
                   cudaEventElapsedTime(&ms, begun, ended) == cudaSuccess;
            if (!done) {
                best = 0;
                break;
            }
            if (i == 0 || ms < best) best = ms;
        }
        cudaEventDestroy(ended);
    }
    cudaEventDestroy(begun);
    return best;
}

static float product_ms(uint32_t side) {
    struct product p = {0};
    float ms = 0;
    if (good(blas.cublasLtCreate(&p.handle)) && describe(&p, side) && fill(&p, (size_t)side * side))
        ms = fastest(&p);
    void *const taken[] = {p.a, p.b, p.d, p.workspace};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) cudaFree(taken[i]);
    if (p.preference != NULL) blas.cublasLtMatmulPreferenceDestroy(p.preference);
    if (p.result != NULL) blas.cublasLtMatrixLayoutDestroy(p.result);
    if (p.operand != NULL) blas.cublasLtMatrixLayoutDestroy(p.operand);
    if (p.operation != NULL) blas.cublasLtMatmulDescDestroy(p.operation);
    if (p.handle != NULL) blas.cublasLtDestroy(p.handle);
    return ms;
}

double gpu_blas_flop_per_s(char why[256]) {
    if (!find_library(why)) return 0;
    double best = 0;
    for (uint32_t side = SIDE_LEAST; side <= SIDE_MOST; side *= 2) {
        float ms = product_ms(side);
        if (ms <= 0) {
            snprintf(why, 256, "a product of %u by %u failed", side, side);
            return 0;
        }
        best = 2e3 * (double)side * side * side / (double)ms;
        if (ms >= LEAST_MS) break;
    }
    return best;
}
