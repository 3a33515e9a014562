// What the device can do at most, measured: the kernels' own products of square matrices, and
// copies of device memory.
#include "kernels/cuda/device.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stopwatch.cuh"

#define LEAST_MS 1.0f // of a measure that counts
#define SIDE_LEAST 64
#define SIDE_MOST 8192
#define COPY_MOST ((size_t)256 << 20)

// Zeros cost less power than numbers and would flatter: operands are random bits of size 1.
static void *operands(struct cuda_device *d, size_t count) {
    void *p = NULL;
    uint16_t some[4096];
    uint32_t state = 1;
    for (uint16_t &x : some) {
        state = state * 1664525u + 1013904223u;
        x = (uint16_t)(0x3f00u | (state >> 16 & 0x80ffu));
    }
    if (device_alloc(d, count * sizeof *some, &p) != 0) return NULL;
    for (size_t done = 0; done < count; done += sizeof some / sizeof *some) {
        size_t n =
            count - done < sizeof some / sizeof *some ? count - done : sizeof some / sizeof *some;
        device_upload(d, (uint16_t *)p + done, some, n * sizeof *some);
    }
    return p;
}

static float product_ms(struct stopwatch *w, uint32_t side) {
    size_t n = (size_t)side * side;
    void *x = operands(w->d, n), *y = NULL;
    float ms = 0;
    if (x != NULL && device_alloc(w->d, n * sizeof(float), &y) == 0) {
        struct gemm_call call = {x, side, side, x, side, side, side, NULL, false, (float *)y, side};
        ms = stopwatch_fastest(w, [&] { return gemm_launch(w->d->stream, &call); });
    }
    device_release(w->d, y);
    device_release(w->d, x);
    return ms;
}

static double product_flop_per_s(struct stopwatch *w) {
    for (uint32_t side = SIDE_LEAST; side <= SIDE_MOST; side *= 2) {
        float ms = product_ms(w, side);
        if (ms <= 0) return 0;
        if (ms >= LEAST_MS) return 2e3 * (double)side * side * side / (double)ms;
    }
    return 0;
}

static double copy_bytes_per_s(struct stopwatch *w) {
    void *from = NULL, *to = NULL;
    float ms = 0;
    if (device_alloc(w->d, COPY_MOST, &from) == 0 && device_alloc(w->d, COPY_MOST, &to) == 0)
        ms = stopwatch_fastest(w, [&] {
            return cudaMemcpyAsync(to, from, COPY_MOST, cudaMemcpyDeviceToDevice, w->d->stream);
        });
    device_release(w->d, from);
    device_release(w->d, to);
    return ms > 0 ? 2e3 * (double)COPY_MOST / (double)ms : 0;
}

void ceilings_measure(struct cuda_device *d, double *flop_per_s, double *bytes_per_s,
                      size_t *near_bytes) {
    int cache = 0;
    if (cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, d->number) != cudaSuccess) {
        (void)cudaGetLastError();
        cache = 1 << 20;
    }
    *near_bytes = (size_t)cache;
    *flop_per_s = *bytes_per_s = 0;
    struct stopwatch w;
    if (stopwatch_open(d, &w)) {
        *flop_per_s = product_flop_per_s(&w);
        *bytes_per_s = copy_bytes_per_s(&w);
    }
    stopwatch_close(&w);
}
