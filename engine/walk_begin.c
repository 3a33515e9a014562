// Where a prompt's prefix comes from, and whether there is room for the rest.
#include "engine/walk_internal.h"

#include <assert.h>

// Ids that both prompts have in common. The last token is always computed: its logits are wanted.
static uint32_t common_prefix(const struct leaf *a, const struct leaf *l) {
    size_t most = l->ids.count - 1, n = 0;
    if (a->ids.count < most) most = a->ids.count;
    while (n < most && a->ids.ids[n] == l->ids.ids[n]) n++;
    return (uint32_t)n;
}

// How much of `l` can be shared with a leaf, now or once it is read further.
static uint32_t shared_with(const struct leaf *s, const struct leaf *l) {
    if (s->sequence == NULL) return 0;
    uint32_t n = common_prefix(s, l);
    bool longer = s->state == LEAF_READING; // others may have failed, or were cut back
    return longer || n < s->sequence->length ? n : s->sequence->length;
}

static bool is_ready(const struct leaf *source, uint32_t shared) {
    return source->sequence->length >= shared;
}

// The leaf that shares most with `l`, NULL when none shares; among equals one that is ready, then
// the one used last.
static struct leaf *find_source(struct walk *w, const struct leaf *l, uint32_t *shared) {
    struct leaf *best = NULL;
    *shared = 0;
    for (int i = 0; i < w->leaves; i++) {
        struct leaf *s = &w->leaf[i];
        uint32_t n = shared_with(s, l);
        if (n == 0 || n < *shared) continue;
        if (n == *shared) {
            bool ready = is_ready(s, n), best_ready = is_ready(best, n);
            if (ready != best_ready ? best_ready : s->used < best->used) continue;
        }
        best = s;
        *shared = n;
    }
    return best;
}

// Pages that leaves in flight may still take.
static uint64_t promised_pages(const struct walk *w) {
    uint64_t pages = 0;
    for (int i = 0; i < w->leaves; i++) {
        const struct leaf *l = &w->leaf[i];
        if (l->state != LEAF_READING && l->state != LEAF_GROWING) continue;
        pages += kv_pages_needed(session_kv(w->session), l->sequence,
                                 (uint32_t)l->ids.count + (uint32_t)l->generation.max_tokens);
    }
    return pages;
}

static bool has_room(const struct walk *w, uint64_t pages) {
    return pages + promised_pages(w) <= session_kv(w->session)->free_count;
}

static void forget(struct walk *w, struct leaf *kept) {
    kv_sequence_close(session_kv(w->session), kept->sequence);
    kept->sequence = NULL;
    kept->state = LEAF_FREE;
}

// Drops the kept prompt that was used least recently, but for the source.
static bool forget_oldest(struct walk *w, const struct leaf *source) {
    struct leaf *oldest = NULL;
    for (int i = 0; i < w->leaves; i++) {
        struct leaf *k = &w->leaf[i];
        if (k->state != LEAF_KEPT || k == source) continue;
        if (oldest == NULL || k->used < oldest->used) oldest = k;
    }
    if (oldest != NULL) forget(w, oldest);
    return oldest != NULL;
}

// Opens a sequence with what is shared, where there is room for it and for all that follows.
static bool fork_source(struct walk *w, struct leaf *l, struct leaf *source, uint32_t shared,
                        uint32_t length) {
    struct kv_pool *kv = session_kv(w->session);
    uint64_t pages = kv_pages_of(length) - shared / BACKEND_PAGE;
    bool room = has_room(w, pages);
    while (!room && forget_oldest(w, source)) room = has_room(w, pages);
    if (!room) return false;
    // There is a sequence for each leaf.
    int result = source != NULL ? kv_fork(kv, source->sequence, shared, &l->sequence, NULL)
                                : kv_sequence_open(kv, &l->sequence, NULL);
    assert(result == 0);
    (void)result;
    if (source != NULL) source->used = w->clock++;
    return true;
}

// Cuts a kept prompt back to what is shared, and takes it over where that makes room.
static bool take_over(struct walk *w, struct leaf *l, struct leaf *kept, uint32_t shared,
                      uint32_t length) {
    struct kv_pool *kv = session_kv(w->session);
    kv_truncate(kv, kept->sequence, shared);
    if (!has_room(w, kv_pages_needed(kv, kept->sequence, length))) return false;
    l->sequence = kept->sequence;
    kept->sequence = NULL;
    kept->state = LEAF_FREE;
    return true;
}

// Whether a leaf got its sequence; otherwise it waits for others to end or to be read further.
static bool begin(struct walk *w, struct leaf *l) {
    uint32_t shared, length = (uint32_t)l->ids.count + (uint32_t)l->generation.max_tokens;
    struct leaf *source = find_source(w, l, &shared);
    if (source != NULL && !is_ready(source, shared)) return false;
    bool kept = source != NULL && source->state == LEAF_KEPT;
    if (!fork_source(w, l, source, shared, length) &&
        !(kept && take_over(w, l, source, shared, length)))
        return false;
    l->state = LEAF_READING;
    l->used = w->clock++;
    l->shared_tokens = shared;
    return true;
}

static uint64_t unread_tokens(const struct leaf *l) {
    return l->ids.count - l->sequence->length;
}

void walk_begin(struct walk *w) {
    uint64_t rows = (uint64_t)walk_leaves(w, LEAF_GROWING, w->listed);
    int count = walk_leaves(w, LEAF_READING, w->listed);
    for (int i = 0; i < count; i++) rows += unread_tokens(w->listed[i]);
    count = walk_leaves(w, LEAF_WAITING, w->listed);
    for (int i = 0; i < count && rows < session_plan(w->session)->chunk_tokens; i++) {
        if (!begin(w, w->listed[i])) return;
        rows += unread_tokens(w->listed[i]);
    }
}
