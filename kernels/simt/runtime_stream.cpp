// Streams and events. A stream is a queue of work; unless streams are lazy it is done at once.
#include "kernels/simt/report.h"
#include "kernels/simt/runtime.h"
#include "kernels/simt/runtime_graph.h"
#include "kernels/simt/simt.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

struct CUevent_st {
    unsigned long long recorded, done; // how often; up to which record work has come
    std::chrono::steady_clock::time_point when;
    cudaStream_t where; // the stream of the last record
};

struct queued {
    simt::work work; // or, where it is empty, a wait for an event
    CUevent_st *event;
    unsigned long long record;
};

struct CUstream_st {
    std::deque<queued> queue;
    bool blocking; // waits for the default stream and makes it wait
    CUgraph_st *capture;
    bool spoilt; // the capture saw what it must not
};

namespace simt {

static CUstream_st default_stream = {{}, true, nullptr, false};
static std::vector<CUstream_st *> streams = {&default_stream};

static CUstream_st *stream_of(cudaStream_t s) {
    bool is_default = s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
    return is_default ? &default_stream : s;
}

static void step(CUstream_st *s);

static void advance_to(CUevent_st *e, unsigned long long record) {
    while (e->done < record) step(stream_of(e->where));
}

static void step(CUstream_st *s) {
    if (s->queue.empty()) fail("a stream waits for an event that is never recorded");
    queued q = std::move(s->queue.front());
    s->queue.pop_front();
    if (q.event != nullptr)
        advance_to(q.event, q.record);
    else
        with_device_open(q.work);
}

static void drain_queue(CUstream_st *s) {
    while (!s->queue.empty()) step(s);
}

void drain(cudaStream_t stream) {
    drain_queue(stream_of(stream));
}

void drain_all() {
    for (CUstream_st *s : streams) drain_queue(s);
}

static void push(CUstream_st *s, queued q) {
    if (s == &default_stream) {
        for (CUstream_st *other : streams)
            if (other->blocking) drain_queue(other);
    } else if (s->blocking) {
        drain_queue(&default_stream);
    }
    s->queue.push_back(std::move(q));
    if (!simt_get_options().lazy_streams) drain_queue(s);
}

void enqueue(cudaStream_t stream, work w) {
    CUstream_st *s = stream_of(stream);
    if (s->capture != nullptr)
        s->capture->nodes.push_back(std::move(w));
    else
        push(s, queued{std::move(w), nullptr, 0});
}

bool stream_captures(cudaStream_t stream) {
    return stream_of(stream)->capture != nullptr;
}

bool forbidden_in_capture() {
    bool any = false;
    for (CUstream_st *s : streams) {
        s->spoilt |= s->capture != nullptr;
        any |= s->capture != nullptr;
    }
    return any;
}

} // namespace simt

using namespace simt;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    *stream = new CUstream_st{{}, !(flags & cudaStreamNonBlocking), nullptr, false};
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    auto at = std::find(streams.begin(), streams.end(), stream);
    if (at == streams.end() || stream == &default_stream)
        return refused(cudaErrorInvalidResourceHandle);
    drain_queue(stream);
    streams.erase(at);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream_captures(stream)) {
        stream_of(stream)->spoilt = true;
        return refused(cudaErrorStreamCaptureUnsupported);
    }
    drain(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return stream_of(stream)->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize(void) {
    if (forbidden_in_capture()) return refused(cudaErrorStreamCaptureUnsupported);
    drain_all();
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
    CUstream_st *s = stream_of(stream);
    if (s == &default_stream || s->capture != nullptr)
        return refused(cudaErrorStreamCaptureUnsupported);
    s->capture = new CUgraph_st;
    s->spoilt = false;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    CUstream_st *s = stream_of(stream);
    CUgraph_st *captured = s->capture;
    bool spoilt = s->spoilt;
    *graph = nullptr;
    if (captured == nullptr) return refused(cudaErrorIllegalState);
    for (CUstream_st *other : streams) // others may have been drawn in by events
        if (other->capture == captured) {
            spoilt |= other->spoilt;
            other->capture = nullptr;
        }
    if (spoilt) {
        delete captured;
        return refused(cudaErrorStreamCaptureInvalidated);
    }
    *graph = captured;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    *status = stream_captures(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new CUevent_st{};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    advance_to(event, event->recorded);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->where = stream;
    if (stream_captures(stream)) return cudaSuccess;
    unsigned long long record = ++event->recorded;
    enqueue(stream, [=] {
        event->done = record;
        event->when = std::chrono::steady_clock::now();
    });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    CUstream_st *s = stream_of(stream), *from = stream_of(event->where);
    if (from->capture != nullptr)
        s->capture = from->capture; // a fork, or the join of one: the order of calls serves
    else if (event->recorded > 0)
        push(s, queued{nullptr, event, event->recorded});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    advance_to(event, event->recorded);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return event->done >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    if (start->recorded == 0 || end->recorded == 0) return refused(cudaErrorInvalidResourceHandle);
    if (start->done < start->recorded || end->done < end->recorded) return cudaErrorNotReady;
    *ms = std::chrono::duration<float, std::milli>(end->when - start->when).count();
    return cudaSuccess;
}

} // extern "C"
