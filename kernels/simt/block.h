// The block that runs: its threads, their states, its warps and barrier. Blocks run one after
// another; the threads of a block are fibers of which one runs until it must wait.
#ifndef LACUNA_KERNELS_SIMT_BLOCK_H
#define LACUNA_KERNELS_SIMT_BLOCK_H

#include "kernels/simt/core.h"
#include "kernels/simt/fiber.h"

#include <functional>
#include <vector>

namespace simt {

enum { THREADS_MOST = 1024, WARP = 32, WARPS_MOST = THREADS_MOST / WARP };
enum : unsigned { ALL_LANES = 0xffffffffu };

enum thread_state { READY, AT_BARRIER, IN_WARP, EXITED };

struct pending_copy {
    async_copy copy;
    int group;
};

struct thread {
    fiber on;
    uint3 index; // threadIdx
    unsigned linear, warp, lane;
    thread_state state;
    site at;        // where it waits
    int votes;      // what the last barrier counted
    int copy_group; // groups of asynchronous copies that it has committed
    std::vector<pending_copy> copies;
};

// Lanes of a warp on their way through one collective. Several can be open at once when lanes
// named disjoint masks.
struct meeting {
    unsigned mask, arrived;
    collective_function *function;
    site at;
    bool whole_warp; // an instruction of the whole warp, at one place in the program
    const void *in[WARP];
    void *out[WARP];
};

struct warp {
    unsigned members, alive; // lanes that exist; that have not exited
    unsigned round;          // how often its lanes synchronised memory
    std::vector<meeting> open;
};

struct barrier {
    int arrived, votes;
    site at;
    thread *first;
    thread *waiting[THREADS_MOST];
    unsigned round;
};

struct block_state {
    const char *kernel;
    const std::function<void()> *body; // nullptr: no kernel runs
    thread **all;                      // the threads, by linear index
    int threads, alive;
    thread *ready[THREADS_MOST];
    int ready_count;
    struct warp warps[WARPS_MOST];
    struct barrier barrier;
    unsigned long long number; // of blocks since the start
    fiber host;                // the stack that launched
};
extern block_state running;
extern thread *current; // nullptr: host code runs

void make_ready(thread *t);
// Runs another thread; returns when the current one was made ready and its turn has come.
void wait_for_turn();
void thread_exits(thread *t);
uint32_t draw(uint32_t below); // from the launch's random stream

// Threads that exit let those go on that wait for the rest (warp.cpp, barrier.cpp).
void warp_without(thread *t);
void barrier_without(thread *t);

// Shared memory is new for each block: NaNs (shared.cpp).
void shared_prepare(size_t dynamic_bytes, size_t limit_bytes);
void shared_renew();
void shared_check(); // that no gap was written

} // namespace simt

#endif
