// The scheduler: which thread of the block runs next, and blocks one after another.
#include "kernels/simt/block.h"

#include "kernels/cpu/env.h"
#include "kernels/simt/counts.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/races.h"
#include "kernels/simt/report.h"

#include <numeric>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {

block_state running;
thread *current;
static uint64_t random_state;

// Under the thread sanitizer a block draws one of several sets of fibers: with one set, a thread of
// a block would be ordered after the same thread of the block before, and races between blocks
// would stay unseen.
#ifdef SIMT_TSAN
enum { SETS = 4 };
#else
enum { SETS = 1 };
#endif
static thread *sets[SETS][THREADS_MOST];

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint32_t draw(uint32_t below) {
    random_state += 0x9e3779b97f4a7c15u;
    return (uint32_t)((mix(random_state) >> 32) * below >> 32);
}

void make_ready(thread *t) {
    t->state = READY;
    running.ready[running.ready_count++] = t;
}

static thread *pick() {
    int count = running.ready_count;
    if (count == 0) fail_deadlock();
    int i = simt_get_options().seed != 0 ? (int)draw((uint32_t)count) : count - 1;
    thread *t = running.ready[i];
    running.ready[i] = running.ready[--running.ready_count];
    return t;
}

static void resume(fiber *from, thread *t) {
    counts.switches++;
    current = t;
    threadIdx = t->index;
    fiber_switch(from, &t->on);
}

void wait_for_turn() {
    thread *me = current, *next = pick();
    if (next != me) resume(&me->on, next);
}

static void run_thread() {
    fiber_entered();
    for (;;) { // a fiber serves block after block
        thread *me = current;
        sync_acquire(sync_object(SYNC_BLOCK_START, 0, 0, 0));
        (*running.body)();
        sync_release(sync_object(SYNC_BLOCK_END, 0, 0, 0));
        thread_exits(me);
        if (running.alive > 0) {
            resume(&me->on, pick());
        } else {
            current = nullptr;
            fiber_switch(&me->on, &running.host);
        }
    }
}

void thread_exits(thread *t) {
    if (!t->copies.empty())
        fail("thread %u exits with %zu asynchronous copies never waited for", t->linear,
             t->copies.size());
    t->state = EXITED;
    running.alive--;
    warp_without(t);
    barrier_without(t);
}

static void begin_warps(int threads) {
    for (int w = 0; w * WARP < threads; w++) {
        struct warp *warp = &running.warps[w];
        int lanes = threads - w * WARP;
        warp->members = lanes >= WARP ? ALL_LANES : (1u << lanes) - 1;
        warp->alive = warp->members;
        warp->round = 0;
        warp->open.clear();
    }
}

static void begin_threads(int threads) {
    running.all = sets[draw(SETS)];
    running.ready_count = 0;
    for (int i = threads - 1; i >= 0; i--) {
        thread *&t = running.all[i];
        if (t == nullptr) {
            t = new thread();
            fiber_create(&t->on, run_thread);
        }
        unsigned at = (unsigned)i;
        t->linear = at;
        t->warp = at / WARP;
        t->lane = at % WARP;
        t->index = make_uint3(at % blockDim.x, at / blockDim.x % blockDim.y,
                              at / (blockDim.x * blockDim.y));
        t->copy_group = 0;
        t->at = site{"", "", 0, 0};
        make_ready(t);
    }
}

static void run_block(unsigned linear) {
    blockIdx = make_uint3(linear % gridDim.x, linear / gridDim.x % gridDim.y,
                          linear / (gridDim.x * gridDim.y));
    running.number++;
    running.alive = running.threads;
    running.barrier.arrived = running.barrier.votes = 0;
    running.barrier.round = 0;
    begin_warps(running.threads);
    begin_threads(running.threads);
    shared_renew();
    sync_release(sync_object(SYNC_BLOCK_START, 0, 0, 0));
    resume(&running.host, pick());
    shared_check();
}

// The blocks of a grid in the order in which they run.
static std::vector<unsigned> order_of_blocks(size_t count) {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (simt_get_options().seed != 0)
        for (size_t i = count; i > 1; i--) std::swap(order[i - 1], order[draw((uint32_t)i)]);
    return order;
}

void run_kernel(const char *kernel, dim3 grid, dim3 block, const shared_sizes &shared,
                const std::function<void()> &body) {
    if (running.body != nullptr) fail("kernel %s is launched from inside a kernel", kernel);
    report_bad_accesses();
    counts.launches++;
    random_state = mix(simt_get_options().seed) + mix(counts.launches);
    running.kernel = kernel;
    running.body = &body;
    running.threads = (int)(block.x * block.y * block.z);
    gridDim = grid;
    blockDim = block;
    fiber_adopt(&running.host);
    shared_prepare(shared.dynamic_bytes, shared.limit_bytes);
    unsigned saved = env_enter(); // kernels are compiled with -ftz=true
    for (unsigned linear : order_of_blocks((size_t)grid.x * grid.y * grid.z)) run_block(linear);
    env_leave(saved);
    sync_acquire(sync_object(SYNC_BLOCK_END, 0, 0, 0));
    running.body = nullptr;
}

} // namespace simt
