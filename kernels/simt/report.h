// What the emulator says when a kernel breaks a rule of CUDA: one message on standard error that
// begins with "simt: error:", then where it happened; then the program is aborted.
#ifndef LACUNA_KERNELS_SIMT_REPORT_H
#define LACUNA_KERNELS_SIMT_REPORT_H

namespace simt {

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void fail_deadlock();

// From the first launch on, a bad access tells which thread of which kernel made it.
void report_bad_accesses();

} // namespace simt

#endif
