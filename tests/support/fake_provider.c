#include "tests/support/fake_provider.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE (1u << 20)

static const char *const control_text[] = {"", "<|im_start|>", "<|im_end|>", "<s>", "</s>"};
#define CONTROL_COUNT 5

struct fake {
    struct provider provider; // first, so that a provider is a fake
    struct fake_options options;
    struct arena *arena;
    struct {
        int32_t id;
        struct str bytes;
    } * table; // open addressing by id
};

static int32_t id_of(struct fake *f, const char *p, size_t n) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)p[i]) * 16777619u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 13;
    int32_t id = (int32_t)(h & 0x3FFFFFFF) + 16;
    size_t at = (uint32_t)id % TABLE_SIZE;
    while (f->table[at].id != 0 && f->table[at].id != id) at = (at + 1) % TABLE_SIZE;
    struct str bytes = {p, n};
    if (f->table[at].id == 0) {
        f->table[at].id = id;
        f->table[at].bytes = str_copy(f->arena, bytes);
    }
    assert(str_equal(f->table[at].bytes, bytes)); // two texts with one hash
    return id;
}

enum sort { SORT_SPACE, SORT_LETTER, SORT_DIGIT, SORT_MARK };
static enum sort sort_at(struct str s, size_t at, size_t *bytes) {
    uint32_t c;
    *bytes = utf8_decode(s, at, &c);
    if (c < 0x80) {
        if (isspace((int)c)) return SORT_SPACE;
        if (isdigit((int)c)) return SORT_DIGIT;
        return isalpha((int)c) ? SORT_LETTER : SORT_MARK;
    }
    bool mark = (c >= 0x2000 && c < 0x2070) || (c >= 0x3000 && c < 0x3020) || c >= 0xFF00 ||
                c == 0x964 || c == 0x61F || c == 0xAB || c == 0xBB;
    return mark ? SORT_MARK : SORT_LETTER;
}

static size_t run_end(struct str s, size_t at, enum sort sort) {
    size_t n;
    while (at < s.n && sort_at(s, at, &n) == sort) at += n;
    return at;
}

// The end of the pre-token that begins at `at`.
static size_t piece_end(const struct fake *f, struct str s, size_t at) {
    size_t n;
    enum sort sort = sort_at(s, at, &n);
    if (sort == SORT_SPACE) {
        size_t end = run_end(s, at, SORT_SPACE);
        bool joins = s.p[at] == ' ' && at + 1 < s.n && sort_at(s, at + 1, &n) != SORT_SPACE;
        if (!joins) return end < s.n && end - at > 1 ? end - 1 : end;
        at++;
        sort = sort_at(s, at, &n);
    }
    size_t end = run_end(s, at, sort);
    if (sort == SORT_MARK && f->options.marks_breaks)
        while (end < s.n && s.p[end] == '\n') end++;
    return end;
}

struct id_list {
    int32_t *ids;
    size_t count, capacity;
    struct arena *a;
};

static void ids_add(struct id_list *l, int32_t id) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? 2 * l->capacity : 256;
        int32_t *ids = arena_array(l->a, l->capacity, sizeof *ids);
        if (l->count > 0) memcpy(ids, l->ids, l->count * sizeof *ids);
        l->ids = ids;
    }
    l->ids[l->count++] = id;
}

static void text_tokenize(struct fake *f, struct str s, struct id_list *out) {
    size_t most = f->options.token_bytes > 0 ? f->options.token_bytes : 7;
    for (size_t at = 0; at < s.n;) {
        size_t end = piece_end(f, s, at);
        for (; at < end; at += end - at < most ? end - at : most)
            ids_add(out, id_of(f, s.p + at, end - at < most ? end - at : most));
    }
}

static int fake_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                         struct arena *a, struct provider_ids *out, struct err *e) {
    (void)e;
    struct fake *f = (struct fake *)p;
    struct id_list list = {.a = a};
    struct buf run = {0};
    bool leaks = false;
    for (size_t i = 0; i < count; i++) leaks = leaks || (pieces[i].control && f->options.leaks);
    for (size_t i = 0; i < count; i++) {
        struct str s = pieces[i].text;
        for (size_t at = 0; at < s.n;) {
            int control = 0;
            for (int c = 1; c < CONTROL_COUNT && (pieces[i].control || leaks); c++)
                if (str_starts(str_slice(s, at, s.n), str_from(control_text[c]))) control = c;
            if (control == 0) {
                buf_add_char(&run, s.p[at++]);
                continue;
            }
            text_tokenize(f, buf_str(&run), &list);
            buf_clear(&run);
            ids_add(&list, control);
            at += strlen(control_text[control]);
        }
    }
    size_t bytes = 0;
    text_tokenize(f, buf_str(&run), &list);
    buf_free(&run);
    *out = (struct provider_ids){list.ids, list.count};
    if (f->options.estimates) {
        for (size_t i = 0; i < count; i++) bytes += pieces[i].text.n;
        *out = (struct provider_ids){NULL, (bytes + 3) / 4};
    }
    return 0;
}

static struct str fake_bytes(struct provider *p, int32_t id) {
    struct fake *f = (struct fake *)p;
    if (id < CONTROL_COUNT) return str_from(control_text[id]);
    size_t at = (uint32_t)id % TABLE_SIZE;
    while (f->table[at].id != 0 && f->table[at].id != id) at = (at + 1) % TABLE_SIZE;
    struct str bytes = f->table[at].bytes;
    return f->options.loses && bytes.n > 5 ? str_slice(bytes, 0, 5) : bytes;
}

static struct str shout(struct arena *a, struct str s) {
    char *p = arena_memdup(a, s.p, s.n);
    for (size_t i = 0; i < s.n; i++) p[i] = (char)toupper((unsigned char)p[i]);
    return (struct str){p, s.n};
}

static int fake_render(struct provider *p, const struct provider_message *messages, size_t count,
                       struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                       struct err *e) {
    (void)e;
    struct fake *f = (struct fake *)p;
    struct provider_piece *list = arena_array(a, 3 * count + 2, sizeof *list);
    size_t n = 0;
    if (f->options.start) list[n++] = (struct provider_piece){STR("<s>"), true};
    for (size_t i = 0; i < count; i++) {
        struct str text = messages[i].text;
        if (f->options.trims) text = str_trim(text);
        if (f->options.shouts) text = shout(a, text);
        char *head = arena_printf(a, "<|im_start|>" STR_FMT "\n", STR_ARG(messages[i].role));
        list[n++] = (struct provider_piece){str_from(head), true};
        list[n++] = (struct provider_piece){text, false};
        list[n++] = (struct provider_piece){STR("<|im_end|>\n"), true};
    }
    list[n++] = (struct provider_piece){STR("<|im_start|>assistant\n"), true};
    *pieces = list;
    *piece_count = n;
    return 0;
}

static int fake_submit(struct provider *p, const struct provider_request *request, bool *accepted,
                       struct err *e) {
    (void)p;
    (void)request;
    *accepted = false;
    FAIL(e, ERR_PROVIDER, "the fake provider has no model");
}

static int fake_next(struct provider *p, struct arena *a, struct provider_completion *out,
                     bool *any, struct err *e) {
    (void)p;
    (void)a;
    (void)out;
    (void)e;
    *any = false;
    return 0;
}

static void fake_cancel(struct provider *p) {
    (void)p;
}

void fake_provider_close(struct provider *p) {
    if (p == NULL) return;
    struct fake *f = (struct fake *)p;
    json_decref(p->what.identity);
    json_decref(p->what.manifest);
    arena_destroy(f->arena);
    free(f->table);
    free(f);
}

struct provider *fake_provider_open(const struct fake_options *options) {
    static const struct provider_ops ops = {.kind = "fake",
                                            .render = fake_render,
                                            .tokenize = fake_tokenize,
                                            .id_bytes = fake_bytes,
                                            .submit = fake_submit,
                                            .next = fake_next,
                                            .cancel = fake_cancel,
                                            .close = fake_provider_close};
    struct fake *f = calloc(1, sizeof *f);
    assert(f != NULL);
    f->options = *options;
    f->arena = arena_create("fake");
    f->table = calloc(TABLE_SIZE, sizeof f->table[0]);
    assert(f->table != NULL);
    f->provider.ops = &ops;
    f->provider.can = (struct provider_capabilities){.exact_ids = !options->estimates,
                                                     .deterministic = true,
                                                     .in_flight = 1,
                                                     .context_tokens = options->context_tokens};
    f->provider.what = (struct provider_identity){.identity = json_object(),
                                                  .manifest = json_object(),
                                                  .numerics = "none",
                                                  .backend = "fake"};
    return &f->provider;
}
