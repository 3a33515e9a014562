#include "prompts/frame.h"

#include <assert.h>
#include <string.h>

static struct str joined(struct arena *a, struct str x, struct str y, struct str z) {
    struct buf b = {0};
    buf_add_str(&b, x);
    buf_add_str(&b, y);
    buf_add_str(&b, z);
    struct str s = str_copy(a, buf_str(&b));
    buf_free(&b);
    return s;
}

// ---- messages ----

// A marker from the private use area that no message and no constraint holds.
static struct str marker_make(const struct prompt_request *r, const char *name, struct arena *a) {
    for (int i = 0;; i++) {
        struct str marker = str_from(arena_printf(a, "\xEE\x80\x80%s %d\xEE\x80\x81", name, i));
        bool used = false;
        for (size_t m = 0; m < r->message_count; m++)
            used = used || str_find(r->messages[m].text, marker, 0) != STR_NONE;
        for (size_t m = 0; m < r->insert_count; m++)
            used = used || str_find(r->inserts[m].text, marker, 0) != STR_NONE;
        if (!used) return marker;
    }
}

static int slot_message(const struct prompt_request *r, size_t *message, size_t *at,
                        struct err *e) {
    size_t slots = 0;
    for (size_t m = 0; m < r->message_count; m++) {
        slots += str_count(r->messages[m].text, STR(PROMPT_SLOT));
        size_t found = str_find(r->messages[m].text, STR(PROMPT_SLOT), 0);
        if (found == STR_NONE) continue;
        *message = m;
        *at = found;
    }
    if (slots != 1)
        FAIL(e, ERR_CONFIG, "prompt.messages hold " PROMPT_SLOT " %zu times; exactly one is needed",
             slots);
    return 0;
}

static size_t system_message(const struct prompt_request *r) {
    size_t m = 0;
    while (m < r->message_count && !str_equal_c(r->messages[m].role, "system")) m++;
    return m;
}

// The messages with `slot` in place of {{filler}} and `system` behind the first system message.
static int messages_fill(const struct prompt_request *r, struct str slot, struct str system,
                         struct arena *a, struct provider_message **out, struct err *e) {
    size_t message = 0, at = 0;
    TRY(slot_message(r, &message, &at, e));
    struct provider_message *list = arena_array(a, r->message_count, sizeof *list);
    memcpy(list, r->messages, r->message_count * sizeof *list);
    struct str text = list[message].text;
    list[message].text =
        joined(a, str_slice(text, 0, at), slot, str_slice(text, at + strlen(PROMPT_SLOT), text.n));
    if (system.n > 0) {
        struct provider_message *first = &list[system_message(r)];
        first->text = joined(a, first->text, system, STR(""));
    }
    *out = list;
    return 0;
}

// ---- in_system constraints ----

static int system_collect(const struct prompt_request *r, struct arena *a, struct frame *f,
                          struct err *e) {
    f->system_texts = arena_array(a, r->insert_count + 1, sizeof *f->system_texts);
    f->system_leads = arena_array(a, r->insert_count + 1, sizeof *f->system_leads);
    size_t message = system_message(r);
    for (size_t i = 0; i < r->insert_count; i++) {
        if (r->inserts[i].anchor != PROMPT_IN_SYSTEM) continue;
        if (message == r->message_count)
            FAIL(e, ERR_CONFIG,
                 "constraint '%s' is placed in_system, but prompt.messages have no system message; "
                 "add one or choose another place",
                 r->inserts[i].id);
        struct str text = r->messages[message].text;
        bool open = f->system_count == 0 && (text.n == 0 || text.p[text.n - 1] == '\n');
        f->system_leads[f->system_count] = r->spaced && !open ? STR(" ") : STR("");
        f->system_texts[f->system_count++] = r->inserts[i].text;
    }
    return 0;
}

static struct str system_block(const struct frame *f, struct arena *a) {
    struct buf b = {0};
    for (size_t i = 0; i < f->system_count; i++) {
        buf_add_str(&b, f->system_leads[i]);
        buf_add_str(&b, f->system_texts[i]);
    }
    struct str s = str_copy(a, buf_str(&b));
    buf_free(&b);
    return s;
}

// ---- frame ----

static int fail_template(struct err *e) {
    FAIL(e, ERR_CONFIG,
         "the chat template does not carry a message's text through unchanged, so a constraint "
         "could "
         "not be found again; choose another models[].template");
}

static struct prompt_part *part_add(struct prompt_part *list, size_t *count, bool control,
                                    struct str text) {
    list[*count] = (struct prompt_part){.control = control, .text = text};
    return &list[(*count)++];
}

// Splits the rendered pieces at the slot's marker and puts the in_system texts in.
static int frame_split(const struct provider_piece *pieces, size_t count, struct str slot,
                       struct str system, struct arena *a, struct frame *f, struct err *e) {
    f->before = arena_array(a, count + 1, sizeof *f->before);
    f->behind = arena_array(a, count + 1, sizeof *f->behind);
    bool seen = false;
    for (size_t i = 0; i < count; i++) {
        struct str text = pieces[i].text;
        size_t at = str_find(text, slot, 0);
        bool holds = at != STR_NONE;
        if (holds && (seen || pieces[i].control)) return fail_template(e);
        struct str halves[2] = {holds ? str_slice(text, 0, at) : text,
                                holds ? str_slice(text, at + slot.n, text.n) : STR("")};
        for (int half = 0; half < 1 + holds; half++) {
            struct str s = halves[half];
            bool behind = seen || half == 1;
            size_t where = system.n > 0 ? str_find(s, system, 0) : STR_NONE;
            if (where != STR_NONE)
                s = joined(a, str_slice(s, 0, where), system_block(f, a),
                           str_slice(s, where + system.n, s.n));
            struct prompt_part *part =
                part_add(behind ? f->behind : f->before,
                         behind ? &f->behind_count : &f->before_count, pieces[i].control, s);
            if (where == STR_NONE) continue;
            if (f->system_part != NULL || pieces[i].control) return fail_template(e);
            f->system_part = part;
            f->system_from = where;
        }
        seen = seen || holds;
    }
    if (!seen || (system.n > 0 && f->system_part == NULL)) return fail_template(e);
    return 0;
}

int frame_make(struct provider *p, const struct prompt_request *r, struct arena *a,
               struct frame *out, struct err *e) {
    *out = (struct frame){0};
    TRY(system_collect(r, a, out, e));
    struct str slot = marker_make(r, "filler", a);
    struct str system = out->system_count > 0 ? marker_make(r, "system", a) : STR("");
    struct provider_message *messages;
    TRY(messages_fill(r, slot, system, a, &messages, e));
    struct provider_piece *pieces;
    size_t count;
    TRY(p->ops->render(p, messages, r->message_count, a, &pieces, &count, e));
    return frame_split(pieces, count, slot, system, a, out, e);
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

int frame_verify(struct provider *p, const struct prompt_request *r, const struct frame *f,
                 struct str filler, const struct prompt_part *parts, size_t count,
                 struct arena *scratch, struct err *e) {
    struct provider_message *messages;
    struct provider_piece *pieces;
    size_t piece_count;
    TRY(messages_fill(r, filler, system_block(f, scratch), scratch, &messages, e));
    TRY(p->ops->render(p, messages, r->message_count, scratch, &pieces, &piece_count, e));
    if (!pieces_equal(parts, count, pieces, piece_count)) return fail_template(e);
    return 0;
}
