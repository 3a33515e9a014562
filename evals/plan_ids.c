#include "evals/plan_ids.h"

#include <string.h>

#define SHIFT_MOST 256 // ids of both that may stand between two runs: a constraint that has moved
#define SURE 8         // equal ids that begin a run anew

struct holder {
    const struct provider_ids *ids, *base;
    struct ids_run *runs;
    uint32_t run_count;
    struct arena *arena;
};

static void run_add(struct holder *h, const int32_t *ids, size_t count) {
    if (count == 0) return;
    h->runs = arena_more(h->arena, h->runs, h->run_count, sizeof *h->runs);
    h->runs[h->run_count++] = (struct ids_run){ids, (uint32_t)count};
}

static int32_t *copied(struct arena *a, const int32_t *ids, size_t count) {
    return (int32_t *)(void *)arena_memdup(a, ids, count * sizeof *ids);
}

static size_t equal_from(const struct holder *h, size_t i, size_t k, size_t most) {
    size_t n = 0;
    while (n < most && i + n < h->ids->count && k + n < h->base->count &&
           h->ids->ids[i + n] == h->base->ids[k + n])
        n++;
    return n;
}

// Do ids from i and the base from k go on alike?
static bool rejoins(const struct holder *h, size_t i, size_t k) {
    size_t n = equal_from(h, i, k, SURE);
    return n == SURE || (n > 0 && i + n == h->ids->count && k + n == h->base->count);
}

// The nearest place where both go on alike, whatever was inserted, removed or replaced.
static bool find_rejoin(const struct holder *h, size_t *i, size_t *k) {
    for (size_t shift = 1; shift <= SHIFT_MOST; shift++)
        for (size_t d = 0; d <= shift; d++) {
            if (!rejoins(h, *i + d, *k + shift - d)) continue;
            *i += d;
            *k += shift - d;
            return true;
        }
    return false;
}

static void hold_runs(struct holder *h) {
    size_t i = 0, k = 0;
    while (i < h->ids->count) {
        size_t n = equal_from(h, i, k, SIZE_MAX), from = i + n;
        run_add(h, h->base->ids + k, n);
        i += n;
        k += n;
        if (i == h->ids->count) break;
        if (!find_rejoin(h, &i, &k)) i = h->ids->count;
        if (i > from) run_add(h, copied(h->arena, h->ids->ids + from, i - from), i - from);
    }
}

struct plan_ids plan_ids_hold(const struct provider_ids *ids, struct provider_ids *base,
                              struct arena *a) {
    struct holder h = {.ids = ids, .base = base, .arena = a};
    if (base->count > 0) {
        hold_runs(&h);
    } else if (ids->count > 0) {
        *base = (struct provider_ids){copied(a, ids->ids, ids->count), ids->count};
        run_add(&h, base->ids, base->count);
    }
    return (struct plan_ids){h.runs, h.run_count, (uint32_t)ids->count};
}

// ---- comparing ----

struct cursor {
    const struct ids_run *run, *end;
    uint32_t at; // in the run
};

static struct cursor cursor_of(const struct plan_ids *x) {
    return (struct cursor){x->runs, x->runs + x->run_count, 0};
}

static void cursor_move(struct cursor *c, uint32_t n) {
    c->at += n;
    if (c->at < c->run->count) return;
    c->run++;
    c->at = 0;
}

// Moves both over equal ids, and returns how many there were.
static uint32_t skip_equal(struct cursor *a, struct cursor *b) {
    uint32_t equal = 0;
    while (a->run < a->end && b->run < b->end) {
        uint32_t left = a->run->count - a->at, right = b->run->count - b->at;
        uint32_t most = left < right ? left : right, n = 0;
        const int32_t *x = a->run->ids + a->at, *y = b->run->ids + b->at;
        if (x == y) n = most; // ids that both prompts share
        while (n < most && x[n] == y[n]) n++;
        equal += n;
        if (n > 0) cursor_move(a, n);
        if (n > 0) cursor_move(b, n);
        if (n < most) break;
    }
    return equal;
}

uint32_t plan_ids_common(const struct plan_ids *a, const struct plan_ids *b) {
    struct cursor x = cursor_of(a), y = cursor_of(b);
    return skip_equal(&x, &y);
}

int plan_ids_order(const struct plan_ids *a, const struct plan_ids *b) {
    if (a->runs == b->runs) return 0; // samples of one prompt
    struct cursor x = cursor_of(a), y = cursor_of(b);
    uint32_t equal = skip_equal(&x, &y);
    if (equal == a->count || equal == b->count)
        return (a->count > b->count) - (a->count < b->count);
    int32_t left = x.run->ids[x.at], right = y.run->ids[y.at];
    return (left > right) - (left < right);
}
