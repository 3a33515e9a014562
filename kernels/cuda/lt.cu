#include "kernels/cuda/lt.h"

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/lt_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERAND_ALIGNMENT 16 // bytes; promised of x, w and y

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(cuda_algorithm::opaque), "stored as a whole");

struct lt {
    struct lt_library calls;
    cublasLtHandle_t handle;
};

// What the library wants to know of a product. It counts in columns: x is K x rows, w K x N, and y
// N x rows, so that y = w^T x.
struct description {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t w, x, y;
};

struct lt_product {
    const struct lt *lt;
    struct description d;
    cublasLtMatmulAlgo_t algorithm;
};

static uint32_t whole(uint32_t n, uint32_t unit) {
    return (n + unit - 1) / unit * unit;
}

static void forget(const struct lt *lt, struct description *d) {
    if (d->operation != NULL) (void)lt->calls.cublasLtMatmulDescDestroy(d->operation);
    if (d->w != NULL) (void)lt->calls.cublasLtMatrixLayoutDestroy(d->w);
    if (d->x != NULL) (void)lt->calls.cublasLtMatrixLayoutDestroy(d->x);
    if (d->y != NULL) (void)lt->calls.cublasLtMatrixLayoutDestroy(d->y);
    *d = {};
}

// K goes up to a multiple of 16, as in the own kernels: operands are +0 there.
static bool describe(const struct lt *lt, const struct lt_shape *s, struct description *d) {
    const struct lt_library *c = &lt->calls;
    int32_t transposed = CUBLAS_OP_T;
    uint64_t depth = whole(s->K, 16);
    int64_t ld = whole(s->K, GEMM_ROW_ALIGNMENT);
    *d = {};
    bool done =
        c->cublasLtMatmulDescCreate(&d->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
            CUBLAS_STATUS_SUCCESS &&
        c->cublasLtMatmulDescSetAttribute(d->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed) == CUBLAS_STATUS_SUCCESS &&
        c->cublasLtMatrixLayoutCreate(&d->w, CUDA_R_16BF, depth, s->N, ld) ==
            CUBLAS_STATUS_SUCCESS &&
        c->cublasLtMatrixLayoutCreate(&d->x, CUDA_R_16BF, depth, s->rows, ld) ==
            CUBLAS_STATUS_SUCCESS &&
        c->cublasLtMatrixLayoutCreate(&d->y, CUDA_R_32F, s->N, s->rows, s->N) ==
            CUBLAS_STATUS_SUCCESS;
    if (!done) forget(lt, d);
    return done;
}

uint64_t lt_installed(void) {
    struct lt_library calls;
    char why[256];
    return lt_library_find(&calls, why) ? calls.cublasLtGetVersion() : 0;
}

bool lt_open(struct lt **out, char why[256]) {
    struct lt *lt = (struct lt *)calloc(1, sizeof *lt);
    *out = NULL;
    if (lt == NULL) {
        snprintf(why, 256, "no memory on the host");
        return false;
    }
    if (!lt_library_find(&lt->calls, why)) {
        free(lt);
        return false;
    }
    cublasStatus_t status = lt->calls.cublasLtCreate(&lt->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        snprintf(why, 256, "cuBLASLt cannot be used: %s", lt->calls.cublasLtGetStatusName(status));
        free(lt);
        return false;
    }
    *out = lt;
    return true;
}

void lt_close(struct lt *lt) {
    if (lt == NULL) return;
    (void)lt->calls.cublasLtDestroy(lt->handle);
    free(lt);
}

uint64_t lt_version(const struct lt *lt) {
    return lt->calls.cublasLtGetVersion();
}

// ---- candidates --------------------------------------------------------------------------------

static bool prefer(const struct lt *lt, cublasLtMatmulPreference_t p, bool any) {
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        uint32_t value;
    } wanted[] = {
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         any ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_MASK : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, OPERAND_ALIGNMENT},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, OPERAND_ALIGNMENT},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, OPERAND_ALIGNMENT},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, OPERAND_ALIGNMENT},
    };
    uint64_t workspace = any ? LT_WORKSPACE_BYTES : 0;
    bool done = lt->calls.cublasLtMatmulPreferenceSetAttribute(
                    p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) ==
                CUBLAS_STATUS_SUCCESS;
    for (const auto &w : wanted)
        done = done && lt->calls.cublasLtMatmulPreferenceSetAttribute(
                           p, w.which, &w.value, sizeof w.value) == CUBLAS_STATUS_SUCCESS;
    return done;
}

static int ask(const struct lt *lt, const struct description *d, bool any,
               cublasLtMatmulHeuristicResult_t results[LT_CANDIDATES]) {
    cublasLtMatmulPreference_t p;
    int count = 0;
    if (lt->calls.cublasLtMatmulPreferenceCreate(&p) != CUBLAS_STATUS_SUCCESS) return 0;
    if (!prefer(lt, p, any) || lt->calls.cublasLtMatmulAlgoGetHeuristic(
                                   lt->handle, d->operation, d->w, d->x, d->y, d->y, p,
                                   LT_CANDIDATES, results, &count) != CUBLAS_STATUS_SUCCESS)
        count = 0;
    (void)lt->calls.cublasLtMatmulPreferenceDestroy(p);
    return count;
}

static int32_t attribute(const struct lt *lt, const cublasLtMatmulAlgo_t *algorithm,
                         cublasLtMatmulAlgoConfigAttributes_t which) {
    int32_t value = -1;
    size_t written;
    if (lt->calls.cublasLtMatmulAlgoConfigGetAttribute(algorithm, which, &value, sizeof value,
                                                       &written) != CUBLAS_STATUS_SUCCESS)
        return -1;
    return value;
}

// A serial merge of parts calls itself "no reduction", so that the number of parts is asked as
// well.
static bool is_one_sum(const struct lt *lt, const cublasLtMatmulAlgo_t *algorithm) {
    int32_t parts = attribute(lt, algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    return (parts == 0 || parts == 1) &&
           attribute(lt, algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) ==
               CUBLASLT_REDUCTION_SCHEME_NONE;
}

int lt_candidates(struct lt *lt, const struct lt_shape *shape, bool any,
                  struct cuda_algorithm out[LT_CANDIDATES]) {
    cublasLtMatmulHeuristicResult_t results[LT_CANDIDATES];
    struct description d;
    int n = 0;
    if (!describe(lt, shape, &d)) return 0;
    int count = ask(lt, &d, any, results);
    forget(lt, &d);
    for (int i = 0; i < count; i++) {
        const cublasLtMatmulAlgo_t *a = &results[i].algo;
        if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
        if (!any && (results[i].workspaceSize > 0 || !is_one_sum(lt, a))) continue;
        struct cuda_algorithm *to = &out[n++];
        memcpy(to->opaque, a, sizeof to->opaque);
        to->id = attribute(lt, a, CUBLASLT_ALGO_CONFIG_ID);
        to->tile = attribute(lt, a, CUBLASLT_ALGO_CONFIG_TILE_ID);
        to->stages = attribute(lt, a, CUBLASLT_ALGO_CONFIG_STAGES_ID);
    }
    return n;
}

// ---- products ----------------------------------------------------------------------------------

struct lt_product *lt_product_open(struct lt *lt, const struct lt_shape *shape,
                                   const struct cuda_algorithm *algorithm) {
    struct lt_product *p = (struct lt_product *)calloc(1, sizeof *p);
    cublasLtMatmulHeuristicResult_t checked;
    if (p == NULL) return NULL;
    p->lt = lt;
    memcpy(&p->algorithm, algorithm->opaque, sizeof p->algorithm);
    if (describe(lt, shape, &p->d) &&
        lt->calls.cublasLtMatmulAlgoCheck(lt->handle, p->d.operation, p->d.w, p->d.x, p->d.y,
                                          p->d.y, &p->algorithm,
                                          &checked) == CUBLAS_STATUS_SUCCESS &&
        checked.workspaceSize <= LT_WORKSPACE_BYTES)
        return p;
    lt_product_close(p);
    return NULL;
}

void lt_product_close(struct lt_product *p) {
    if (p == NULL) return;
    forget(p->lt, &p->d);
    free(p);
}

cudaError_t lt_product_run(const struct lt_product *p, cudaStream_t stream, const void *x,
                           const void *w, float *y, void *workspace) {
    const float one = 1.0f, zero = 0.0f;
    cublasStatus_t status = p->lt->calls.cublasLtMatmul(
        p->lt->handle, p->d.operation, &one, w, p->d.w, x, p->d.x, &zero, y, p->d.y, y, p->d.y,
        &p->algorithm, workspace, workspace != NULL ? LT_WORKSPACE_BYTES : 0, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return cudaSuccess;
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? cudaErrorNotSupported : cudaErrorUnknown;
}
