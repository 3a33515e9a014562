#include "prompts/layout.h"

#include <assert.h>
#include <string.h>

// The layout under construction.
struct slot {
    struct counter *c;
    const struct prompt_request *r;
    const struct surroundings *s;
    struct arena *a;
    struct element *list;
    size_t count, capacity;
    size_t *order, *boundary; // inserts at a depth, ascending, and where each stands
    size_t order_count;
};

static bool ends_line(struct str s) {
    return s.n > 0 && s.p[s.n - 1] == '\n';
}

// ---- order ----

// Inserts at a depth by ascending depth; equal ones stay in the order given.
static void order_make(struct slot *l) {
    const struct prompt_request *r = l->r;
    l->order = arena_array(l->a, r->insert_count + 1, sizeof *l->order);
    l->boundary = arena_array(l->a, r->insert_count + 1, sizeof *l->boundary);
    l->order_count = 0;
    for (size_t i = 0; i < r->insert_count; i++) {
        if (r->inserts[i].anchor != PROMPT_AT_DEPTH) continue;
        size_t at = l->order_count++;
        for (; at > 0 && r->inserts[l->order[at - 1]].depth > r->inserts[i].depth; at--)
            l->order[at] = l->order[at - 1];
        l->order[at] = i;
    }
}

static int unit_before(struct slot *l, size_t i, uint64_t *before, struct err *e) {
    const struct unit *u;
    if (i == 0) {
        *before = 0;
        return 0;
    }
    TRY(units_get(l->r->units, i - 1, &u, e));
    assert(u != NULL);
    *before = u->before + u->tokens;
    return 0;
}

// The boundary nearest to a depth: b stands before unit b, `units` before the closing unit, units +
// 1 behind it. Ties go to the lower one.
static int boundary_find(struct slot *l, int32_t depth, size_t units, uint64_t filler, size_t *out,
                         struct err *e) {
    *out = 0;
    if (depth <= 0) return 0;
    *out = units + 1;
    if (depth >= PROMPT_DEPTH_MOST) return 0;
    // In units of 1 / PROMPT_DEPTH_MOST of a token.
    uint64_t target = (uint64_t)depth * filler, at;
    size_t low = 0, high = units; // the last boundary at or before the target
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        TRY(unit_before(l, middle, &at, e));
        if (at * PROMPT_DEPTH_MOST <= target)
            low = middle;
        else
            high = middle - 1;
    }
    uint64_t next = filler;
    TRY(unit_before(l, low, &at, e));
    if (low < units) TRY(unit_before(l, low + 1, &next, e));
    uint64_t below = target - at * PROMPT_DEPTH_MOST;
    uint64_t above = next * PROMPT_DEPTH_MOST - target;
    *out = above < below ? low + 1 : low;
    return 0;
}

static struct element *element_add(struct slot *l, enum element_kind kind, size_t index) {
    assert(l->count < l->capacity);
    struct element *x = &l->list[l->count++];
    *x = (struct element){.kind = kind, .index = index, .in_filler = true};
    if (kind == ELEMENT_INSERT) x->text = l->r->inserts[index].text;
    return x;
}

static void anchors_add(struct slot *l, enum prompt_anchor anchor) {
    for (size_t i = 0; i < l->r->insert_count; i++)
        if (l->r->inserts[i].anchor == anchor) element_add(l, ELEMENT_INSERT, i)->in_filler = false;
}

static int elements_order(struct slot *l, size_t units, uint64_t filler, struct err *e) {
    for (size_t i = 0; i < l->order_count; i++)
        TRY(boundary_find(l, l->r->inserts[l->order[i]].depth, units, filler, &l->boundary[i], e));
    l->count = 0;
    anchors_add(l, PROMPT_BEFORE_FILLER);
    size_t next = 0;
    for (size_t b = 0; b <= units + 1; b++) {
        while (next < l->order_count && l->boundary[next] == b)
            element_add(l, ELEMENT_INSERT, l->order[next++]);
        if (b < units) {
            struct element *x = element_add(l, ELEMENT_UNIT, b);
            TRY(units_get(l->r->units, b, &x->unit, e));
            x->text = x->unit->text;
        } else if (b == units) {
            element_add(l, ELEMENT_CLOSING, 0);
        }
    }
    anchors_add(l, PROMPT_AFTER_FILLER);
    return 0;
}

// ---- joins ----

static bool stream_neighbours(const struct element *x, const struct element *y) {
    return x->kind == ELEMENT_UNIT && y->kind == ELEMENT_UNIT && y->index == x->index + 1;
}

static struct str tail_between(const struct slot *l, const struct element *x,
                               const struct element *y) {
    if (x->in_filler != y->in_filler) return STR("\n\n"); // an anchor's own paragraph
    if (!x->in_filler) return STR("");
    return x->kind == ELEMENT_UNIT ? x->unit->tail : filler_tail(units_filler(l->r->units));
}

static struct str lead_between(const struct slot *l, const struct element *x,
                               const struct element *y) {
    if (stream_neighbours(x, y)) return y->unit->lead;
    if (ends_line(x->tail.n > 0 ? x->tail : x->text)) return STR("");
    if (!x->in_filler) return l->r->spaced ? STR(" ") : STR("");
    if (y->kind == ELEMENT_UNIT && y->unit->lead.n > 0) return y->unit->lead;
    return filler_lead(units_filler(l->r->units));
}

static void elements_join(struct slot *l) {
    for (size_t i = 0; i < l->count; i++) {
        struct element *x = &l->list[i];
        x->lead = i > 0 ? lead_between(l, x - 1, x) : STR("");
        x->tail = i + 1 < l->count ? tail_between(l, x, x + 1) : STR("");
    }
}

// ---- counts ----

// What counts as an element's segment: the spaces and line breaks around the slot belong to its
// first and last element.
static void segment_edges(const struct slot *l, const struct element *x, struct str *lead,
                          struct str *tail) {
    *lead = x == &l->list[0] ? l->s->before : x->lead;
    *tail = x == &l->list[l->count - 1] ? l->s->behind : x->tail;
}

static int elements_count(struct slot *l, struct err *e) {
    for (size_t i = 0; i < l->count; i++) {
        struct element *x = &l->list[i];
        struct str lead, tail;
        if (x->kind == ELEMENT_CLOSING) continue;
        segment_edges(l, x, &lead, &tail);
        if (x->kind == ELEMENT_UNIT && str_equal(lead, x->unit->lead) &&
            str_equal(tail, x->unit->tail))
            x->tokens = x->unit->tokens;
        else
            TRY(counter_segment(l->c, lead, x->text, tail, &x->tokens, e));
    }
    return 0;
}

static void elements_sum(const struct slot *l, int64_t *all, int64_t *filler) {
    *all = *filler = 0;
    for (size_t i = 0; i < l->count; i++) {
        *all += l->list[i].tokens;
        if (l->list[i].kind != ELEMENT_INSERT) *filler += l->list[i].tokens;
    }
}

static struct element *closing_of(struct slot *l) {
    for (size_t i = l->count; i-- > 0;)
        if (l->list[i].kind == ELEMENT_CLOSING) return &l->list[i];
    return NULL;
}

static int closing_put(struct slot *l, int64_t tokens, bool *found, struct err *e) {
    struct element *x = closing_of(l);
    struct str lead, tail, before = STR("");
    segment_edges(l, x, &lead, &tail);
    if (x > l->list && x[-1].tail.n == 0) before = x[-1].text;
    TRY(closing_build(l->c, l->r->closing, l->r->closing_rng, before, lead, tail, (uint32_t)tokens,
                      filler_closing_frame(units_filler(l->r->units)), l->a, &x->text, e));
    *found = x->text.n > 0;
    x->tokens = (uint32_t)tokens;
    return 0;
}

// ---- search ----

// Tokens of the inserts with the filler's own joins: what the first guess at the room is made with.
static int inserts_count(struct slot *l, int64_t *tokens, struct err *e) {
    const struct filler *f = units_filler(l->r->units);
    *tokens = 0;
    for (size_t i = 0; i < l->r->insert_count; i++) {
        const struct prompt_insert *x = &l->r->inserts[i];
        uint32_t n;
        if (prompt_in_message(x->anchor)) continue; // part of the surroundings
        TRY(counter_segment(l->c, filler_lead(f), x->text, filler_tail(f), &n, e));
        *tokens += n;
    }
    return 0;
}

// The most units that leave at least a comfortable closing unit.
static int units_fit(struct slot *l, int64_t room, size_t *out, struct err *e) {
    const struct unit *u;
    size_t n = 0;
    for (;; n++) {
        TRY(units_get(l->r->units, n, &u, e));
        if (u == NULL || (int64_t)(u->before + u->tokens) + CLOSING_TOKENS_COMFORT > room) break;
    }
    *out = n;
    return 0;
}

static int fail_room(const struct slot *l, int64_t want, int64_t inserts, struct err *e) {
    FAIL(e, ERR_CONFIG,
         "no room for filler: template and messages need %lld tokens and the constraints %lld, but "
         "the length is %lld; make the length greater or the texts shorter",
         (long long)l->s->tokens, (long long)inserts, (long long)want);
}

// No closing unit fills what is left: say why, and what would help.
static int fail_rest(struct slot *l, size_t units, int64_t room, int64_t rest, struct err *e) {
    const struct unit *u;
    TRY(units_get(l->r->units, units, &u, e));
    if (u == NULL && rest > CLOSING_TOKENS_MOST)
        FAIL(e, ERR_CONFIG,
             "the filler is too small: %llu tokens are available and %lld are needed; add texts or "
             "shorten the length (nothing is ever repeated)",
             (unsigned long long)units_tokens(l->r->units), (long long)room);
    if (rest > CLOSING_TOKENS_MOST && l->r->length > 0)
        FAIL(
            e, ERR_CONFIG,
            "%lld tokens remain behind the last unit that fits, the next unit has %u and a closing "
            "unit at most %d; split the texts into smaller units or set lengths.tolerance to "
            "%.1f%% "
            "or more",
            (long long)rest, u->tokens, CLOSING_TOKENS_MOST,
            100.0 * (double)(rest - CLOSING_TOKENS_MOST) / l->r->length + 0.05);
    FAIL(e, ERR_CONFIG,
         "no closing unit of %lld tokens can be built from this language's words with the model's "
         "tokenizer; change prompt.filler.language or the length by a few tokens",
         (long long)rest);
}

// Tokens left for the closing unit when `units` units stand in the slot.
static int rest_find(struct slot *l, size_t units, int64_t room, int64_t want, int64_t *rest,
                     struct err *e) {
    TRY(elements_order(l, units, (uint64_t)room, e));
    elements_join(l);
    TRY(elements_count(l, e));
    int64_t all, filler;
    elements_sum(l, &all, &filler);
    *rest = l->r->length >= 0 ? want - l->s->tokens - all : l->r->filler_tokens - filler;
    return 0;
}

static int64_t shortfall_most(const struct prompt_request *r) {
    return r->length > 0 ? (int64_t)r->length * r->tolerance_ppm / 1000000 : 0;
}

// Tries numbers of units around the first guess until a closing unit fits exactly.
static int search(struct slot *l, size_t *units, int64_t room, int64_t want, int64_t *shortfall,
                  struct err *e) {
    size_t most = SIZE_MAX; // more units than this leave no room for a closing unit
    int64_t rest = 0;
    bool found = false;
    *shortfall = 0;
    for (;;) {
        TRY(rest_find(l, *units, room, want, &rest, e));
        if (rest > CLOSING_TOKENS_MOST) {
            const struct unit *u;
            TRY(units_get(l->r->units, *units, &u, e));
            if (u != NULL && *units < most && u->tokens < rest) {
                ++*units;
                continue;
            }
            *shortfall = rest - CLOSING_TOKENS_MOST;
            if (*shortfall > shortfall_most(l->r)) return fail_rest(l, *units, room, rest, e);
            rest = CLOSING_TOKENS_MOST;
        }
        if (rest > 0) TRY(closing_put(l, rest, &found, e));
        if (found) return 0;
        if (*units == 0) return fail_rest(l, *units, room, rest, e);
        most = --*units;
    }
}

static void depths_set(struct slot *l, int64_t filler) {
    int64_t before = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct element *x = &l->list[i];
        if (x->kind != ELEMENT_INSERT)
            before += x->tokens;
        else if (!x->in_filler)
            x->depth = PROMPT_DEPTH_NONE;
        else
            x->depth = (int32_t)((before * PROMPT_DEPTH_MOST + filler / 2) / filler);
    }
}

int layout_make(struct counter *c, const struct prompt_request *r, const struct surroundings *s,
                int64_t want, struct arena *a, struct layout *out, struct err *e) {
    struct slot l = {.c = c, .r = r, .s = s, .a = a};
    int64_t inserts, all, filler;
    order_make(&l);
    TRY(inserts_count(&l, &inserts, e));
    int64_t room = r->length >= 0 ? want - s->tokens - inserts : r->filler_tokens;
    if (room < 1) return fail_room(&l, want, inserts, e);
    size_t units;
    TRY(units_fit(&l, room, &units, e));
    // The search moves away from this guess by what joins cost: a few units at the most.
    l.capacity = units + 2 * r->insert_count + 80;
    l.list = arena_array(a, l.capacity, sizeof *l.list);
    TRY(search(&l, &units, room, want, &out->shortfall, e));
    elements_sum(&l, &all, &filler);
    depths_set(&l, filler);
    out->list = l.list;
    out->count = l.count;
    out->unit_count = units;
    out->filler_tokens = (uint32_t)filler;
    out->tokens = all;
    out->closing = closing_of(&l)->text;
    return 0;
}

const struct layout *layout_keep(const struct layout *l, struct arena *a) {
    struct layout *copy = arena_alloc(a, sizeof *copy);
    *copy = *l;
    copy->list = arena_array(a, l->count + 1, sizeof *l->list);
    if (l->count > 0) memcpy(copy->list, l->list, l->count * sizeof *l->list);
    copy->closing = str_copy(a, l->closing);
    for (size_t i = 0; i < copy->count; i++)
        if (copy->list[i].kind == ELEMENT_CLOSING) copy->list[i].text = copy->closing;
    return copy;
}
