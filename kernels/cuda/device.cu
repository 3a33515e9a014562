#include "kernels/cuda/device.h"

#include "kernels/cuda/lt.h"
#include "kernels/cuda/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUNCE_BYTES ((size_t)1 << 20) // the logits of 262,144 tokens

bool device_check(struct cuda_device *d, cudaError_t result, const char *what) {
    if (result == cudaSuccess) return true;
    char failure[sizeof d->failure];
    snprintf(failure, sizeof failure, "%s: %s (%s)", what, cudaGetErrorString(result),
             cudaGetErrorName(result));
    if (graphs_recording(d)) {
        graphs_spoil(d, failure);
    } else if (d->failed == cudaSuccess) {
        d->failed = result;
        memcpy(d->failure, failure, sizeof failure);
    }
    (void)cudaGetLastError();
    return false;
}

const char *device_failure(struct cuda_device *d) {
    return d->failed != cudaSuccess ? d->failure : NULL;
}

static cudaError_t area_take(struct cuda_area *a, size_t bytes) {
    return a->pinned ? cudaMallocHost(&a->p, bytes) : cudaMalloc(&a->p, bytes);
}

bool area_reserve(struct cuda_device *d, struct cuda_area *a, size_t bytes) {
    if (bytes <= a->bytes) return true;
    if (graphs_recording(d)) {
        graphs_spoil(d, "working memory grew while a pass was recorded");
        return false;
    }
    area_release(d, a);
    if (!device_check(d, area_take(a, bytes), "working memory")) return false;
    a->bytes = bytes;
    return true;
}

void area_release(struct cuda_device *d, struct cuda_area *a) {
    if (a->p != NULL) {
        device_sync(d);
        graphs_drop(d);
        device_check(d, a->pinned ? cudaFreeHost(a->p) : cudaFree(a->p), "working memory");
    }
    a->p = NULL;
    a->bytes = 0;
}

// ---- opening -----------------------------------------------------------------------------------

static int refuse(char why[256], const char *text, cudaError_t result) {
    snprintf(why, 256, "%s (%s)", text, cudaGetErrorString(result));
    return -1;
}

static int find_driver(struct cuda_facts *facts, char why[256]) {
    cudaError_t result = cudaRuntimeGetVersion(&facts->runtime);
    if (result == cudaSuccess) result = cudaDriverGetVersion(&facts->driver);
    if (result != cudaSuccess || facts->driver == 0) {
        snprintf(why, 256, "no NVIDIA driver is installed");
        return -1;
    }
    if (facts->driver / 1000 < facts->runtime / 1000) {
        snprintf(why, 256,
                 "the NVIDIA driver serves CUDA %d.%d and the plug-in needs %d.0 or later",
                 facts->driver / 1000, facts->driver % 1000 / 10, facts->runtime / 1000);
        return -1;
    }
    return 0;
}

static int find_device(struct cuda_facts *facts, char why[256]) {
    int count = 0, major = 0, minor = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess || count == 0)
        return refuse(why, "no NVIDIA GPU can be used",
                      result != cudaSuccess ? result : cudaErrorNoDevice);
    struct cudaDeviceProp properties;
    result = cudaGetDeviceProperties(&properties, 0);
    if (result != cudaSuccess) return refuse(why, "the GPU does not answer", result);
    major = properties.major;
    minor = properties.minor;
    facts->capability = 10 * major + minor;
    facts->processors = properties.multiProcessorCount;
    facts->memory_bytes = properties.totalGlobalMem;
    snprintf(facts->name, sizeof facts->name, "%.*s", (int)sizeof facts->name - 1, properties.name);
    facts->cublaslt = (int)lt_installed();
    if (facts->capability >= CUDA_CAPABILITY_MIN) return 0;
    snprintf(why, 256, "the GPU (%.100s) has compute capability %d.%d and the kernels need %d.%d",
             facts->name, major, minor, CUDA_CAPABILITY_MIN / 10, CUDA_CAPABILITY_MIN % 10);
    return -1;
}

int device_open(struct cuda_device **out, struct cuda_facts *facts, char why[256]) {
    memset(facts, 0, sizeof *facts);
    if (find_driver(facts, why) != 0 || find_device(facts, why) != 0) return -1;
    struct cuda_device *d = (struct cuda_device *)calloc(1, sizeof *d);
    if (d == NULL || graphs_open(d) != 0) {
        free(d);
        return refuse(why, "no memory on the host", cudaErrorMemoryAllocation);
    }
    d->pass.host.pinned = d->told_host.pinned = d->bounce.pinned = true;
    d->frequencies_host.pinned = d->sampled_host.pinned = true;
    cudaError_t result = cudaSetDevice(d->number);
    if (result == cudaSuccess)
        result = cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking);
    if (result == cudaSuccess)
        result = cudaEventCreateWithFlags(&d->pass.copied, cudaEventDisableTiming);
    if (result != cudaSuccess) {
        device_close(d);
        return refuse(why, "the GPU cannot be used", result);
    }
    *out = d;
    return 0;
}

void device_close(struct cuda_device *d) {
    products_close(d);
    struct cuda_area *const areas[] = {
        &d->pass.host, &d->pass.device,  &d->weights,     &d->staging,         &d->workspace,
        &d->told,      &d->told_host,    &d->bounce,      &d->partial,         &d->sampling,
        &d->sampled,   &d->sampled_host, &d->frequencies, &d->frequencies_host};
    for (struct cuda_area *a : areas) area_release(d, a);
    if (d->pass.copied != NULL) (void)cudaEventDestroy(d->pass.copied);
    graphs_close(d);
    if (d->stream != NULL) (void)cudaStreamDestroy(d->stream);
    free(d);
}

// ---- memory ------------------------------------------------------------------------------------

int device_memory_free(struct cuda_device *d, uint64_t *bytes) {
    size_t available, total;
    if (!device_check(d, cudaMemGetInfo(&available, &total), "free memory")) return -1;
    *bytes = available;
    return 0;
}

// Not enough memory is the caller's to tell, and no failure of the device.
int device_alloc(struct cuda_device *d, size_t bytes, void **out) {
    *out = NULL;
    cudaError_t result = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return -1;
    }
    if (!device_check(d, result, "memory")) return -1;
    device_check(d, cudaMemsetAsync(*out, 0, bytes > 0 ? bytes : 1, d->stream), "memory");
    return 0;
}

void device_release(struct cuda_device *d, void *p) {
    if (p == NULL) return;
    device_sync(d);
    graphs_drop(d);
    device_check(d, cudaFree(p), "memory");
}

// The host's memory may be anything and may change behind the call, so both wait. What comes down
// while replies are written comes by pinned memory, which a copy needs no staging for.
void device_upload(struct cuda_device *d, void *to, const void *host, size_t bytes) {
    if (bytes == 0) return;
    device_check(d, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, d->stream), "upload");
    device_sync(d);
}

void device_download(struct cuda_device *d, void *host, const void *from, size_t bytes) {
    if (bytes == 0 || !area_reserve(d, &d->bounce, BOUNCE_BYTES)) return;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < BOUNCE_BYTES ? bytes - done : BOUNCE_BYTES;
        device_check(d,
                     cudaMemcpyAsync(d->bounce.p, (const uint8_t *)from + done, n,
                                     cudaMemcpyDeviceToHost, d->stream),
                     "download");
        device_sync(d);
        memcpy((uint8_t *)host + done, d->bounce.p, n);
    }
}

void device_copy(struct cuda_device *d, void *to, const void *from, size_t bytes) {
    if (bytes == 0) return;
    device_check(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, d->stream), "copy");
}

void device_sync(struct cuda_device *d) {
    if (d->stream != NULL) device_check(d, cudaStreamSynchronize(d->stream), "kernels");
}
