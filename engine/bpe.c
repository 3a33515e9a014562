#include "engine/bpe.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Pieces up to this length are merged by looking through all pairs each time: faster than a heap.
#define SHORT_PIECE 24
#define NO_RANK UINT32_MAX
#define NOWHERE UINT32_MAX

struct slot {
    uint64_t pair; // left id << 32 | right id
    uint32_t rank; // NO_RANK: the slot is free
    int32_t result;
};

struct bpe {
    struct slot *slots; // open addressing, at most half full
    size_t mask;
    uint32_t added;
};

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static size_t slot_of(const struct bpe *b, uint64_t pair) {
    uint64_t h = pair * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return (size_t)(h ^ h >> 32) & b->mask;
}

static const struct slot *slot_find(const struct bpe *b, int32_t left, int32_t right) {
    uint64_t pair = pair_of(left, right);
    size_t i = slot_of(b, pair);
    while (b->slots[i].rank != NO_RANK && b->slots[i].pair != pair) i = (i + 1) & b->mask;
    return &b->slots[i];
}

struct bpe *bpe_create(struct arena *a, size_t merges) {
    struct bpe *b = arena_alloc(a, sizeof *b);
    size_t capacity = 16;
    while (capacity < merges * 2) capacity *= 2;
    b->slots = arena_array(a, capacity, sizeof *b->slots);
    b->mask = capacity - 1;
    for (size_t i = 0; i < capacity; i++) b->slots[i].rank = NO_RANK;
    return b;
}

void bpe_add(struct bpe *b, int32_t left, int32_t right, int32_t result) {
    assert(left >= 0 && right >= 0 && result >= 0 && b->added <= b->mask / 2);
    struct slot *slot = &b->slots[slot_find(b, left, right) - b->slots];
    uint32_t rank = b->added++;
    if (slot->rank == NO_RANK) *slot = (struct slot){pair_of(left, right), rank, result};
}

void bpe_scratch_free(struct bpe_scratch *s) {
    free(s->p);
    *s = (struct bpe_scratch){0};
}

static void merge_short(const struct bpe *b, int32_t *ids, size_t *count) {
    uint32_t rank[SHORT_PIECE]; // of the pair (i, i + 1)
    int32_t result[SHORT_PIECE];
    size_t n = *count;
    for (size_t i = 0; i + 1 < n; i++) {
        const struct slot *slot = slot_find(b, ids[i], ids[i + 1]);
        rank[i] = slot->rank;
        result[i] = slot->result;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[best]) best = i;
        }
        if (rank[best] == NO_RANK) break;
        ids[best] = result[best];
        size_t behind = n - best - 2; // symbols behind the pair
        memmove(ids + best + 1, ids + best + 2, behind * sizeof *ids);
        memmove(rank + best + 1, rank + best + 2, (behind > 0 ? behind - 1 : 0) * sizeof *rank);
        memmove(result + best + 1, result + best + 2,
                (behind > 0 ? behind - 1 : 0) * sizeof *result);
        n--;
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const struct slot *slot = slot_find(b, ids[i], ids[i + 1]);
            rank[i] = slot->rank;
            result[i] = slot->result;
        }
    }
    *count = n;
}

// A long piece: symbols in a linked list over their positions, candidate pairs in a binary heap by
// (rank, position). A pair that changes is not removed from the heap: its entry is out of date when
// the rank noted for that position has become another one. A symbol only grows, so one position
// never sees the same pair, hence the same rank, twice.
struct long_piece {
    uint64_t *heap; // rank << 32 | position
    size_t heap_count;
    int32_t *ids;
    int32_t *result; // of the pair that begins here
    uint32_t *rank;
    uint32_t *next, *previous;
};

static void heap_sift_down(uint64_t *heap, size_t count, size_t i) {
    uint64_t moving = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= count) break;
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moving) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heap_push(struct long_piece *w, uint64_t entry) {
    size_t i = w->heap_count++;
    while (i > 0 && w->heap[(i - 1) / 2] > entry) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = entry;
}

static uint64_t heap_pop(struct long_piece *w) {
    uint64_t top = w->heap[0];
    w->heap[0] = w->heap[--w->heap_count];
    if (w->heap_count > 0) heap_sift_down(w->heap, w->heap_count, 0);
    return top;
}

// Notes rank and result of the pair that begins at `at`; true when it can be merged.
static bool pair_note(const struct bpe *b, struct long_piece *w, uint32_t at) {
    w->rank[at] = NO_RANK;
    if (w->next[at] == NOWHERE) return false;
    const struct slot *slot = slot_find(b, w->ids[at], w->ids[w->next[at]]);
    w->rank[at] = slot->rank;
    w->result[at] = slot->result;
    return slot->rank != NO_RANK;
}

static void pair_offer(const struct bpe *b, struct long_piece *w, uint32_t at) {
    if (pair_note(b, w, at)) heap_push(w, (uint64_t)w->rank[at] << 32 | at);
}

// Each merge takes one entry off and offers two pairs, so n entries at first and one more for each
// of fewer than n merges are the most that the heap holds.
static void long_piece_carve(struct long_piece *w, size_t n, struct bpe_scratch *s) {
    size_t bytes = n * (2 * sizeof *w->heap + sizeof *w->result + sizeof *w->rank +
                        sizeof *w->next + sizeof *w->previous);
    if (s->bytes < bytes) {
        free(s->p);
        s->p = malloc(bytes);
        if (s->p == NULL) mem_exhausted("the merges of a long word", bytes);
        s->bytes = bytes;
    }
    w->heap = s->p;
    w->result = (int32_t *)(w->heap + 2 * n);
    w->rank = (uint32_t *)(w->result + n);
    w->next = w->rank + n;
    w->previous = w->next + n;
}

static void merge_long(const struct bpe *b, int32_t *ids, size_t *count, struct bpe_scratch *s) {
    uint32_t n = (uint32_t)*count;
    struct long_piece w = {.ids = ids};
    long_piece_carve(&w, n, s);
    for (uint32_t i = 0; i < n; i++) {
        w.next[i] = i + 1 < n ? i + 1 : NOWHERE;
        w.previous[i] = i > 0 ? i - 1 : NOWHERE;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (pair_note(b, &w, i)) w.heap[w.heap_count++] = (uint64_t)w.rank[i] << 32 | i;
    }
    for (size_t i = w.heap_count / 2; i-- > 0;) heap_sift_down(w.heap, w.heap_count, i);
    while (w.heap_count > 0) {
        uint64_t top = heap_pop(&w);
        uint32_t at = (uint32_t)top;
        if (w.rank[at] != (uint32_t)(top >> 32)) continue;
        uint32_t gone = w.next[at];
        w.ids[at] = w.result[at];
        w.rank[gone] = NO_RANK;
        w.next[at] = w.next[gone];
        if (w.next[at] != NOWHERE) w.previous[w.next[at]] = at;
        if (w.previous[at] != NOWHERE) pair_offer(b, &w, w.previous[at]);
        pair_offer(b, &w, at);
    }
    size_t left = 0;
    for (uint32_t i = 0; i != NOWHERE; i = w.next[i]) ids[left++] = ids[i];
    *count = left;
}

int bpe_merge(const struct bpe *b, int32_t *ids, size_t *count, struct bpe_scratch *s,
              struct err *e) {
    if (*count <= SHORT_PIECE) {
        merge_short(b, ids, count);
        return 0;
    }
    if (*count > INT32_MAX) FAIL(e, ERR_INPUT, "a word of %zu bytes is too long to merge", *count);
    merge_long(b, ids, count, s);
    return 0;
}
