#include "engine/provider_fixture_rules.h"

#include <stdlib.h>
#include <string.h>

#define HASHED_FIRST (1u << 26) // ids below are the bytes themselves, up to three

struct entry {
    struct str bytes; // p == NULL: free
    int32_t id;
};
struct fixture_words {
    struct arena *arena;
    struct entry *entries; // open addressing by id
    size_t capacity, used;
};

static struct entry *entries_create(size_t capacity) {
    struct entry *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) mem_exhausted("the fixture's words", capacity * sizeof *entries);
    return entries;
}

struct fixture_words *fixture_words_open(void) {
    struct fixture_words *w = malloc(sizeof *w);
    if (w == NULL) mem_exhausted("the fixture's words", sizeof *w);
    *w = (struct fixture_words){arena_create("words"), entries_create(1024), 1024, 0};
    return w;
}

void fixture_words_close(struct fixture_words *w) {
    if (w == NULL) return;
    free(w->entries);
    arena_destroy(w->arena);
    free(w);
}

static struct entry *find(const struct fixture_words *w, int32_t id) {
    size_t at = (uint32_t)id * 2654435769u & (w->capacity - 1);
    while (w->entries[at].bytes.p != NULL && w->entries[at].id != id)
        at = (at + 1) & (w->capacity - 1);
    return &w->entries[at];
}

struct str fixture_words_bytes(const struct fixture_words *w, int32_t id) {
    if (id == FIXTURE_ID_START) return STR("<|im_start|>");
    if (id == FIXTURE_ID_END) return STR("<|im_end|>");
    const struct entry *entry = find(w, id);
    return entry->bytes.p == NULL ? STR("") : entry->bytes;
}

static void grow(struct fixture_words *w) {
    struct fixture_words larger = *w;
    larger.capacity *= 2;
    larger.entries = entries_create(larger.capacity);
    for (size_t i = 0; i < w->capacity; i++)
        if (w->entries[i].bytes.p != NULL) *find(&larger, w->entries[i].id) = w->entries[i];
    free(w->entries);
    *w = larger;
}

static int32_t word_id(struct str word) {
    const unsigned char *p = (const unsigned char *)word.p;
    if (word.n <= 3) {
        uint32_t id = (uint32_t)word.n << 24;
        for (size_t i = 0; i < word.n; i++) id |= (uint32_t)p[i] << 8 * i;
        return (int32_t)id;
    }
    uint64_t h = 14695981039346656037u; // FNV-1a, 64 bits
    for (size_t i = 0; i < word.n; i++) h = (h ^ p[i]) * 1099511628211u;
    return (int32_t)(HASHED_FIRST + (h ^ h >> 32) % (INT32_MAX - HASHED_FIRST));
}

static int intern(struct fixture_words *w, struct str word, int32_t *id, struct err *e) {
    *id = word_id(word);
    struct entry *entry = find(w, *id);
    if (entry->bytes.p == NULL) {
        *entry = (struct entry){str_copy(w->arena, word), *id};
        if (++w->used * 2 > w->capacity) grow(w);
    } else if (!str_equal(entry->bytes, word)) {
        FAIL(e, ERR_PROVIDER, "the fixture's words '" STR_FMT "' and '" STR_FMT "' share an id",
             STR_ARG(entry->bytes), STR_ARG(word));
    }
    return 0;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Length of the token at text[at]: a word or a sign with the space before it, else one character.
static size_t token_length(struct str text, size_t at) {
    size_t end = at;
    if (text.p[at] == ' ' && at + 1 < text.n && text.p[at + 1] > ' ') end++;
    if (is_word(text.p[end])) {
        while (end < text.n && is_word(text.p[end])) end++;
        return end - at;
    }
    uint32_t code_point;
    return end - at + utf8_decode(text, end, &code_point);
}

static void add_id(struct provider_ids *l, struct arena *a, int32_t id) {
    l->ids = arena_more(a, l->ids, l->count, sizeof *l->ids);
    l->ids[l->count++] = id;
}

static int add_words(struct fixture_words *w, struct buf *run, struct arena *a,
                     struct provider_ids *l, struct err *e) {
    struct str text = buf_str(run);
    for (size_t at = 0; at < text.n;) {
        size_t n = token_length(text, at);
        int32_t id;
        TRY(intern(w, str_slice(text, at, at + n), &id, e));
        add_id(l, a, id);
        at += n;
    }
    buf_clear(run);
    return 0;
}

static int add_control(struct fixture_words *w, struct str text, struct buf *run, struct arena *a,
                       struct provider_ids *l, struct err *e) {
    for (size_t at = 0; at < text.n;) {
        struct str rest = str_slice(text, at, text.n);
        int32_t id = str_starts(rest, STR("<|im_start|>")) ? FIXTURE_ID_START
                     : str_starts(rest, STR("<|im_end|>")) ? FIXTURE_ID_END
                                                           : 0;
        if (id == 0) {
            buf_add_char(run, text.p[at++]);
            continue;
        }
        TRY(add_words(w, run, a, l, e));
        add_id(l, a, id);
        at += fixture_words_bytes(w, id).n;
    }
    return 0;
}

int fixture_words_tokenize(struct fixture_words *w, const struct provider_piece *pieces,
                           size_t count, struct arena *a, struct provider_ids *out, struct err *e) {
    struct buf run = {0};
    struct provider_ids list = {0};
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        if (pieces[i].control)
            result = add_control(w, pieces[i].text, &run, a, &list, e);
        else
            buf_add_str(&run, pieces[i].text);
    }
    if (result == 0) result = add_words(w, &run, a, &list, e);
    buf_free(&run);
    *out = list;
    return result;
}
