#include "tests/gpu/gpu.h"
#include "tests/gpu/gpu_device.h"

#include <stdio.h>

const struct cuda_ops *lacuna_cuda_ops(void);

const struct cuda_ops *gpu_ops(void) {
    return lacuna_cuda_ops();
}

struct cuda_device *gpu_open(struct cuda_facts *facts) {
    struct cuda_device *d;
    char why[256];
    if (gpu_ops()->open(&d, facts, why) == 0) return d;
    fprintf(stderr, "%s\n", why);
    return NULL;
}

void gpu_print(json_t *j) {
    struct buf b = {0};
    json_compact(j, &b);
    printf("%.*s\n", (int)b.n, b.p);
    buf_free(&b);
    json_decref(j);
}

int gpu_facts(void) {
    struct cuda_facts f;
    struct cuda_device *d = gpu_open(&f);
    if (d == NULL) return 1;
    uint64_t available = 0;
    int failed = gpu_ops()->memory_free(d, &available);
    gpu_ops()->close(d);
    json_t *j = json_object();
    json_put(j, "device", json_text_c(f.name));
    json_put(j, "compute_capability", json_integer(f.capability));
    json_put(j, "driver_cuda", json_integer(f.driver));
    json_put(j, "runtime_cuda", json_integer(f.runtime));
    json_put(j, "cublaslt", json_integer(f.cublaslt));
    json_put(j, "processors", json_integer(f.processors));
    json_put(j, "memory_bytes", json_integer((json_int_t)f.memory_bytes));
    json_put(j, "memory_free_bytes", json_integer((json_int_t)available));
    json_put(j, "kernels", json_text_c(gpu_ops()->name));
    gpu_print(j);
    return failed != 0;
}
