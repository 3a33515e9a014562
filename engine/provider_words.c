#include "engine/provider_words.h"

#include "engine/base/hash.h"
#include "engine/continuation.h"

#include <stdlib.h>
#include <string.h>

#define HASHED_FIRST (1u << 26) // ids below are the bytes themselves, up to three

struct entry {
    struct str bytes; // p == NULL: free
    int32_t id;
};
struct words {
    struct arena *arena;
    struct entry *entries; // open addressing by id
    size_t capacity, used;
};

static struct entry *entries_create(size_t capacity) {
    struct entry *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) mem_exhausted("the words", capacity * sizeof *entries);
    return entries;
}

struct words *words_open(void) {
    struct words *w = malloc(sizeof *w);
    if (w == NULL) mem_exhausted("the words", sizeof *w);
    *w = (struct words){arena_create("words"), entries_create(1024), 1024, 0};
    return w;
}

void words_close(struct words *w) {
    if (w == NULL) return;
    free(w->entries);
    arena_destroy(w->arena);
    free(w);
}

static struct entry *find(const struct words *w, int32_t id) {
    size_t at = (uint32_t)id * 2654435769u & (w->capacity - 1);
    while (w->entries[at].bytes.p != NULL && w->entries[at].id != id)
        at = (at + 1) & (w->capacity - 1);
    return &w->entries[at];
}

struct str words_bytes(const struct words *w, int32_t id) {
    if (id == WORDS_ID_START) return STR("<|im_start|>");
    if (id == WORDS_ID_END) return STR("<|im_end|>");
    const struct entry *entry = find(w, id);
    return entry->bytes.p == NULL ? STR("") : entry->bytes;
}

static void grow(struct words *w) {
    struct words larger = *w;
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
    uint64_t h = hash_fnv(word);
    return (int32_t)(HASHED_FIRST + (h ^ h >> 32) % (INT32_MAX - HASHED_FIRST));
}

static int intern(struct words *w, struct str word, int32_t *id, struct err *e) {
    *id = word_id(word);
    struct entry *entry = find(w, *id);
    if (entry->bytes.p == NULL) {
        *entry = (struct entry){str_copy(w->arena, word), *id};
        if (++w->used * 2 > w->capacity) grow(w);
    } else if (!str_equal(entry->bytes, word)) {
        FAIL(e, ERR_PROVIDER, "the words '" STR_FMT "' and '" STR_FMT "' share an id",
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

static int add_words(struct words *w, struct buf *run, struct arena *a, struct provider_ids *l,
                     struct err *e) {
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

static int add_control(struct words *w, struct str text, struct buf *run, struct arena *a,
                       struct provider_ids *l, struct err *e) {
    for (size_t at = 0; at < text.n;) {
        struct str rest = str_slice(text, at, text.n);
        int32_t id = str_starts(rest, STR("<|im_start|>")) ? WORDS_ID_START
                     : str_starts(rest, STR("<|im_end|>")) ? WORDS_ID_END
                                                           : 0;
        if (id == 0) {
            buf_add_char(run, text.p[at++]);
            continue;
        }
        TRY(add_words(w, run, a, l, e));
        add_id(l, a, id);
        at += words_bytes(w, id).n;
    }
    return 0;
}

int words_tokenize(struct words *w, const struct provider_piece *pieces, size_t count,
                   struct arena *a, struct provider_ids *out, struct err *e) {
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

// ---- requests and replies ----------------------------------------------------------------------

int words_render(const struct provider_message *messages, size_t count, struct arena *a,
                 struct provider_piece **pieces, size_t *piece_count, struct err *e) {
    struct provider_piece *out = arena_array(a, 3 * count + 1, sizeof *out);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (messages[i].call_count > 0 || messages[i].tool_count > 0)
            FAIL(
                e, ERR_CONFIG,
                "message %zu calls or brings tools; this model has no place for that ({{tools}} in "
                "a message gives them as text)",
                i + 1);
        const char *head = arena_printf(a, "<|im_start|>" STR_FMT "\n", STR_ARG(messages[i].role));
        out[n++] = (struct provider_piece){str_from(head), true};
        out[n++] = (struct provider_piece){messages[i].text, false};
        out[n++] = (struct provider_piece){STR("<|im_end|>\n"), true};
    }
    out[n++] = (struct provider_piece){STR("<|im_start|>assistant\n"), true};
    *pieces = out;
    *piece_count = n;
    return 0;
}

struct str words_prompt(const struct provider_request *r, struct arena *a) {
    size_t n = 0;
    for (size_t i = 0; i < r->piece_count; i++) n += r->pieces[i].text.n;
    char *p = arena_alloc(a, n + 1);
    n = 0;
    for (size_t i = 0; i < r->piece_count; i++) {
        struct str text = r->pieces[i].text;
        if (text.n > 0) memcpy(p + n, text.p, text.n);
        n += text.n;
    }
    return (struct str){p, n};
}

static struct str bytes_of(const void *context, int32_t id) {
    return words_bytes(context, id);
}

// The text's words one by one, as an engine would have sampled them.
static void add_words_until(struct words *w, const struct provider_generation *g,
                            const struct provider_ids *ids, struct arena *a,
                            struct continuation *r) {
    struct continuation_vocabulary *v = arena_alloc(a, sizeof *v);
    *v = (struct continuation_vocabulary){.bytes = bytes_of, .context = w};
    for (size_t i = 0; i < ids->count; i++) {
        size_t n = words_bytes(w, ids->ids[i]).n;
        if (n > v->longest_bytes) v->longest_bytes = n;
    }
    continuation_start(r, v, g, a);
    for (size_t i = 0; i < ids->count && !r->ended; i++) continuation_add(r, ids->ids[i]);
    // A text that fits its budget to the word was not cut.
    if (r->count == ids->count && r->finish != FINISH_STOP_STRING) r->ended = false;
}

int words_complete(struct words *w, const struct provider_generation *g, struct str text,
                   enum provider_finish finish, bool exact_ids, struct arena *a,
                   struct provider_completion *out, struct err *e) {
    struct provider_piece piece = {text, false};
    struct provider_ids ids;
    struct continuation r;
    TRY(words_tokenize(w, &piece, 1, a, &ids, e));
    add_words_until(w, g, &ids, a, &r);
    out->ok = true;
    out->finish = r.ended ? r.finish : finish;
    out->text = (struct str){r.text, r.bytes};
    if (exact_ids) out->ids = (struct provider_ids){r.ids, r.count};
    out->tokens = (int)r.count;
    out->reasoning_counted = g->reasoning != NULL;
    out->reasoning_tokens = (int)continuation_reasoning_tokens(&r);
    out->stop_id = out->finish == FINISH_STOP && exact_ids ? WORDS_ID_END : -1;
    return 0;
}

void words_refuse(struct provider_completion *out, const char *code, const char *text) {
    out->ok = false;
    out->finish = FINISH_ERROR;
    out->reason_code = code;
    out->reason_text = text;
}

struct provider_identity words_identity(const struct provider_options *o, const char *kind,
                                        const char *name, const char *path, const char *sha256) {
    char hex[HASH_HEX_SIZE];
    json_t *identity = json_object();
    json_put(identity, "id", json_text_c(o->id));
    json_put(identity, "sha256", json_text_c(sha256));
    hash_bytes("words-1", 7, hex);
    json_put(identity, "tokenizer_sha256", json_text_c(hex));
    hash_bytes("chatml", 6, hex);
    json_put(identity, "template_sha256", json_text_c(hex));
    json_put(identity, "architecture", json_text_c(kind));
    json_put(identity, "name", json_text_c(name));
    json_put(identity, "tensor_types", json_object());
    json_t *manifest = json_object();
    json_put(manifest, "id", json_text_c(o->id));
    json_put(manifest, "path", json_text_c(path));
    return (struct provider_identity){identity, manifest, "none", kind};
}
