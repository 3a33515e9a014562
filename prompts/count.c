#include "prompts/count.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MOST ((size_t)1 << 17) // then the cache is emptied: units of old repeats are no use

struct entry {
    uint64_t hash[2]; // both 0: free
    uint32_t tokens;
};

struct counter {
    struct provider *p;
    struct arena *scratch;
    struct buf text;
    struct entry *entries;
    size_t count, capacity;
};

struct counter *counter_open(struct provider *p) {
    struct counter *c = calloc(1, sizeof *c);
    if (c == NULL) mem_exhausted("counter", sizeof *c);
    c->p = p;
    c->scratch = arena_create("counter");
    return c;
}

void counter_close(struct counter *c) {
    if (c == NULL) return;
    arena_destroy(c->scratch);
    buf_free(&c->text);
    free(c->entries);
    free(c);
}

bool counter_has_ids(const struct counter *c) {
    return c->p->can.exact_ids || c->p->can.likely_ids;
}

// Two FNV-1a chains of 64 bits each; they stand for the text in the cache. (A collision would be
// found when the whole prompt is counted.)
static void text_hash(struct str s, uint64_t hash[2]) {
    uint64_t a = 14695981039346656037u, b = 0x9AE16A3B2F90404Fu;
    for (size_t i = 0; i < s.n; i++) {
        a = (a ^ (uint8_t)s.p[i]) * 1099511628211u;
        b = (b ^ (uint8_t)s.p[i]) * 0x100000001B3u + (b >> 33);
    }
    hash[0] = (a ^ (a >> 32)) * 0x9E3779B97F4A7C15u;
    hash[1] = b | 1;
}

static struct entry *entry_find(struct entry *entries, size_t capacity, const uint64_t hash[2]) {
    size_t at = (hash[0] >> 20) & (capacity - 1);
    while (entries[at].hash[1] != 0 &&
           (entries[at].hash[0] != hash[0] || entries[at].hash[1] != hash[1]))
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static void entries_grow(struct counter *c) {
    size_t capacity = c->capacity > 0 ? 2 * c->capacity : 1024;
    struct entry *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) mem_exhausted("counter", capacity * sizeof *entries);
    for (size_t i = 0; i < c->capacity; i++)
        if (c->entries[i].hash[1] != 0)
            *entry_find(entries, capacity, c->entries[i].hash) = c->entries[i];
    free(c->entries);
    c->entries = entries;
    c->capacity = capacity;
}

// Ids of a text that something follows. Pre-tokenizers look one character ahead at the end of white
// space (GPT-2's gives "\n\n" before a word as two pieces, alone as one), so such a text is
// tokenized with a letter behind it, which is taken off again.
static int ids_of(struct counter *c, struct str text, struct provider_ids *out, struct err *e) {
    struct provider_piece pieces[2] = {{text, false}, {STR("a"), false}};
    char last = text.p[text.n - 1];
    bool open = last == ' ' || (last >= '\t' && last <= '\r');
    if (!open || !counter_has_ids(c))
        return c->p->ops->tokenize(c->p, pieces, 1, c->scratch, out, e);
    struct provider_ids letter;
    TRY(c->p->ops->tokenize(c->p, pieces + 1, 1, c->scratch, &letter, e));
    TRY(c->p->ops->tokenize(c->p, pieces, 2, c->scratch, out, e));
    out->count -= letter.count < out->count ? letter.count : out->count;
    return 0;
}

int counter_text(struct counter *c, struct str text, uint32_t *tokens, struct err *e) {
    *tokens = 0;
    if (text.n == 0) return 0;
    if (c->count == ENTRIES_MOST) {
        memset(c->entries, 0, c->capacity * sizeof *c->entries);
        c->count = 0;
    }
    if (2 * (c->count + 1) > c->capacity) entries_grow(c);
    uint64_t hash[2];
    text_hash(text, hash);
    struct entry *entry = entry_find(c->entries, c->capacity, hash);
    if (entry->hash[1] == 0) {
        struct provider_ids ids;
        arena_reset(c->scratch);
        TRY(ids_of(c, text, &ids, e));
        *entry = (struct entry){{hash[0], hash[1]}, (uint32_t)ids.count};
        c->count++;
    }
    *tokens = entry->tokens;
    return 0;
}

int counter_segment(struct counter *c, struct str lead, struct str text, struct str tail,
                    uint32_t *tokens, struct err *e) {
    if (lead.n + tail.n == 0) return counter_text(c, text, tokens, e);
    buf_clear(&c->text);
    buf_add_str(&c->text, lead);
    buf_add_str(&c->text, text);
    buf_add_str(&c->text, tail);
    return counter_text(c, buf_str(&c->text), tokens, e);
}

// Whether a + b has just the ids of both.
static int join_clean(struct counter *c, struct str a, const struct provider_ids *ids_a,
                      struct str b, const struct provider_ids *ids_b, bool *clean, struct err *e) {
    struct provider_ids both;
    buf_clear(&c->text);
    buf_add_str(&c->text, a);
    buf_add_str(&c->text, b);
    TRY(ids_of(c, buf_str(&c->text), &both, e));
    size_t bytes_a = ids_a->count * sizeof(int32_t), bytes_b = ids_b->count * sizeof(int32_t);
    *clean = both.count == ids_a->count + ids_b->count &&
             memcmp(both.ids, ids_a->ids, bytes_a) == 0 &&
             memcmp(both.ids + ids_a->count, ids_b->ids, bytes_b) == 0;
    return 0;
}

int counter_clean(struct counter *c, struct str a, struct str b, bool *clean, struct err *e) {
    *clean = true;
    if (!counter_has_ids(c) || a.n == 0 || b.n == 0) return 0;
    struct provider_ids first, second;
    arena_reset(c->scratch);
    TRY(ids_of(c, a, &first, e));
    TRY(ids_of(c, b, &second, e));
    return join_clean(c, a, &first, b, &second, clean, e);
}

struct units {
    struct counter *c;
    struct filler *f;
    struct arena *arena;
    struct unit **list;
    size_t count;
    size_t next; // unit of the filler that the next one begins with
    uint64_t tokens;
    struct provider_ids ahead; // of the filler's unit `ahead_of`; each is tokenized once
    size_t ahead_of;
};

struct units *units_open(struct counter *c, struct filler *f, struct arena *a) {
    struct units *u = arena_alloc(a, sizeof *u);
    u->c = c;
    u->f = f;
    u->arena = a;
    return u;
}

struct filler *units_filler(const struct units *u) {
    return u->f;
}

uint64_t units_tokens(const struct units *u) {
    return u->tokens;
}

static struct str joined(struct arena *a, struct str x, struct str y, struct str z) {
    char *p = arena_alloc(a, x.n + y.n + z.n + 1);
    if (x.n > 0) memcpy(p, x.p, x.n);
    if (y.n > 0) memcpy(p + x.n, y.p, y.n);
    if (z.n > 0) memcpy(p + x.n + y.n, z.p, z.n);
    return (struct str){p, x.n + y.n + z.n};
}

static int ids_keep(struct units *u, struct str text, struct provider_ids *out, struct err *e) {
    struct provider_ids ids = {0};
    arena_reset(u->c->scratch);
    if (text.n > 0) TRY(ids_of(u->c, text, &ids, e));
    out->count = ids.count;
    out->ids = arena_array(u->arena, ids.count + 1, sizeof *out->ids);
    if (ids.count > 0) memcpy(out->ids, ids.ids, ids.count * sizeof *out->ids);
    return 0;
}

// Glues units to `unit` until the join behind it is clean.
static int unit_glue(struct units *u, struct unit *unit, struct err *e) {
    const struct filler_item *next;
    struct provider_ids here = u->ahead;
    if (here.ids == NULL || u->ahead_of != u->next)
        TRY(ids_keep(u, str_slice(filler_text(u->f), unit->from, unit->to), &here, e));
    for (;;) {
        u->next++;
        TRY(filler_get(u->f, u->next, &next, e));
        if (next == NULL) break;
        struct str stored = filler_text(u->f);
        struct str text = str_slice(stored, unit->from, unit->to);
        struct str behind = str_slice(stored, next->from, next->to);
        TRY(ids_keep(u, behind, &u->ahead, e));
        u->ahead_of = u->next;
        bool clean;
        TRY(join_clean(u->c, text, &here, behind, &u->ahead, &clean, e));
        if (clean) break;
        unit->text = joined(u->arena, unit->text, unit->tail,
                            joined(u->arena, next->lead, next->text, STR("")));
        unit->tail = next->tail;
        unit->to = next->to;
        TRY(ids_keep(u, str_slice(stored, unit->from, unit->to), &here, e));
    }
    unit->tokens = (uint32_t)here.count;
    return 0;
}

// Takes the filler's unit u->next and whatever is glued to it.
static int unit_take(struct units *u, struct unit **out, struct err *e) {
    const struct filler_item *first;
    *out = NULL;
    TRY(filler_get(u->f, u->next, &first, e));
    if (first == NULL) return 0;
    struct unit *unit = arena_alloc(u->arena, sizeof *unit);
    *unit =
        (struct unit){first->lead, first->text, first->tail, 0, u->tokens, first->from, first->to};
    if (counter_has_ids(u->c)) {
        TRY(unit_glue(u, unit, e));
    } else {
        u->next++;
        TRY(counter_segment(u->c, unit->lead, unit->text, unit->tail, &unit->tokens, e));
    }
    u->tokens += unit->tokens;
    *out = unit;
    return 0;
}

int units_get(struct units *u, size_t i, const struct unit **out, struct err *e) {
    while (i >= u->count) {
        struct unit *unit;
        TRY(unit_take(u, &unit, e));
        if (unit == NULL) {
            *out = NULL;
            return 0;
        }
        u->list = arena_more(u->arena, u->list, u->count, sizeof *u->list);
        u->list[u->count++] = unit;
    }
    *out = u->list[i];
    return 0;
}
