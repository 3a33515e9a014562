#include "prompts/prompt.h"

#include "prompts/prompt_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CORRECTIONS_MOST 16

struct prompt_builder *prompt_builder_open(struct provider *p) {
    struct prompt_builder *b = calloc(1, sizeof *b);
    if (b == NULL) mem_exhausted("prompt builder", sizeof *b);
    b->p = p;
    b->counter = counter_open(p);
    b->scratch = arena_create("prompt");
    return b;
}

void prompt_builder_close(struct prompt_builder *b) {
    if (b == NULL) return;
    counter_close(b->counter);
    arena_destroy(b->scratch);
    free(b);
}

struct counter *prompt_builder_counter(struct prompt_builder *b) {
    return b->counter;
}

// ---- parts ----

struct part_list {
    struct prompt_part *list;
    size_t count, capacity;
    struct arena *a;
};

// Appends, joining neighbours of a sort so that a run of units is one range of the stored filler.
static void parts_add(struct part_list *l, struct prompt_part part) {
    if (part.text.n == 0) return;
    struct prompt_part *last = l->count > 0 ? &l->list[l->count - 1] : NULL;
    if (last != NULL && last->stored && part.stored && last->to == part.from &&
        last->text.p + last->text.n == part.text.p) {
        last->text.n += part.text.n;
        last->to = part.to;
        return;
    }
    assert(l->count < l->capacity);
    l->list[l->count++] = part;
}

static void literal_add(struct part_list *l, struct str text) {
    struct prompt_part *last = l->count > 0 ? &l->list[l->count - 1] : NULL;
    if (text.n > 0 && last != NULL && !last->stored && !last->control) {
        char *p = arena_alloc(l->a, last->text.n + text.n + 1);
        memcpy(p, last->text.p, last->text.n);
        memcpy(p + last->text.n, text.p, text.n);
        last->text = (struct str){p, last->text.n + text.n};
        return;
    }
    parts_add(l, (struct prompt_part){.text = text});
}

static void stored_add(struct part_list *l, struct str stored, size_t from, size_t to) {
    parts_add(l, (struct prompt_part){
                     .text = str_slice(stored, from, to), .stored = true, .from = from, .to = to});
}

// An element's text as parts; what equals the stored filler becomes a range of it.
static void element_add(struct part_list *l, struct str stored, const struct element *x,
                        size_t *filler_bytes) {
    if (x->kind != ELEMENT_UNIT) {
        literal_add(l, x->lead);
        literal_add(l, x->text);
        literal_add(l, x->tail);
        return;
    }
    const struct unit *u = x->unit;
    bool lead = str_equal(x->lead, u->lead), tail = str_equal(x->tail, u->tail);
    size_t from = u->from + (lead ? 0 : u->lead.n), to = u->to - (tail ? 0 : u->tail.n);
    if (!lead) literal_add(l, x->lead);
    stored_add(l, stored, from, to);
    if (!tail) literal_add(l, x->tail);
    if (to > *filler_bytes) *filler_bytes = to;
}

// A part of the frame; one that the filler lent (a turn's text) is a range of the stored filler.
static void frame_add(struct part_list *l, struct str stored, struct prompt_part part,
                      size_t *filler_bytes) {
    const uintptr_t begin = (uintptr_t)stored.p, at = (uintptr_t)part.text.p;
    if (!part.control && stored.n > 0 && at >= begin && at + part.text.n <= begin + stored.n) {
        part.stored = true;
        part.from = at - begin;
        part.to = part.from + part.text.n;
        if (part.to > *filler_bytes) *filler_bytes = part.to;
    }
    parts_add(l, part);
}

// ---- ids ----

static int parts_tokenize(struct provider *p, const struct prompt_part *parts, size_t count,
                          struct arena *a, struct provider_ids *out, struct err *e) {
    struct provider_piece *pieces = arena_array(a, count + 1, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct provider_piece){.text = parts[i].text, .control = parts[i].control};
    *out = (struct provider_ids){0};
    return count > 0 ? p->ops->tokenize(p, pieces, count, a, out, e) : 0;
}

// Of a model whose template is counted around whole conversations alone: both parts as one, with
// the letter and the line breaks behind the slot between them.
static int surroundings_together(struct prompt_builder *b, const struct prompt_part *before,
                                 size_t n, const struct prompt_part *behind, const struct frame *f,
                                 struct surroundings *out, struct err *e) {
    struct provider_ids ids;
    uint32_t between;
    struct prompt_part *all = arena_array(b->scratch, n + f->behind_count + 1, sizeof *all);
    memcpy(all, before, n * sizeof *all);
    struct str *letter = &all[n - 1].text;
    *letter =
        str_from(arena_printf(b->scratch, STR_FMT STR_FMT, STR_ARG(*letter), STR_ARG(out->behind)));
    if (f->behind_count > 0) memcpy(all + n, behind, f->behind_count * sizeof *all);
    TRY(counter_text(b->counter, *letter, &between, e));
    TRY(parts_tokenize(b->p, all, n + f->behind_count, b->scratch, &ids, e));
    out->tokens = (int64_t)ids.count - between;
    return 0;
}

// Tokens of the parts around the slot. Spaces that end the text before it and line breaks that
// begin the text behind it are counted with the slot's own elements.
static int surroundings_measure(struct prompt_builder *b, const struct frame *f,
                                struct surroundings *out, struct err *e) {
    struct provider_ids ids;
    *out = (struct surroundings){.before = STR(""), .behind = STR("")};
    size_t n = f->before_count, m = 0;
    struct prompt_part *before = arena_array(b->scratch, n + 1, sizeof *before);
    struct prompt_part *behind = arena_array(b->scratch, f->behind_count + 1, sizeof *behind);
    if (n > 0) memcpy(before, f->before, n * sizeof *before);
    if (f->behind_count > 0) memcpy(behind, f->behind, f->behind_count * sizeof *behind);
    while (n > 0 && before[n - 1].text.n == 0) n--;
    if (n > 0) {
        struct str *t = &before[n - 1].text;
        size_t end = t->n;
        while (end > 0 && t->p[end - 1] == ' ') end--;
        out->before = str_slice(*t, end, t->n);
        t->n = end;
    }
    while (m < f->behind_count && behind[m].text.n == 0) m++;
    if (m < f->behind_count) {
        struct str *t = &behind[m].text;
        size_t begin = 0;
        while (begin < t->n && (t->p[begin] == '\n' || t->p[begin] == '\r')) begin++;
        out->behind = str_slice(*t, 0, begin);
        *t = str_slice(*t, begin, t->n);
    }
    // Before the slot text goes on: a letter stands for it (see counter_text).
    struct prompt_part letter = {.text = STR("a")};
    before[n++] = letter;
    if (!b->p->can.exact_ids) return surroundings_together(b, before, n, behind, f, out, e);
    TRY(parts_tokenize(b->p, &letter, 1, b->scratch, &ids, e));
    out->tokens = -(int64_t)ids.count;
    TRY(parts_tokenize(b->p, before, n, b->scratch, &ids, e));
    out->tokens += (int64_t)ids.count;
    TRY(parts_tokenize(b->p, behind, f->behind_count, b->scratch, &ids, e));
    out->tokens += (int64_t)ids.count;
    return 0;
}

// The ids' bytes are the prompt's bytes: nothing was lost, added or changed on the way.
static int ids_verify(struct prompt_builder *b, const struct prompt *x, struct err *e) {
    size_t at = 0;
    b->ends = arena_array(b->scratch, x->ids.count + 1, sizeof *b->ends);
    for (size_t i = 0; i < x->ids.count; i++) {
        struct str bytes = b->p->ops->id_bytes(b->p, x->ids.ids[i]);
        if (at + bytes.n > x->text.n || memcmp(x->text.p + at, bytes.p, bytes.n) != 0)
            FAIL(
                e, ERR_CONFIG,
                "token %zu of the prompt stands for other bytes than the text has at byte %zu; the "
                "tokenizer does not give texts back and cannot be used",
                i, at);
        b->ends[i] = at += bytes.n;
    }
    if (at != x->text.n)
        FAIL(e, ERR_CONFIG, "the prompt's tokens end at byte %zu of %zu", at, x->text.n);
    return 0;
}

static int id_compare(const void *x, const void *y) {
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

static bool id_in(const struct provider_ids *sorted, int32_t id) {
    return bsearch(&id, sorted->ids, sorted->count, sizeof id, id_compare) != NULL;
}

static void spelling_find(struct str token, struct prompt *x) {
    for (size_t i = 0; i < x->part_count; i++)
        if (!x->parts[i].control && str_find(x->parts[i].text, token, 0) != STR_NONE)
            x->spelled = token;
}

// Control ids are those that the template's text gives with control tokens on and does not give
// with them off. The prompt must hold just as many as the template alone.
static int control_verify(struct prompt_builder *b, struct prompt *x, struct err *e) {
    struct prompt_part *with = arena_array(b->scratch, x->part_count + 1, sizeof *with);
    struct prompt_part *without = arena_array(b->scratch, x->part_count + 1, sizeof *without);
    size_t count = 0;
    for (size_t i = 0; i < x->part_count; i++) {
        if (!x->parts[i].control) continue;
        with[count] = without[count] = x->parts[i];
        without[count++].control = false;
    }
    struct provider_ids alone, plain;
    TRY(parts_tokenize(b->p, with, count, b->scratch, &alone, e));
    TRY(parts_tokenize(b->p, without, count, b->scratch, &plain, e));
    if (plain.count > 0) qsort(plain.ids, plain.count, sizeof plain.ids[0], id_compare);
    struct provider_ids control = {arena_array(b->scratch, alone.count + 1, sizeof(int32_t)), 0};
    for (size_t i = 0; i < alone.count; i++)
        if (plain.count == 0 || !id_in(&plain, alone.ids[i]))
            control.ids[control.count++] = alone.ids[i];
    if (control.count == 0) return 0;
    size_t expected = control.count, found = 0;
    qsort(control.ids, control.count, sizeof control.ids[0], id_compare);
    for (size_t i = 0; i < x->ids.count; i++) found += id_in(&control, x->ids.ids[i]);
    if (found != expected)
        FAIL(e, ERR_CONFIG,
             "the prompt has %zu control tokens where the chat template alone has %zu; texts must "
             "never become control tokens",
             found, expected);
    for (size_t i = 0; i < control.count; i++)
        if (i == 0 || control.ids[i] != control.ids[i - 1])
            spelling_find(b->p->ops->id_bytes(b->p, control.ids[i]), x);
    return 0;
}

// ---- spans ----

static void span_add(struct prompt *x, const struct prompt_request *r, size_t insert, size_t at,
                     int32_t depth) {
    x->spans[x->span_count++] = (struct prompt_span){
        .insert = insert, .first_byte = at, .bytes = r->inserts[insert].text.n, .depth = depth};
}

// The byte at which a part of the frame begins in the rendered text.
static size_t part_offset(const struct prompt_part *parts, const struct prompt_part *part,
                          size_t base) {
    for (; parts != part; parts++) base += parts->text.n;
    return base;
}

static void spans_place(struct prompt *x, const struct prompt_request *r, const struct frame *f,
                        const struct layout *l, struct arena *a) {
    x->spans = arena_array(a, r->insert_count + 1, sizeof *x->spans);
    size_t slot = part_offset(f->before, f->before + f->before_count, 0), at = slot;
    for (size_t i = 0; i < l->count; i++) {
        const struct element *e = &l->list[i];
        at += e->lead.n;
        if (e->kind == ELEMENT_INSERT) span_add(x, r, e->index, at, e->depth);
        at += e->text.n + e->tail.n;
    }
    for (size_t k = 0; k < f->mark_count; k++) {
        const struct frame_mark *m = &f->marks[k];
        if (m->insert == FRAME_SLOT) continue;
        bool before = m->part >= f->before && m->part < f->before + f->before_count;
        size_t from =
            before ? part_offset(f->before, m->part, 0) : part_offset(f->behind, m->part, at);
        const struct prompt_insert *insert = &r->inserts[m->insert];
        bool turn = insert->anchor == PROMPT_TURN_BEGIN || insert->anchor == PROMPT_TURN_END;
        span_add(x, r, m->insert, from + m->from, turn ? insert->depth : PROMPT_DEPTH_NONE);
    }
}

static int span_compare(const void *x, const void *y) {
    const struct prompt_span *a = x, *b = y;
    return (a->first_byte > b->first_byte) - (a->first_byte < b->first_byte);
}

static bool inside_span(const struct prompt *x, size_t at, size_t n) {
    for (size_t i = 0; i < x->span_count; i++)
        if (at >= x->spans[i].first_byte && at + n <= x->spans[i].first_byte + x->spans[i].bytes)
            return true;
    return false;
}

// Each constraint stands where it was put and nowhere else.
static int spans_verify(const struct prompt *x, const struct prompt_request *r, struct err *e) {
    for (size_t i = 0; i < x->span_count; i++) {
        const struct prompt_span *s = &x->spans[i];
        const struct prompt_insert *insert = &r->inserts[s->insert];
        if (insert->text.n == 0)
            FAIL(e, ERR_CONFIG, "constraint '%s' has an empty text", insert->id);
        if (!str_equal(str_slice(x->text, s->first_byte, s->first_byte + s->bytes), insert->text))
            FAIL(e, ERR_CONFIG, "constraint '%s' cannot be found again in the prompt", insert->id);
        for (size_t at = str_find(x->text, insert->text, 0); at != STR_NONE;
             at = str_find(x->text, insert->text, at + 1))
            if (!inside_span(x, at, insert->text.n))
                FAIL(
                    e, ERR_CONFIG,
                    "the text of constraint '%s' also stands elsewhere in the prompt, at byte %zu; "
                    "messages and filler must not repeat it",
                    insert->id, at);
    }
    return 0;
}

static bool all_space(struct str s) {
    return str_trim(s).n == 0;
}

// Whether the span's tokens, bytes [from, to), hold more of the text around than the white space of
// its joins.
static bool shares_token(const struct prompt *x, const struct prompt_span *s, size_t from,
                         size_t to) {
    return !all_space(str_slice(x->text, from, s->first_byte)) ||
           !all_space(str_slice(x->text, s->first_byte + s->bytes, to));
}

// Byte spans become token spans by the bytes that each id stands for.
static void spans_tokens(struct prompt_builder *b, struct prompt *x) {
    size_t i = 0;
    for (size_t k = 0; k < x->span_count; k++) {
        struct prompt_span *s = &x->spans[k];
        while (i < x->ids.count && b->ends[i] <= s->first_byte) i++;
        s->first_token = (uint32_t)i;
        size_t last = i, begin = i > 0 ? b->ends[i - 1] : 0, end = begin;
        while (last < x->ids.count && end < s->first_byte + s->bytes) end = b->ends[last++];
        s->tokens = (uint32_t)(last - i);
        s->shares = shares_token(x, s, begin, end);
    }
}

static int spans_estimate(struct prompt_builder *b, struct prompt *x, struct err *e) {
    for (size_t k = 0; k < x->span_count; k++) {
        struct prompt_span *s = &x->spans[k];
        size_t end = s->first_byte + s->bytes;
        TRY(counter_text(b->counter, str_slice(x->text, 0, s->first_byte), &s->first_token, e));
        TRY(counter_text(b->counter, str_slice(x->text, s->first_byte, end), &s->tokens, e));
    }
    return 0;
}

// Tokens that begin in text of the template.
static int template_count(struct prompt_builder *b, struct prompt *x, struct err *e) {
    size_t at = 0, part = 0, end = 0;
    x->template_tokens = 0;
    if (x->ids.count == 0) {
        for (size_t i = 0; i < x->part_count; i++) {
            uint32_t n = 0;
            if (x->parts[i].control) TRY(counter_text(b->counter, x->parts[i].text, &n, e));
            x->template_tokens += n;
        }
        return 0;
    }
    for (size_t i = 0; i < x->ids.count; i++) {
        while (part < x->part_count && at >= end) end += x->parts[part++].text.n;
        if (part > 0) x->template_tokens += x->parts[part - 1].control;
        at = b->ends[i];
    }
    return 0;
}

// ---- the whole ----

int prompt_join(struct prompt_builder *b, const struct frame *f, const struct layout *l,
                struct filler *filler, struct prompt *x, struct arena *a, struct err *e) {
    struct part_list parts = {.a = b->scratch};
    parts.capacity = f->before_count + f->behind_count + 3 * l->count + 1;
    parts.list = arena_array(a, parts.capacity, sizeof *parts.list);
    x->filler_bytes = 0;
    const struct str stored = filler_text(filler);
    for (size_t i = 0; i < f->before_count; i++)
        frame_add(&parts, stored, f->before[i], &x->filler_bytes);
    for (size_t i = 0; i < l->count; i++)
        element_add(&parts, stored, &l->list[i], &x->filler_bytes);
    for (size_t i = 0; i < f->behind_count; i++)
        frame_add(&parts, stored, f->behind[i], &x->filler_bytes);
    x->parts = parts.list;
    x->part_count = parts.count;
    size_t n = 0;
    for (size_t i = 0; i < parts.count; i++) n += parts.list[i].text.n;
    char *p = arena_alloc(a, n + 1);
    x->text = (struct str){p, n};
    for (size_t i = 0; i < parts.count; i++) {
        struct str *text = &parts.list[i].text;
        memcpy(p, text->p, text->n);
        text->p = p;
        p += text->n;
    }
    x->filler_tokens = l->filler_tokens;
    x->closing = str_copy(a, l->closing);
    TRY(parts_tokenize(b->p, x->parts, x->part_count, a, &x->ids, e));
    x->tokens = (uint32_t)x->ids.count;
    if (!b->p->can.exact_ids) x->ids = (struct provider_ids){0};
    return 0;
}

static struct str slot_text(const struct prompt *x, const struct frame *f) {
    size_t before = part_offset(f->before, f->before + f->before_count, 0);
    size_t behind = part_offset(f->behind, f->behind + f->behind_count, 0);
    return str_slice(x->text, before, x->text.n - behind);
}

// Lays out and tokenizes until the whole has the length; joins that cost more or less than their
// segments change what the next attempt aims at. Estimates need not meet it: the nearest is taken.
static int length_meet(struct prompt_builder *b, const struct prompt_request *r,
                       const struct frame *f, struct layout *l, struct prompt *x, struct arena *a,
                       struct err *e) {
    struct surroundings s;
    TRY(surroundings_measure(b, f, &s, e));
    struct prompt_request this = *r;
    int64_t want = r->length, off = 0;
    bool exact = b->p->can.exact_ids;
    for (int attempt = 0; attempt < CORRECTIONS_MOST; attempt++) {
        TRY(layout_make(b->counter, &this, &s, want, b->scratch, l, e));
        TRY(prompt_join(b, f, l, units_filler(r->units), x, a, e));
        if (r->length < 0) return 0;
        off = (int64_t)r->length - l->shortfall - x->tokens;
        if (off == 0) return 0;
        want += off;
        rng_u32(&this.closing_rng); // other words, so that attempts do not go in circles
    }
    if (!exact) return 0;
    FAIL(e, ERR_CONFIG,
         "a prompt of exactly %d tokens cannot be built: its joins change the count (last attempt "
         "%+lld); change the length by a few tokens",
         r->length, (long long)-off);
}

// The spans of a conversation belong to the inserts that were given; the closing unit has none.
static void spans_give_back(struct prompt *x, const struct conversation *c, size_t given) {
    size_t n = 0;
    for (size_t i = 0; i < x->span_count; i++) {
        struct prompt_span s = x->spans[i];
        s.insert = c->origin[s.insert];
        if (s.insert < given) x->spans[n++] = s;
    }
    x->span_count = n;
}

int prompt_build(struct prompt_builder *b, const struct prompt_request *r, struct arena *a,
                 struct prompt *out, struct err *e) {
    struct frame f;
    struct layout l = {.closing = STR("")};
    struct conversation c = {.request = *r};
    *out = (struct prompt){0};
    arena_reset(b->scratch);
    if (r->chat != NULL) {
        TRY(prompt_chat_meet(b, r, &c, &f, &l, out, a, e));
    } else {
        TRY(frame_make(b->p, r, b->scratch, &f, e));
        TRY((r->like != NULL ? prompt_like_take : length_meet)(b, r, &f, &l, out, a, e));
    }
    l.filler_tokens = out->filler_tokens;
    if (r->keep_layout) out->layout = layout_keep(&l, a);
    TRY(frame_verify(b->p, &c.request, &f, slot_text(out, &f), out->parts, out->part_count,
                     b->scratch, out->text_sha256, e));
    spans_place(out, &c.request, &f, &l, a);
    if (r->chat != NULL) spans_give_back(out, &c, r->insert_count);
    if (out->span_count > 0) qsort(out->spans, out->span_count, sizeof out->spans[0], span_compare);
    TRY(spans_verify(out, r, e));
    if (b->p->can.exact_ids) TRY(ids_verify(b, out, e));
    TRY(template_count(b, out, e));
    if (!b->p->can.exact_ids) return spans_estimate(b, out, e);
    TRY(control_verify(b, out, e));
    spans_tokens(b, out);
    if (r->like != NULL && r->chat == NULL) prompt_like_depths(b, &f, &l, out);
    return 0;
}
