// The runtime that host code sees: streams, events, graphs, memory and errors, as CUDA has them.
#include "tests/support/support.h"
#include "tests/support/simt.h"
#include "tests/kernels/simt/runtime_kernels.h"

#include <string.h>

enum { COUNT = 64 };
#define BYTES (COUNT * sizeof(float))

static struct simt_options before;

static int keep_options(void **state) {
    (void)state;
    before = simt_get_options();
    return 0;
}

static int restore_options(void **state) {
    (void)state;
    simt_set_options(&before);
    return simt_device_bytes() == 0 ? 0 : -1;
}

static void be_lazy(bool lazy) {
    struct simt_options o = simt_get_options();
    o.lazy_streams = lazy;
    simt_set_options(&o);
}

static float *new_row(void) {
    void *p;
    ASSERT_CUDA(cudaMalloc(&p, BYTES));
    return p;
}

static cudaStream_t new_stream(void) {
    cudaStream_t s;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static float *new_pinned(void) {
    void *p;
    ASSERT_CUDA(cudaMallocHost(&p, BYTES));
    for (int i = 0; i < COUNT; i++) ((float *)p)[i] = (float)(i + 1);
    return p;
}

// Work of a lazy stream is done when somebody waits for it, and by an event on another stream too.
static void events_order_streams(void **state) {
    (void)state;
    be_lazy(true);
    cudaStream_t first = new_stream(), second = new_stream();
    cudaEvent_t copied;
    float *row = new_row(), *in = new_pinned(), *out = new_pinned();
    memset(out, 0, BYTES);
    ASSERT_CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    ASSERT_CUDA(cudaMemcpyAsync(row, in, BYTES, cudaMemcpyHostToDevice, first));
    ASSERT_CUDA(cudaEventRecord(copied, first));
    assert_int_equal(cudaEventQuery(copied), cudaErrorNotReady);
    ASSERT_CUDA(cudaStreamWaitEvent(second, copied, 0));
    ASSERT_CUDA(runtime_double(row, 2, COUNT / 2, second));
    ASSERT_CUDA(cudaMemcpyAsync(out, row, BYTES, cudaMemcpyDeviceToHost, second));
    assert_int_equal(cudaStreamQuery(second), cudaErrorNotReady);
    assert_true(out[0] == 0.0f);
    ASSERT_CUDA(cudaStreamSynchronize(second));
    ASSERT_CUDA(cudaEventQuery(copied));
    for (int i = 0; i < COUNT; i++) assert_true(out[i] == 2.0f * (float)(i + 1));
    ASSERT_CUDA(cudaEventDestroy(copied));
    ASSERT_CUDA(cudaFreeHost(in));
    ASSERT_CUDA(cudaFreeHost(out));
    ASSERT_CUDA(cudaFree(row));
    ASSERT_CUDA(cudaStreamDestroy(first));
    ASSERT_CUDA(cudaStreamDestroy(second));
}

// A graph reads what is in its buffers when it runs, not what was there when it was captured; a
// fork to a second stream and its join belong to it.
static void graphs_run_with_new_data(void **state) {
    (void)state;
    cudaStream_t main_stream = new_stream(), side = new_stream();
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    size_t nodes;
    float *row = new_row(), *in = new_pinned(), *out = new_pinned();
    ASSERT_CUDA(cudaEventCreate(&fork));
    ASSERT_CUDA(cudaEventCreate(&join));
    ASSERT_CUDA(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(cudaMemcpyAsync(row, in, BYTES, cudaMemcpyHostToDevice, main_stream));
    ASSERT_CUDA(cudaEventRecord(fork, main_stream));
    ASSERT_CUDA(cudaStreamWaitEvent(side, fork, 0));
    ASSERT_CUDA(runtime_double(row, 2, COUNT / 2, side));
    ASSERT_CUDA(cudaEventRecord(join, side));
    ASSERT_CUDA(cudaStreamWaitEvent(main_stream, join, 0));
    ASSERT_CUDA(cudaMemcpyAsync(out, row, BYTES, cudaMemcpyDeviceToHost, main_stream));
    ASSERT_CUDA(cudaStreamEndCapture(main_stream, &graph));
    ASSERT_CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 3);
    ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) in[i] = (float)(100 * round + i);
        ASSERT_CUDA(cudaGraphLaunch(executable, main_stream));
        ASSERT_CUDA(cudaStreamSynchronize(main_stream));
        for (int i = 0; i < COUNT; i++) assert_true(out[i] == 2.0f * (float)(100 * round + i));
    }
    ASSERT_CUDA(cudaGraphExecDestroy(executable));
    ASSERT_CUDA(cudaGraphDestroy(graph));
    ASSERT_CUDA(cudaEventDestroy(fork));
    ASSERT_CUDA(cudaEventDestroy(join));
    ASSERT_CUDA(cudaFreeHost(in));
    ASSERT_CUDA(cudaFreeHost(out));
    ASSERT_CUDA(cudaFree(row));
    ASSERT_CUDA(cudaStreamDestroy(main_stream));
    ASSERT_CUDA(cudaStreamDestroy(side));
}

// The device has memory for some executable graphs; what was allocated and launched is counted.
static void graphs_have_an_end(void **state) {
    (void)state;
    struct simt_options o = before;
    o.graphs_most = 1;
    simt_set_options(&o);
    cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    cudaGraphExec_t one, more;
    float *row = new_row(), *in = new_pinned();
    ASSERT_CUDA(cudaMemset(row, 0, BYTES));
    ASSERT_CUDA(cudaDeviceSynchronize());
    struct simt_counts begun = simt_counted();
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_CUDA(runtime_double(row, 2, COUNT / 2, stream));
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    assert_int_equal(simt_counted().launches, begun.launches);
    ASSERT_CUDA(cudaGraphInstantiate(&one, graph, 0));
    assert_int_equal(cudaGraphInstantiate(&more, graph, 0), cudaErrorMemoryAllocation);
    assert_null(more);
    assert_int_equal(simt_graphs(), 1);
    for (int i = 0; i < 3; i++) ASSERT_CUDA(cudaGraphLaunch(one, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    assert_int_equal(simt_counted().launches - begun.launches, 3);
    assert_int_equal(simt_counted().graph_launches - begun.graph_launches, 3);
    assert_int_equal(simt_counted().allocations, begun.allocations);
    ASSERT_CUDA(cudaFreeHost(in));
    in = new_pinned();
    assert_int_equal(simt_counted().allocations, begun.allocations + 1);
    ASSERT_CUDA(cudaGraphExecDestroy(one));
    assert_int_equal(simt_graphs(), 0);
    ASSERT_CUDA(cudaGraphDestroy(graph));
    ASSERT_CUDA(cudaFreeHost(in));
    ASSERT_CUDA(cudaFree(row));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    cudaGetLastError();
}

static void captures_refuse_waits(void **state) {
    (void)state;
    cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    float *row = new_row();
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(runtime_double(row, 2, COUNT / 2, stream));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    assert_null(graph);
    assert_int_equal(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
    ASSERT_CUDA(cudaFree(row));
    ASSERT_CUDA(cudaStreamDestroy(stream));
}

static void memory_has_an_end(void **state) {
    (void)state;
    struct simt_options o = before;
    o.memory_bytes = 1 << 20;
    simt_set_options(&o);
    size_t left, total;
    void *p, *more;
    ASSERT_CUDA(cudaMalloc(&p, 1 << 19));
    ASSERT_CUDA(cudaMemGetInfo(&left, &total));
    assert_int_equal(total, 1 << 20);
    assert_int_equal(left, 1 << 19);
    assert_int_equal(cudaMalloc(&more, (1 << 19) + 1), cudaErrorMemoryAllocation);
    assert_null(more);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    ASSERT_CUDA(cudaGetLastError());
    ASSERT_CUDA(cudaFree(p));
    assert_int_equal(cudaFree(&left), cudaErrorInvalidValue);
    cudaGetLastError();
}

static void copies_are_checked(void **state) {
    (void)state;
    float host[COUNT + 1] = {0}, *row = new_row();
    assert_int_equal(cudaMemcpy(host, row, BYTES + 4, cudaMemcpyDeviceToHost),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, row, BYTES, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(row, 0, BYTES + 1), cudaErrorInvalidValue);
    cudaGetLastError();
    ASSERT_CUDA(cudaFree(row));
}

static void launches_are_checked(void **state) {
    (void)state;
    float *row = new_row();
    assert_int_equal(runtime_double(row, 1, 1025, NULL), cudaErrorInvalidConfiguration);
    assert_int_equal(runtime_double(row, 0, 32, NULL), cudaErrorInvalidConfiguration);
    int most;
    struct simt_options o = before;
    for (o.capability = 80; o.capability <= 90; o.capability += 10) {
        simt_set_options(&o);
        struct cudaDeviceProp p;
        ASSERT_CUDA(cudaGetDeviceProperties(&p, 0));
        ASSERT_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
        assert_int_equal(p.major * 10 + p.minor, o.capability);
        assert_int_equal(p.sharedMemPerBlockOptin, most);
        assert_int_equal(most, (o.capability == 80 ? 163 : 227) << 10);
    }
    ASSERT_CUDA(cudaFree(row));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, keep_options, restore_options)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(events_order_streams),  TEST(graphs_run_with_new_data), TEST(graphs_have_an_end),
        TEST(captures_refuse_waits), TEST(memory_has_an_end),        TEST(copies_are_checked),
        TEST(launches_are_checked),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
