// __syncthreads and its voting forms.
#include "kernels/simt/block.h"
#include "kernels/simt/races.h"
#include "kernels/simt/report.h"

namespace simt {

static void release(struct barrier *b) {
    for (int i = 0; i < b->arrived; i++) {
        b->waiting[i]->votes = b->votes;
        make_ready(b->waiting[i]);
    }
    b->arrived = b->votes = 0;
    b->round++;
}

static bool same_place(const site &a, const site &b) {
    return a.file == b.file && a.line == b.line && a.counter == b.counter;
}

int block_barrier(const site &at, bool vote) {
    struct barrier *b = &running.barrier;
    thread *me = current;
    if (me == nullptr) fail("%s outside a kernel", at.what);
    if (running.alive != running.threads)
        fail("%s at %s:%d is reached by thread %u after other threads have exited", at.what,
             at.file, at.line, me->linear);
    if (b->arrived == 0) {
        b->at = at;
        b->first = me;
    } else if (!same_place(b->at, at)) {
        fail("divergent barrier: thread %u is at %s %s:%d while thread %u is at %s %s:%d",
             me->linear, at.what, at.file, at.line, b->first->linear, b->at.what, b->at.file,
             b->at.line);
    }
    b->waiting[b->arrived++] = me;
    b->votes += vote;
    me->at = at;
    me->state = AT_BARRIER;
    void *order = sync_object(SYNC_BARRIER, running.number, 0, b->round);
    sync_release(order);
    if (b->arrived == running.alive) release(b);
    wait_for_turn();
    sync_acquire(order);
    return me->votes;
}

void barrier_without(thread *t) {
    const struct barrier *b = &running.barrier;
    if (b->arrived > 0)
        fail("thread %u exits while others wait at %s %s:%d", t->linear, b->at.what, b->at.file,
             b->at.line);
}

} // namespace simt
