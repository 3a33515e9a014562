// The calls of cuBLASLt that lt.cu makes. Internal to it.
#ifndef LACUNA_KERNELS_CUDA_LT_LIBRARY_H
#define LACUNA_KERNELS_CUDA_LT_LIBRARY_H

#include <cublasLt.h>

#define LT_CALLS(X)                                                                                \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusName)                                                                       \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmul)

#define LT_MEMBER(call) decltype(&::call) call;
struct lt_library {
    void *loaded; // by dlopen, or NULL
    LT_CALLS(LT_MEMBER)
};
#undef LT_MEMBER

// False with `why` filled. The library stays loaded: it does not like to be unloaded.
bool lt_library_find(struct lt_library *out, char why[256]);

#endif
