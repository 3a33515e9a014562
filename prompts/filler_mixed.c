// A filler with other sentences among its units: the first 1000 / N tokens hold one of them at a
// drawn place, the next 1000 / N another, and so on.
#include "prompts/filler_impl.h"

struct sprinkle {
    struct filler_sprinkle is;
    uint64_t number; // of the next one
    uint64_t place;  // where it goes, in PARTS of a token times per_1k_tokens
};

struct mixed {
    struct filler *base;
    size_t base_next; // unit of the base that comes next
    struct sprinkle *list;
    size_t count;
    uint64_t parts; // of all units so far
};

// A token is taken for four letters of the ASCII range, two of another alphabet, or one character
// of a script with many.
#define PARTS 4
#define STRETCH ((uint64_t)1000 * PARTS)

static uint64_t estimate_parts(struct str s) {
    uint64_t parts = 0;
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        at += utf8_decode(s, at, &c);
        parts += c < 0x80 ? 1 : c < 0x2E80 ? 2 : 4;
    }
    return parts;
}

static void place_draw(struct sprinkle *s) {
    s->place = s->number++ * STRETCH + rng_below(&s->is.rng, STRETCH);
}

// A whole unit of its own: where the unit before ends a line it stands on a line too, else it joins
// as the filler's own units do.
static void join(const struct filler *f, const struct filler *base, struct filler_item *out) {
    const struct filler_item *before = f->units[f->count - 1];
    bool line = before->tail.n > 0;
    out->lead = line ? STR("") : base->lead;
    out->tail = line ? before->tail : STR("");
}

static int mixed_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    struct mixed *m = f->state;
    for (size_t i = 0; i < m->count && f->count > 0; i++) {
        struct sprinkle *s = &m->list[i];
        if (m->parts * s->is.per_1k_tokens < s->place) continue;
        TRY(s->is.draw(s->is.context, &out->text, e));
        place_draw(s);
        join(f, m->base, out);
        out->sprinkle = (uint32_t)i + 1;
        m->parts += estimate_parts(out->text);
        return 0;
    }
    const struct filler_item *own;
    TRY(filler_get(m->base, m->base_next, &own, e));
    if (own == NULL) {
        *end = true;
        return 0;
    }
    m->base_next++;
    *out = *own;
    m->parts += estimate_parts(out->text);
    return 0;
}

struct filler *filler_mixed_open(struct filler *base, const struct filler_sprinkle *list,
                                 size_t count, struct arena *a) {
    struct mixed *m = arena_alloc(a, sizeof *m);
    m->base = base;
    m->list = arena_array(a, count + 1, sizeof *m->list);
    m->count = count;
    for (size_t i = 0; i < count; i++) {
        m->list[i].is = list[i];
        place_draw(&m->list[i]);
    }
    struct filler *f = filler_create(base->rng, a, m, mixed_next);
    f->lead = base->lead;
    f->tail = base->tail;
    f->closing = base->closing;
    return f;
}
