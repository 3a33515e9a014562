#include "tests/gpu/gpu.h"
#include "tests/gpu/gpu_blas.h"

#include "engine/base/json.h"
#include "kernels/cuda/ops.h"

#include <stdio.h>

const struct cuda_ops *lacuna_cuda_ops(void);

static struct cuda_device *open_device(struct cuda_facts *facts) {
    struct cuda_device *d;
    char why[256];
    if (lacuna_cuda_ops()->open(&d, facts, why) == 0) return d;
    fprintf(stderr, "%s\n", why);
    return NULL;
}

static int print(json_t *j) {
    struct buf b = {0};
    json_compact(j, &b);
    printf("%.*s\n", (int)b.n, b.p);
    buf_free(&b);
    json_decref(j);
    return 0;
}

int gpu_facts(void) {
    struct cuda_facts f;
    struct cuda_device *d = open_device(&f);
    if (d == NULL) return 1;
    uint64_t available = 0;
    int failed = lacuna_cuda_ops()->memory_free(d, &available);
    lacuna_cuda_ops()->close(d);
    json_t *j = json_object();
    json_put(j, "device", json_text_c(f.name));
    json_put(j, "compute_capability", json_integer(f.capability));
    json_put(j, "driver_cuda", json_integer(f.driver));
    json_put(j, "runtime_cuda", json_integer(f.runtime));
    json_put(j, "processors", json_integer(f.processors));
    json_put(j, "memory_bytes", json_integer((json_int_t)f.memory_bytes));
    json_put(j, "memory_free_bytes", json_integer((json_int_t)available));
    json_put(j, "kernels", json_text_c(lacuna_cuda_ops()->name));
    print(j);
    return failed != 0;
}

// The kernels' own products, copies of device memory, and cuBLASLt's products where it is.
int gpu_rates(void) {
    struct cuda_facts f;
    struct cuda_device *d = open_device(&f);
    if (d == NULL) return 1;
    double flop_per_s = 0, bytes_per_s = 0;
    size_t near = 0;
    lacuna_cuda_ops()->ceilings(d, &flop_per_s, &bytes_per_s, &near);
    const char *failure = lacuna_cuda_ops()->failure(d);
    if (failure != NULL) fprintf(stderr, "%s\n", failure);
    char why[256] = "";
    double library = gpu_blas_flop_per_s(why);
    json_t *j = json_object();
    json_put(j, "own_matmul_flop_per_s", json_integer((json_int_t)flop_per_s));
    json_put(j, "copy_bytes_per_s", json_integer((json_int_t)bytes_per_s));
    json_put(j, "cublaslt_matmul_flop_per_s",
             library > 0 ? json_integer((json_int_t)library) : json_null());
    json_put(j, "cublaslt", json_text_c(library > 0 ? "measured" : why));
    print(j);
    bool measured = failure == NULL && flop_per_s > 0 && bytes_per_s > 0;
    lacuna_cuda_ops()->close(d);
    return !measured;
}
