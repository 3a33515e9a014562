// A stand-in for the few calls of cuBLASLt that the engine makes: plain bf16 products. Like the
// real library it offers several algorithms, of which not all keep the engine's order of summation:
// they test that those are found out.
#include "kernels/simt/gemm.h"
#include "kernels/simt/runtime.h"
#include "kernels/simt/simt.h"

#include <cublasLt.h>

#include <cstring>

namespace simt {

// What NVIDIA's opaque structs hold here.
struct operation {
    int32_t transposed[2], epilogue;
};
struct layout {
    cudaDataType type;
    int32_t batch;
    uint64_t rows, columns;
    int64_t stride;
};
struct preference {
    uint64_t workspace_bytes;
    uint32_t reductions;
};
struct algorithm {
    uint64_t magic;
    int32_t id;
};
static const uint64_t ALGORITHM_MAGIC = 0x746d6973; // so that nobody runs an empty one

template <class ours, class theirs> static ours *inside(theirs *opaque) {
    static_assert(sizeof(ours) <= sizeof(theirs), "room in NVIDIA's struct");
    return reinterpret_cast<ours *>(opaque);
}

template <class opaque> static cublasStatus_t create(opaque **made) {
    *made = new opaque();
    return CUBLAS_STATUS_SUCCESS;
}

template <class opaque> static cublasStatus_t destroy(opaque *made) {
    delete made;
    return CUBLAS_STATUS_SUCCESS;
}

template <class value> static cublasStatus_t set(value *to, const void *from, size_t bytes) {
    if (bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

// The operands as gemm.h wants them; false: what the stand-in does not do.
static bool describe(const operation *o, const layout *a, const layout *b, const layout *c,
                     const layout *d, gemm *g) {
    const layout *all[] = {a, b, c, d};
    for (const layout *l : all)
        if (l->batch != 1 || l->stride < (int64_t)l->rows) return false;
    if (o->epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
    if (a->type != CUDA_R_16BF || b->type != CUDA_R_16BF || c->type != d->type) return false;
    if (d->type != CUDA_R_16BF && d->type != CUDA_R_32F) return false;
    bool at = o->transposed[0] != CUBLAS_OP_N, bt = o->transposed[1] != CUBLAS_OP_N;
    g->m = (at ? a->columns : a->rows);
    g->k = (at ? a->rows : a->columns);
    g->n = (bt ? b->rows : b->columns);
    if ((bt ? b->columns : b->rows) != g->k) return false;
    if (c->rows != g->m || c->columns != g->n || d->rows != g->m || d->columns != g->n)
        return false;
    g->a = matrix{nullptr, a->columns, (size_t)a->stride, at};
    g->b = matrix{nullptr, b->columns, (size_t)b->stride, !bt};
    g->c_stride = (size_t)c->stride;
    g->d_stride = (size_t)d->stride;
    g->fp32 = d->type == CUDA_R_32F;
    return true;
}

} // namespace simt

using namespace simt;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new char);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return destroy(reinterpret_cast<char *>(handle));
}

size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "a status that the emulator has no name for";
    }
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    create(made);
    *inside<operation>(*made) = operation{{CUBLAS_OP_N, CUBLAS_OP_N}, CUBLASLT_EPILOGUE_DEFAULT};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
    return destroy(d);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes) {
    operation *o = inside<operation>(d);
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(&o->transposed[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(&o->transposed[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(&o->epilogue, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
    create(made);
    *inside<layout>(*made) = layout{type, 1, rows, columns, stride};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
    return destroy(l);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
    create(made);
    *inside<preference>(*made) = preference{0, CUBLASLT_REDUCTION_SCHEME_MASK};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
    return destroy(p);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t bytes) {
    switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&inside<preference>(p)->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&inside<preference>(p)->reductions, value, bytes);
    default: return CUBLAS_STATUS_SUCCESS; // alignments: every one will do
    }
}

// The fastest first, as the real one guesses; the orders of summation are gemm.h's.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t,
                                              cublasLtMatmulDesc_t operation_given,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned) {
    gemm g;
    *returned = 0;
    if (!describe(inside<operation>(operation_given), inside<layout>(a), inside<layout>(b),
                  inside<layout>(c), inside<layout>(d), &g))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int id = 0; id < SUMMATIONS && *returned < wanted; id++) {
        if (id == SUM_SPLIT && inside<preference>(p)->reductions == CUBLASLT_REDUCTION_SCHEME_NONE)
            continue;
        if (id == SUM_CHAIN && !simt_get_options().blas_in_order) continue;
        cublasLtMatmulHeuristicResult_t *r = &results[(*returned)++];
        memset(r, 0, sizeof *r);
        r->state = CUBLAS_STATUS_SUCCESS;
        r->wavesCount = 1.0f;
        *inside<algorithm>(&r->algo) = algorithm{ALGORITHM_MAGIC, id};
    }
    return *returned > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void *value, size_t bytes, size_t *written) {
    const algorithm *x = inside<const algorithm>(algo);
    int32_t answer;
    switch (which) {
    case CUBLASLT_ALGO_CONFIG_ID: answer = x->id; break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: answer = x->id == SUM_SPLIT ? 2 : 1; break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
        answer = x->id == SUM_SPLIT ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                    : CUBLASLT_REDUCTION_SCHEME_NONE;
        break;
    default: answer = 0; // tiles, stages, ...: undefined
    }
    if (bytes != sizeof answer) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &answer, bytes);
    if (written != nullptr) *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t o,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
    gemm g;
    memset(result, 0, sizeof *result);
    if (inside<const algorithm>(algo)->magic != ALGORITHM_MAGIC) return CUBLAS_STATUS_INVALID_VALUE;
    bool known = describe(inside<operation>(o), inside<layout>(a), inside<layout>(b),
                          inside<layout>(c), inside<layout>(d), &g);
    return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation_given,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *, size_t, cudaStream_t stream) {
    gemm g;
    if (!describe(inside<operation>(operation_given), inside<layout>(a_layout),
                  inside<layout>(b_layout), inside<layout>(c_layout), inside<layout>(d_layout), &g))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const algorithm *x = inside<const algorithm>(algo);
    if (algo != nullptr && x->magic != ALGORITHM_MAGIC) return CUBLAS_STATUS_INVALID_VALUE;
    g.order = algo != nullptr ? (summation)x->id : SUM_SLICED;
    g.alpha = *(const float *)alpha;
    g.beta = *(const float *)beta;
    g.a.values = (const uint16_t *)a;
    g.b.values = (const uint16_t *)b;
    g.c = c;
    g.d = d;
    enqueue(stream, [g] { gemm_run(&g); });
    return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
