// Time. Only sessions.jsonl, timings.jsonl, progress and benchmarks may look at it: no clock value
// reaches the ledger or a report.
#ifndef LACUNA_ENGINE_BASE_CLOCK_H
#define LACUNA_ENGINE_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);      // monotonic
uint64_t clock_cpu_ns(void);  // CPU time of the whole process
int64_t clock_unix(void);     // seconds since 1970, of the date in what a server says
void clock_iso(char out[32]); // now, "2026-11-30T17:24:42Z"
#define CLOCK_MS(ns) ((double)(ns) / 1e6)

#endif
