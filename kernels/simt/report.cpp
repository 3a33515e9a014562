// See report.h.
#include "kernels/simt/report.h"
#include "kernels/simt/block.h"
#include "kernels/simt/sanitizers.h"
#include "kernels/simt/simt.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace simt {

static void print_place() {
    if (running.body == nullptr) return;
    fprintf(stderr, "simt: in kernel %s, block (%u,%u,%u)", running.kernel, blockIdx.x, blockIdx.y,
            blockIdx.z);
    if (current != nullptr)
        fprintf(stderr, ", thread (%u,%u,%u) (warp %u lane %u)", current->index.x, current->index.y,
                current->index.z, current->warp, current->lane);
    fprintf(stderr, ", seed %u\n", (unsigned)simt_get_options().seed);
}

void fail(const char *format, ...) {
    fflush(stdout);
    va_list values;
    va_start(values, format);
    fputs("simt: error: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    print_place();
    fflush(stderr);
    abort();
}

static bool waits_alike(const thread *a, const thread *b) {
    return a->state == b->state && a->at.file == b->at.file && a->at.line == b->at.line;
}

// Neighbours in the same state share a line of the table.
static void print_threads() {
    static const char *const names[] = {"ready", "wait at", "wait in", "exited"};
    for (int i = 0, next; i < running.threads; i = next) {
        const thread *t = running.all[i];
        next = i + 1;
        while (next < running.threads && waits_alike(t, running.all[next])) next++;
        fprintf(stderr, "simt:   threads %d to %d: %s", i, next - 1, names[t->state]);
        if (t->state == AT_BARRIER || t->state == IN_WARP)
            fprintf(stderr, " %s at %s:%d", t->at.what, t->at.file, t->at.line);
        fputc('\n', stderr);
    }
}

void fail_deadlock() {
    fflush(stdout);
    fputs("simt: error: deadlock: no thread of the block can go on\n", stderr);
    print_threads();
    print_place();
    fflush(stderr);
    abort();
}

#if defined(SIMT_ASAN)
void report_bad_accesses() {
    __asan_set_error_report_callback([](const char *) { print_place(); });
}
#elif defined(SIMT_TSAN)
void report_bad_accesses() {}
#else
static void on_bad_access(int, siginfo_t *info, void *) {
    fflush(stdout);
    fprintf(stderr, "simt: error: bad memory access at %p\n", info->si_addr);
    print_place();
    _exit(139);
}

void report_bad_accesses() {
    static bool done;
    static char other_stack[64 << 10]; // a thread may have run off its own
    if (done) return;
    done = true;
    stack_t stack = {};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof other_stack;
    struct sigaction action = {};
    action.sa_sigaction = on_bad_access;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (sigaltstack(&stack, nullptr) != 0 || sigaction(SIGSEGV, &action, nullptr) != 0 ||
        sigaction(SIGBUS, &action, nullptr) != 0)
        fail("cannot watch for bad accesses");
}
#endif

} // namespace simt
