#include "engine/base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_cpu_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_unix(void) {
    return time(NULL);
}

void clock_iso(char out[32]) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
