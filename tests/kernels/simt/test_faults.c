// Planted faults, each in a process of its own: the emulator must name each of them, by itself or
// by the sanitizer that this build has, or the values must come out wrong. And it must be silent
// about what is right.
#include "tests/support/support.h"
#include "tests/support/simt.h"
#include "tests/kernels/simt/fault_kernels.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
enum { BUILD = 1 };
#elif defined(__SANITIZE_THREAD__)
enum { BUILD = 2 };
#else
enum { BUILD = 0 };
#endif

// What the plain build, that with the address and that with the thread sanitizer must say.
#define NOTHING "" // a fault that this build cannot see
#define WRONG "wrong values"
#define RACE "data race"
#define POISONED "use-after-poison"
static const struct fault {
    const char *name, *says[3];
} faults[] = {
    {"no_barrier", {WRONG, WRONG, RACE}},
    {"two_barriers", {"divergent barrier", "divergent barrier", "divergent barrier"}},
    {"left_before_barrier", {"exit", "exit", "exit"}},
    {"deadlock", {"deadlock", "deadlock", "deadlock"}},
    {"wrong_stride", {WRONG, WRONG, WRONG}},
    {"past_shared", {"outside a shared variable", POISONED, "outside a shared variable"}},
    {"past_dynamic", {"bad memory access", "AddressSanitizer", "SEGV"}},
    {"past_global",
     {"past the end of an allocation", "heap-buffer-overflow", "past the end of an allocation"}},
    {"before_global", {WRONG, "heap-buffer-overflow", WRONG}},
    {"null_pointer", {"bad memory access", "runtime error", "SEGV"}},
    {"copies_never_waited", {"never waited for", "never waited for", "never waited for"}},
    {"copies_waited_late", {WRONG, WRONG, WRONG}},
    {"copies_without_barrier", {WRONG, WRONG, RACE}},
    {"copies_misaligned", {"16-byte aligned", "16-byte aligned", "16-byte aligned"}},
    {"shuffle_from_outside", {"does not take part", "does not take part", "does not take part"}},
    {"shuffle_with_exited", {"exit", "exit", "exit"}},
    {"shuffles_of_two_kinds",
     {"divergent warp collective", "divergent warp collective", "divergent warp collective"}},
    {"no_syncwarp", {WRONG, WRONG, RACE}},
    {"reads_unwritten", {WRONG, WRONG, WRONG}},
    {"blocks_race", {NOTHING, NOTHING, RACE}},
    {"merge_unordered", {NOTHING, NOTHING, RACE}},
    {"scatter_unordered", {WRONG, WRONG, RACE}},
    {"host_leaks", {"never freed", "never freed", "never freed"}},
    {"host_reads_device", {NOTHING, POISONED, NOTHING}},
    {"host_reads_early", {WRONG, WRONG, WRONG}},
    {"graph_leaks", {"never destroyed", "never destroyed", "never destroyed"}},
    {"graph_of_stale_pointer", {"bad memory access", "heap-use-after-free", "SEGV"}},
    {"graph_of_stale_length", {WRONG, WRONG, WRONG}},
};
static const char *const right[] = {"right",      "copies", "shuffles", "warps_in_step",
                                    "blocks_add", "merge",  "scatter",  "graph_right"};

// ---- the child: one kernel, by name

enum { PARTS = 10, FLOATS = (PARTS + 1) * FAULT_COUNT };

static void check(cudaError_t e) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "error %s\n", cudaGetErrorName(e));
    _exit(4);
}

static int compare(const float *got, const float *in) {
    for (int i = 0; i < FAULT_COUNT; i++)
        if (!(got[i] == in[FAULT_COUNT - 1 - i])) {
            fprintf(stderr, "wrong values: [%d] %g\n", i, (double)got[i]);
            return 3;
        }
    return 0;
}

// `out` has room behind the row. past_global gets a row at the very end of an allocation that is no
// multiple of 256 bytes, so that there is slack before any guard page.
static int run_kernel(const char *name, float *in) {
    void *device, *out, *tight;
    float got[FAULT_COUNT];
    check(cudaMalloc(&device, FAULT_COUNT * sizeof *in));
    check(cudaMemcpy(device, in, FAULT_COUNT * sizeof *in, cudaMemcpyHostToDevice));
    check(cudaMalloc(&out, FLOATS * sizeof *in));
    check(cudaMalloc(&tight, (FAULT_COUNT + 1) * sizeof *in));
    if (strcmp(name, "reads_unwritten") != 0) check(cudaMemset(out, 0xff, FLOATS * sizeof *in));
    float *target = strcmp(name, "past_global") == 0 ? (float *)tight + 1 : out;
    check(fault_launch(name, target, device, NULL));
    check(cudaMemcpy(got, target, sizeof got, cudaMemcpyDeviceToHost));
    check(cudaFree(tight));
    check(cudaFree(out));
    check(cudaFree(device));
    return compare(got, in);
}

static int host_leaks(void) {
    void *p;
    check(cudaMalloc(&p, 100));
    return 0;
}

static int host_reads_device(void) {
    void *p;
    check(cudaMalloc(&p, 100));
    check(cudaMemset(p, 0, 100));
    check(cudaDeviceSynchronize());
    volatile const char *host = p;
    int first = host[0];
    check(cudaFree(p));
    return first;
}

// A pinned buffer read before the copy into it was waited for.
static int host_reads_early(float *in) {
    struct simt_options o = simt_get_options();
    o.lazy_streams = true;
    simt_set_options(&o);
    cudaStream_t stream;
    void *device, *out, *pinned;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&device, FAULT_COUNT * sizeof *in));
    check(cudaMalloc(&out, FAULT_COUNT * sizeof *in));
    check(cudaMallocHost(&pinned, FAULT_COUNT * sizeof *in));
    memset(pinned, 0, FAULT_COUNT * sizeof *in);
    check(cudaMemcpyAsync(device, in, FAULT_COUNT * sizeof *in, cudaMemcpyHostToDevice, stream));
    check(fault_launch("right", out, device, stream));
    check(cudaMemcpyAsync(pinned, out, FAULT_COUNT * sizeof *in, cudaMemcpyDeviceToHost, stream));
    int result = compare(pinned, in);
    check(cudaFreeHost(pinned));
    check(cudaFree(out));
    check(cudaFree(device));
    check(cudaStreamDestroy(stream));
    return result;
}

// A kernel and a copy, recorded once and replayed when the values have changed: right, or after
// what the recording holds has changed too, the memory or the length that was then.
static int graph(const char *name, float *in) {
    bool stale_pointer = strcmp(name, "graph_of_stale_pointer") == 0;
    size_t bytes = FAULT_COUNT * sizeof *in,
           recorded = strcmp(name, "graph_of_stale_length") == 0 ? bytes / 2 : bytes;
    void *device, *between, *out;
    float got[FAULT_COUNT], changed[FAULT_COUNT];
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&device, bytes));
    check(cudaMalloc(&between, bytes));
    check(cudaMalloc(&out, bytes));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    check(fault_launch("right", between, device, stream));
    check(cudaMemcpyAsync(out, between, recorded, cudaMemcpyDeviceToDevice, stream));
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiate(&executable, captured, 0));
    check(cudaGraphDestroy(captured));
    for (int i = 0; i < FAULT_COUNT; i++) changed[i] = 3.0f * in[i];
    for (int round = 0; round < 2; round++) {
        float *values = round == 0 ? in : changed;
        check(cudaMemcpy(device, values, bytes, cudaMemcpyHostToDevice));
        if (round == 1 && stale_pointer) check(cudaFree(between));
        check(cudaGraphLaunch(executable, stream));
        check(cudaStreamSynchronize(stream));
        check(cudaMemcpy(got, out, bytes, cudaMemcpyDeviceToHost));
        if (compare(got, values) != 0) return 3;
    }
    if (strcmp(name, "graph_leaks") != 0) check(cudaGraphExecDestroy(executable));
    check(cudaFree(between));
    check(cudaFree(out));
    check(cudaFree(device));
    check(cudaStreamDestroy(stream));
    return 0;
}

static int child(const char *name) {
    float in[FAULT_COUNT];
    for (int i = 0; i < FAULT_COUNT; i++) in[i] = 1.0f + (float)(i * 37 % 64);
    if (strcmp(name, "host_leaks") == 0) return host_leaks();
    if (strcmp(name, "host_reads_device") == 0) return host_reads_device();
    if (strcmp(name, "host_reads_early") == 0) return host_reads_early(in);
    if (strncmp(name, "graph_", 6) == 0) return graph(name, in);
    return run_kernel(name, in);
}

// ---- the parent

// The thread sanitizer waits a second at the end of a program for more to report.
static void do_not_linger(void) {
    char options[512];
    const char *given = getenv("TSAN_OPTIONS");
    snprintf(options, sizeof options, "%s atexit_sleep_ms=0", given != NULL ? given : "");
    setenv("TSAN_OPTIONS", options, 1);
}

// Runs this program for one kernel: what it said on standard error; its status.
static int run_child(const char *name, struct buf *said) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        do_not_linger();
        execl("/proc/self/exe", "test_faults", name, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    char bytes[4096];
    for (ssize_t n; (n = read(pipes[0], bytes, sizeof bytes)) > 0;) buf_add(said, bytes, (size_t)n);
    close(pipes[0]);
    buf_add_char(said, '\0');
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void faults_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *expected = faults[i].says[BUILD];
        if (expected[0] == '\0') continue;
        struct buf said = {0};
        int status = run_child(faults[i].name, &said);
        if (status == 0 || strstr(said.p, expected) == NULL)
            fail_msg("%s: status %d, not said: %s\n%s", faults[i].name, status, expected, said.p);
        buf_free(&said);
    }
}

static void what_is_right_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        struct buf said = {0};
        int status = run_child(right[i], &said);
        if (status != 0 || said.p[0] != '\0')
            fail_msg("%s: status %d\n%s", right[i], status, said.p);
        buf_free(&said);
    }
}

// A message tells where it happened.
static void place_is_named(void **state) {
    (void)state;
    struct buf said = {0};
    run_child("past_dynamic", &said);
    if (BUILD != 2) assert_non_null(strstr(said.p, "in kernel e.kernel, block (0,0,0), thread ("));
    buf_clear(&said);
    run_child("two_barriers", &said);
    assert_non_null(strstr(said.p, "test_faults.cu:"));
    buf_free(&said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(what_is_right_passes),
        cmocka_unit_test(place_is_named),
    };
    simt_from_environment();
    if (argc > 1) return child(argv[1]);
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
