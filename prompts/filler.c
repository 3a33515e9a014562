#include "prompts/filler_impl.h"

#include "engine/base/hash.h"

#include <assert.h>
#include <string.h>

struct filler *filler_create(struct rng rng, struct arena *a, void *state,
                             int (*next)(struct filler *, struct filler_item *, bool *,
                                         struct err *)) {
    struct filler *f = arena_alloc(a, sizeof *f);
    f->next = next;
    f->state = state;
    f->arena = a;
    f->rng = rng;
    return f;
}

// The text before it grew stays in the arena.
static void text_add(struct filler *f, struct str s) {
    if (f->text_bytes + s.n > f->text_capacity) {
        f->text_capacity = 2 * (f->text_bytes + s.n);
        char *larger = arena_alloc(f->arena, f->text_capacity);
        if (f->text_bytes > 0) memcpy(larger, f->text, f->text_bytes);
        f->text = larger;
    }
    if (s.n > 0) memcpy(f->text + f->text_bytes, s.p, s.n);
    f->text_bytes += s.n;
}

static void unit_add(struct filler *f, const struct filler_item *drawn) {
    f->units = arena_more(f->arena, f->units, f->count, sizeof *f->units);
    struct filler_item *u = arena_alloc(f->arena, sizeof *u);
    *u = *drawn;
    if (f->count == 0) u->lead = STR("");
    u->from = f->text_bytes;
    text_add(f, u->lead);
    text_add(f, u->text);
    text_add(f, u->tail);
    u->to = f->text_bytes;
    f->units[f->count++] = u;
}

int filler_get(struct filler *f, size_t i, const struct filler_item **out, struct err *e) {
    while (i >= f->count && !f->ended) {
        struct filler_item u = {.lead = f->lead, .text = STR(""), .tail = f->tail};
        bool end = false;
        TRY(f->next(f, &u, &end, e));
        if (end)
            f->ended = true;
        else
            unit_add(f, &u);
    }
    *out = i < f->count ? f->units[i] : NULL;
    return 0;
}

struct str filler_text(const struct filler *f) {
    return (struct str){f->text, f->text_bytes};
}

struct str filler_lead(const struct filler *f) {
    return f->lead;
}

struct str filler_tail(const struct filler *f) {
    return f->tail;
}

struct filler_frame filler_closing_frame(const struct filler *f) {
    return f->closing;
}

bool filler_language_spaced(const char *language) {
    static const char *const unspaced[] = {"zh", "ja", "th", "lo", "km", "my", "yue"};
    size_t n = strcspn(language, "-_");
    for (size_t i = 0; i < sizeof unspaced / sizeof unspaced[0]; i++)
        if (strlen(unspaced[i]) == n && strncmp(language, unspaced[i], n) == 0) return false;
    return true;
}

// With a finalizer, so that the low bits index a table well.
static uint64_t text_hash(struct str s) {
    uint64_t h = hash_fnv(s);
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    return h != 0 ? h : 1; // 0 marks a free slot
}

static bool slot_take(uint64_t *slots, size_t capacity, uint64_t h) {
    size_t at = h & (capacity - 1);
    while (slots[at] != 0) {
        if (slots[at] == h) return false;
        at = (at + 1) & (capacity - 1);
    }
    slots[at] = h;
    return true;
}

bool seen_add(struct seen *s, struct str text, struct arena *a) {
    if (2 * (s->count + 1) > s->capacity) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 256;
        uint64_t *slots = arena_array(a, capacity, sizeof *slots);
        for (size_t i = 0; i < s->capacity; i++)
            if (s->slots[i] != 0) slot_take(slots, capacity, s->slots[i]);
        s->slots = slots;
        s->capacity = capacity;
    }
    if (!slot_take(s->slots, s->capacity, text_hash(text))) return false;
    s->count++;
    return true;
}
