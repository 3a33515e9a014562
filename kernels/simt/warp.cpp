// Collectives of a warp: the last lane to arrive does the work of all.
#include "kernels/simt/block.h"
#include "kernels/simt/counts.h"
#include "kernels/simt/races.h"
#include "kernels/simt/report.h"
#include "kernels/simt/warp.h"

#include <cstring>

namespace simt {

static void refuse(const site &at, const char *why, unsigned mask, unsigned others) {
    fail("%s at %s:%d: %s (mask %08x, %08x)", at.what, at.file, at.line, why, mask, others);
}

static void check_mask(const thread *me, const struct warp *w, const site &at, const collective &c,
                       unsigned mask) {
    if (!(mask >> me->lane & 1)) refuse(at, "the calling lane is not in its mask", mask, me->lane);
    if (c.whole_warp && (w->alive & mask) != ALL_LANES)
        refuse(at, "needs all 32 lanes, but some have exited or do not exist", mask, w->alive);
    if (mask != ALL_LANES && (mask & ~w->members))
        refuse(at, "the mask names lanes that the warp does not have", mask, w->members);
    if (mask & w->members & ~w->alive)
        refuse(at, "the mask names lanes that have exited", mask, w->alive);
}

// The meeting of these lanes, opened by the first of them.
static size_t find_meeting(const thread *me, struct warp *w, const site &at, const collective &c,
                           unsigned mask) {
    for (size_t i = 0; i < w->open.size(); i++) {
        const meeting &m = w->open[i];
        if (m.mask != mask && (m.mask & mask))
            fail("collectives with overlapping masks: %s %08x at %s:%d and %s %08x at %s:%d",
                 at.what, mask, at.file, at.line, m.at.what, m.mask, m.at.file, m.at.line);
        if (m.mask != mask) continue;
        bool elsewhere = m.at.file != at.file || m.at.line != at.line;
        if (m.function != c.function || (c.whole_warp && elsewhere))
            fail("divergent warp collective: lane %u is in %s at %s:%d, others in %s at %s:%d",
                 me->lane, at.what, at.file, at.line, m.at.what, m.at.file, m.at.line);
        return i;
    }
    meeting m = {};
    m.mask = mask;
    m.function = c.function;
    m.at = at;
    m.whole_warp = c.whole_warp;
    w->open.push_back(m);
    return w->open.size() - 1;
}

static void close_meeting(struct warp *w, size_t i, thread *const *lanes) {
    meeting m = w->open[i]; // lanes may open the next one while this one's work is done
    w->open.erase(w->open.begin() + (long)i);
    counts.collectives++;
    if (m.function != nullptr) m.function(m.arrived, m.in, m.out);
    for (int lane = WARP - 1; lane >= 0; lane--)
        if (m.arrived >> lane & 1) make_ready(lanes[lane]);
}

void warp_collective(const site &at, const collective &c, unsigned mask, const void *in,
                     void *out) {
    thread *me = current;
    if (me == nullptr) fail("%s outside a kernel", at.what);
    struct warp *w = &running.warps[me->warp];
    check_mask(me, w, at, c, mask);
    size_t i = find_meeting(me, w, at, c, mask);
    meeting &m = w->open[i];
    m.in[me->lane] = in;
    m.out[me->lane] = out;
    m.arrived |= 1u << me->lane;
    me->at = at;
    me->state = IN_WARP;
    bool last = m.arrived == (mask & w->alive);
    void *order = sync_object(SYNC_WARP, running.number, me->warp, w->round);
    if (c.orders_memory) sync_release(order);
    if (last && c.orders_memory) w->round++;
    if (last) close_meeting(w, i, running.all + me->warp * WARP);
    wait_for_turn();
    if (c.orders_memory) sync_acquire(order);
}

void warp_without(thread *t) {
    struct warp *w = &running.warps[t->warp];
    w->alive &= ~(1u << t->lane);
    for (const meeting &m : w->open)
        if (m.mask >> t->lane & 1)
            fail("thread %u exits while lanes of its warp wait for it in %s at %s:%d", t->linear,
                 m.at.what, m.at.file, m.at.line);
}

// ---- shuffles and votes

template <shuffle_kind kind>
static void shuffle_lanes(unsigned lanes, const void *const *in, void *const *out) {
    for (int lane = 0; lane < WARP; lane++) {
        if (!(lanes >> lane & 1)) continue;
        const shuffle_input *me = (const shuffle_input *)in[lane];
        int first = lane & ~(me->width - 1), last = first + me->width - 1, from = lane;
        if (kind == SHUFFLE_INDEX) from = first | (me->argument & (me->width - 1));
        if (kind == SHUFFLE_UP && lane - me->argument >= first) from = lane - me->argument;
        if (kind == SHUFFLE_DOWN && lane + me->argument <= last) from = lane + me->argument;
        if (kind == SHUFFLE_XOR && (lane ^ me->argument) <= last) from = lane ^ me->argument;
        if (!(lanes >> from & 1))
            fail("shuffle: lane %d reads lane %d, which does not take part (mask %08x)", lane, from,
                 lanes);
        memcpy(out[lane], &((const shuffle_input *)in[from])->bits, sizeof me->bits);
    }
}

uint64_t shuffle(const site &at, shuffle_kind kind, unsigned mask, uint64_t bits, int argument,
                 int width) {
    static collective_function *const functions[] = {
        shuffle_lanes<SHUFFLE_INDEX>, shuffle_lanes<SHUFFLE_UP>, shuffle_lanes<SHUFFLE_DOWN>,
        shuffle_lanes<SHUFFLE_XOR>};
    shuffle_input in = {bits, argument, width};
    uint64_t result = 0;
    warp_collective(at, {functions[kind], false, false}, mask, &in, &result);
    return result;
}

static void ballot_lanes(unsigned lanes, const void *const *in, void *const *out) {
    ballot_result r = {0, lanes};
    for (int lane = 0; lane < WARP; lane++)
        if ((lanes >> lane & 1) && *(const bool *)in[lane]) r.yes |= 1u << lane;
    for (int lane = 0; lane < WARP; lane++)
        if (lanes >> lane & 1) *(ballot_result *)out[lane] = r;
}

ballot_result ballot(const site &at, unsigned mask, bool vote) {
    ballot_result r;
    warp_collective(at, {ballot_lanes, false, false}, mask, &vote, &r);
    return r;
}

static void match_lanes(unsigned lanes, const void *const *in, void *const *out) {
    for (int lane = 0; lane < WARP; lane++) {
        unsigned same = 0;
        for (int other = 0; other < WARP && (lanes >> lane & 1); other++)
            if ((lanes >> other & 1) && *(const uint64_t *)in[other] == *(const uint64_t *)in[lane])
                same |= 1u << other;
        if (lanes >> lane & 1) *(unsigned *)out[lane] = same;
    }
}

unsigned match_any(const site &at, unsigned mask, uint64_t bits) {
    unsigned same = 0;
    warp_collective(at, {match_lanes, false, false}, mask, &bits, &same);
    return same;
}

void warp_barrier::operator()(unsigned mask) const {
    warp_collective(at, {nullptr, false, true}, mask, nullptr, nullptr);
}

} // namespace simt
