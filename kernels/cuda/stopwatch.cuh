// How long queued work takes, by the device's own clock.
#ifndef LACUNA_KERNELS_CUDA_STOPWATCH_CUH
#define LACUNA_KERNELS_CUDA_STOPWATCH_CUH

#include "kernels/cuda/device.h"

#define STOPWATCH_RUNS 3

struct stopwatch {
    struct cuda_device *d;
    cudaEvent_t begun, ended;
};

static inline bool stopwatch_open(struct cuda_device *d, struct stopwatch *w) {
    *w = {d, NULL, NULL};
    return device_check(d, cudaEventCreate(&w->begun), "events") &&
           device_check(d, cudaEventCreate(&w->ended), "events");
}

static inline void stopwatch_close(struct stopwatch *w) {
    if (w->begun != NULL) (void)cudaEventDestroy(w->begun);
    if (w->ended != NULL) (void)cudaEventDestroy(w->ended);
}

// Milliseconds of the fastest of some runs; 0 when one failed.
template <class F> static float stopwatch_fastest(struct stopwatch *w, F run) {
    float best = 0;
    for (int i = 0; i < STOPWATCH_RUNS; i++) {
        float ms = 0;
        bool done = device_check(w->d, cudaEventRecord(w->begun, w->d->stream), "events") &&
                    device_check(w->d, run(), "measure") &&
                    device_check(w->d, cudaEventRecord(w->ended, w->d->stream), "events") &&
                    device_check(w->d, cudaEventSynchronize(w->ended), "measure") &&
                    device_check(w->d, cudaEventElapsedTime(&ms, w->begun, w->ended), "events");
        if (!done) return 0;
        if (i == 0 || ms < best) best = ms;
    }
    return best;
}

#endif
