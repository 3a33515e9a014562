#include "prompts/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- where the marks stand ----

// The first message of a role, or the last one; message_count without any.
static size_t message_of(const struct prompt_request *r, const char *role, bool last) {
    size_t found = r->message_count;
    for (size_t m = 0; m < r->message_count; m++)
        if (str_equal_c(r->messages[m].role, role) && (last || found == r->message_count))
            found = m;
    return found;
}

static int slot_mark(const struct prompt_request *r, struct frame *f, struct err *e) {
    struct frame_mark *out = &f->marks[f->mark_count++];
    size_t slots = 0;
    for (size_t m = 0; m < r->message_count; m++) {
        slots += str_count(r->messages[m].text, STR(PROMPT_SLOT));
        size_t found = str_find(r->messages[m].text, STR(PROMPT_SLOT), 0);
        if (found != STR_NONE)
            *out = (struct frame_mark){.insert = FRAME_SLOT,
                                       .message = m,
                                       .at = found,
                                       .end = found + strlen(PROMPT_SLOT),
                                       .rank = 2};
    }
    if (slots != 1)
        FAIL(e, ERR_CONFIG, "prompt.messages hold " PROMPT_SLOT " %zu times; exactly one is needed",
             slots);
    return 0;
}

static int insert_mark(const struct prompt_request *r, size_t insert, struct frame_mark *out,
                       struct err *e) {
    const struct prompt_insert *x = &r->inserts[insert];
    *out = (struct frame_mark){.insert = insert, .message = x->message, .at = x->at, .rank = 1};
    if (x->anchor == PROMPT_TURN_BEGIN || x->anchor == PROMPT_TURN_END) {
        out->at = x->anchor == PROMPT_TURN_BEGIN ? 0 : r->messages[x->message].text.n;
        out->rank = x->anchor == PROMPT_TURN_BEGIN ? 0 : 3;
    } else if (x->anchor != PROMPT_IN_PLACE) {
        bool system = x->anchor == PROMPT_IN_SYSTEM, first = x->anchor == PROMPT_FIRST_USER;
        const char *role = system ? "system" : "user";
        out->message = message_of(r, role, x->anchor == PROMPT_LAST_USER);
        if (out->message == r->message_count)
            FAIL(e, ERR_CONFIG,
                 "constraint '%s' is placed %s, but prompt.messages have no %s message; add one or "
                 "choose another place",
                 x->id,
                 system  ? "in_system"
                 : first ? "first_user"
                         : "last_user",
                 role);
        out->at = first ? 0 : r->messages[out->message].text.n;
        out->rank = first ? 0 : 3;
    }
    out->end = out->at;
    if (x->anchor == PROMPT_IN_PLACE) out->end += x->text.n;
    assert(out->end <= r->messages[out->message].text.n);
    return 0;
}

static int mark_compare(const void *x, const void *y) {
    const struct frame_mark *a = x, *b = y;
    if (a->message != b->message) return a->message < b->message ? -1 : 1;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->insert < b->insert ? -1 : 1;
}

// ---- joins ----

// Line breaks that a text begins or ends with, two at the most.
static int breaks_at_edge(struct str s, bool end) {
    int breaks = 0;
    for (size_t i = 0; i < s.n && breaks < 2; i++) {
        char c = end ? s.p[s.n - 1 - i] : s.p[i];
        if (c == '\n')
            breaks++;
        else if (c != '\r')
            break;
    }
    return breaks;
}

static struct str breaks_missing(int breaks) {
    return breaks == 0 ? STR("\n\n") : breaks == 1 ? STR("\n") : STR("");
}

// The text right before (behind) a mark in its message: a neighbouring mark's, or the message's.
static struct str beside(const struct prompt_request *r, const struct frame *f, size_t k,
                         bool behind) {
    const struct frame_mark *x = &f->marks[k], *y = behind ? x + 1 : x - 1;
    bool any = behind ? k + 1 < f->mark_count : k > 0;
    struct str text = r->messages[x->message].text;
    if (any && y->message == x->message && (behind ? y->at == x->end : y->end == x->at))
        return y->insert == FRAME_SLOT ? STR(PROMPT_SLOT) : r->inserts[y->insert].text;
    return behind ? str_slice(text, x->end, text.n) : str_slice(text, 0, x->at);
}

// Whether mark k and the one before it are constraints at the same anchor.
static bool same_block(const struct prompt_request *r, const struct frame *f, size_t k) {
    const struct frame_mark *x = &f->marks[k], *y = x - 1;
    return k > 0 && x->insert != FRAME_SLOT && y->insert != FRAME_SLOT &&
           y->message == x->message && r->inserts[y->insert].anchor == r->inserts[x->insert].anchor;
}

// What stands in_system goes on behind the message's text; at the beginning or end of a turn it is
// a paragraph of its own; in_place needs nothing. Constraints at one anchor follow each other as
// sentences.
static void marks_join(const struct prompt_request *r, struct frame *f) {
    for (size_t k = 0; k < f->mark_count; k++) {
        struct frame_mark *x = &f->marks[k];
        x->lead = x->tail = STR("");
        if (x->insert == FRAME_SLOT || r->inserts[x->insert].anchor == PROMPT_IN_PLACE) continue;
        enum prompt_anchor anchor = r->inserts[x->insert].anchor;
        struct str before = beside(r, f, k, false), behind = beside(r, f, k, true);
        struct str space =
            r->spaced && before.n > 0 && breaks_at_edge(before, true) == 0 ? STR(" ") : STR("");
        if (anchor == PROMPT_IN_SYSTEM || same_block(r, f, k))
            x->lead = space;
        else if ((anchor == PROMPT_LAST_USER || anchor == PROMPT_TURN_END) && before.n > 0)
            x->lead = breaks_missing(breaks_at_edge(before, true));
        bool last = k + 1 == f->mark_count || !same_block(r, f, k + 1);
        bool begins = anchor == PROMPT_FIRST_USER || anchor == PROMPT_TURN_BEGIN;
        if (begins && last && behind.n > 0) x->tail = breaks_missing(breaks_at_edge(behind, false));
    }
}

// ---- messages ----

// A marker from the private use area that no message and no constraint holds.
static struct str marker_make(const struct prompt_request *r, size_t number, struct arena *a) {
    for (int i = 0;; i++) {
        struct str marker =
            str_from(arena_printf(a, "\xEE\x80\x80mark %zu %d\xEE\x80\x81", number, i));
        bool used = false;
        for (size_t m = 0; m < r->message_count; m++)
            used = used || str_find(r->messages[m].text, marker, 0) != STR_NONE;
        for (size_t m = 0; m < r->insert_count; m++)
            used = used || str_find(r->inserts[m].text, marker, 0) != STR_NONE;
        if (!used) return marker;
    }
}

static int marks_make(const struct prompt_request *r, struct arena *a, struct frame *f,
                      struct err *e) {
    f->marks = arena_array(a, r->insert_count + 1, sizeof *f->marks);
    if (!r->whole) TRY(slot_mark(r, f, e));
    for (size_t i = 0; i < r->insert_count; i++)
        if (prompt_in_message(r->inserts[i].anchor))
            TRY(insert_mark(r, i, &f->marks[f->mark_count++], e));
    qsort(f->marks, f->mark_count, sizeof *f->marks, mark_compare);
    for (size_t k = 0; k < f->mark_count; k++) f->marks[k].marker = marker_make(r, k, a);
    marks_join(r, f);
    return 0;
}

// The messages with all marks filled: markers, or (filler != NULL) what they stand for.
static struct provider_message *messages_fill(const struct prompt_request *r, const struct frame *f,
                                              const struct str *filler, struct arena *a) {
    struct provider_message *list = arena_array(a, r->message_count, sizeof *list);
    struct buf b = {0};
    for (size_t m = 0, k = 0; m < r->message_count; m++) {
        struct str text = r->messages[m].text;
        size_t at = 0;
        list[m] = r->messages[m];
        buf_clear(&b);
        for (; k < f->mark_count && f->marks[k].message == m; k++) {
            const struct frame_mark *x = &f->marks[k];
            buf_add_str(&b, str_slice(text, at, x->at));
            buf_add_str(&b, x->lead);
            buf_add_str(&b, filler == NULL            ? x->marker
                            : x->insert == FRAME_SLOT ? *filler
                                                      : r->inserts[x->insert].text);
            buf_add_str(&b, x->tail);
            at = x->end;
        }
        if (at == 0 && b.n == 0) continue;
        buf_add_str(&b, str_slice(text, at, text.n));
        list[m].text = str_copy(a, buf_str(&b));
    }
    buf_free(&b);
    return list;
}

// ---- frame ----

static int fail_template(struct err *e) {
    FAIL(e, ERR_CONFIG,
         "the chat template does not carry a message's text through unchanged, so a constraint "
         "could not be found again; choose another models[].template");
}

// Ends the part under construction; marks point at where it will stand. A piece that is taken
// whole is borrowed.
static void part_end(struct frame *f, bool behind, bool control, struct str text) {
    struct prompt_part *list = behind ? f->behind : f->before;
    size_t *count = behind ? &f->behind_count : &f->before_count;
    list[(*count)++] = (struct prompt_part){.control = control, .text = text};
}

static struct str take(struct buf *b, struct arena *a) {
    struct str s = str_copy(a, buf_str(b));
    buf_clear(b);
    return s;
}

// Splits the rendered pieces at the slot's marker and puts the constraints in.
static int frame_split(const struct prompt_request *r, const struct provider_piece *pieces,
                       size_t count, struct arena *a, struct frame *f, struct buf *part,
                       struct err *e) {
    f->before = arena_array(a, count + 1, sizeof *f->before);
    f->behind = arena_array(a, count + 1, sizeof *f->behind);
    size_t next = 0;
    bool behind = false;
    for (size_t i = 0; i < count; i++) {
        struct str text = pieces[i].text;
        size_t at = 0, found;
        for (; next < f->mark_count; next++) {
            struct frame_mark *x = &f->marks[next];
            if ((found = str_find(text, x->marker, at)) == STR_NONE) break;
            if (pieces[i].control) return fail_template(e);
            buf_add_str(part, str_slice(text, at, found));
            at = found + x->marker.n;
            if (x->insert == FRAME_SLOT) {
                part_end(f, false, false, take(part, a));
                behind = true;
            } else {
                x->part = behind ? &f->behind[f->behind_count] : &f->before[f->before_count];
                x->from = part->n;
                buf_add_str(part, r->inserts[x->insert].text);
            }
        }
        if (at > 0) {
            buf_add_str(part, str_slice(text, at, text.n));
            text = take(part, a);
        }
        part_end(f, behind, pieces[i].control, text);
    }
    return next == f->mark_count ? 0 : fail_template(e);
}

int frame_make(struct provider *p, const struct prompt_request *r, struct arena *a,
               struct frame *out, struct err *e) {
    *out = (struct frame){0};
    TRY(marks_make(r, a, out, e));
    const struct provider_message *messages = messages_fill(r, out, NULL, a);
    struct provider_piece *pieces;
    size_t count;
    TRY(p->ops->render(p, messages, r->message_count, a, &pieces, &count, e));
    struct buf part = {0};
    int result = frame_split(r, pieces, count, a, out, &part, e);
    buf_free(&part);
    return result;
}

// Equal bytes with equal control flags, however the two are cut into pieces.
static bool pieces_equal(const struct prompt_part *x, size_t x_count,
                         const struct provider_piece *y, size_t y_count) {
    size_t i = 0, j = 0, at = 0, bt = 0;
    for (;;) {
        while (i < x_count && at == x[i].text.n) i++, at = 0;
        while (j < y_count && bt == y[j].text.n) j++, bt = 0;
        if (i == x_count || j == y_count) return i == x_count && j == y_count;
        size_t n = x[i].text.n - at < y[j].text.n - bt ? x[i].text.n - at : y[j].text.n - bt;
        if (x[i].control != y[j].control || memcmp(x[i].text.p + at, y[j].text.p + bt, n) != 0)
            return false;
        at += n;
        bt += n;
    }
}

static void hash_text(struct hash *h, struct str text) {
    hash_add(h, text.p, text.n);
    hash_add(h, "", 1);
}

static void messages_hash(const struct provider_message *messages, size_t count,
                          char hex[HASH_HEX_SIZE]) {
    struct hash *h = hash_open();
    for (size_t i = 0; i < count; i++) {
        const struct provider_message *m = &messages[i];
        hash_text(h, m->role);
        hash_text(h, m->text);
        for (size_t k = 0; k < m->call_count; k++) {
            hash_text(h, m->calls[k].name);
            hash_text(h, m->calls[k].arguments);
        }
    }
    hash_close(h, hex);
}

int frame_verify(struct provider *p, const struct prompt_request *r, const struct frame *f,
                 struct str filler, const struct prompt_part *parts, size_t count,
                 struct arena *scratch, char text_sha256[HASH_HEX_SIZE], struct err *e) {
    const struct provider_message *messages = messages_fill(r, f, &filler, scratch);
    messages_hash(messages, r->message_count, text_sha256);
    struct provider_piece *pieces;
    size_t piece_count;
    TRY(p->ops->render(p, messages, r->message_count, scratch, &pieces, &piece_count, e));
    if (!pieces_equal(parts, count, pieces, piece_count)) return fail_template(e);
    return 0;
}
