#include "engine/vocabulary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_KEY "tokenizer.ggml.tokens"
#define TYPES_KEY "tokenizer.ggml.token_type"
#define TOKEN_COUNT_MAX (1u << 24)
// Spellings are compared at every place of a text, so their length bounds the time of that.
#define SPELLING_BYTES_MAX 256

// GPT-2's alphabet: the printable characters of Latin-1 stand for their own byte, the other 68
// bytes are, in order, the code points from U+0100.
static bool alphabet_is_printable(uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

static int alphabet_byte(uint32_t code_point) {
    if (code_point < 0x100) return alphabet_is_printable(code_point) ? (int)code_point : -1;
    if (code_point >= 0x100 + 68) return -1;
    uint32_t left = code_point - 0x100;
    if (left < 0x21) return (int)left;                      // 0x00..0x20
    if (left < 0x21 + 34) return (int)(left + 0x7F - 0x21); // 0x7F..0xA0
    return 0xAD;
}

bool vocabulary_decode(struct str spelling, char *out, size_t *bytes) {
    *bytes = 0;
    for (size_t at = 0; at < spelling.n;) {
        uint32_t code_point;
        size_t n = utf8_decode(spelling, at, &code_point);
        int byte = alphabet_byte(code_point);
        if (byte < 0) return false;
        out[(*bytes)++] = (char)byte;
        at += n;
    }
    return true;
}

static size_t slot_of(const struct vocabulary *v, struct str bytes) {
    uint64_t h = 0xCBF29CE484222325u; // FNV-1a with a final mix
    for (size_t i = 0; i < bytes.n; i++) h = (h ^ (uint8_t)bytes.p[i]) * 0x100000001B3u;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return (size_t)(h ^ h >> 32) & v->mask;
}

static size_t slot_find(const struct vocabulary *v, struct str bytes) {
    size_t i = slot_of(v, bytes);
    while (v->slots[i] >= 0 && !str_equal(v->bytes[v->slots[i]], bytes)) i = (i + 1) & v->mask;
    return i;
}

int32_t vocabulary_find(const struct vocabulary *v, struct str bytes) {
    return v->slots[slot_find(v, bytes)];
}

static void text_index(struct vocabulary *v, struct arena *a) {
    size_t capacity = 16;
    while (capacity < (size_t)v->count * 2) capacity *= 2;
    v->slots = arena_array(a, capacity, sizeof *v->slots);
    v->mask = capacity - 1;
    memset(v->slots, 0xFF, capacity * sizeof *v->slots);
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->kinds[i] != TOKEN_TEXT || !v->in_alphabet[i] || v->bytes[i].n == 0) continue;
        v->slots[slot_find(v, v->bytes[i])] = (int32_t)i;
    }
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        v->byte_id[b] = vocabulary_find(v, (struct str){&byte, 1});
    }
}

static int spelling_compare(const void *left, const void *right) {
    const struct spelling *a = left, *b = right;
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    int order = memcmp(a->text.p, b->text.p, n);
    if (order != 0) return order;
    if (a->text.n != b->text.n) return a->text.n < b->text.n ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int spelling_index(struct vocabulary *v, enum token_kind kind, struct arena *a,
                          struct spelling_set *set, struct err *e) {
    size_t count = 0;
    for (uint32_t i = 0; i < v->count; i++) count += v->kinds[i] == kind && v->bytes[i].n > 0;
    *set = (struct spelling_set){.items = arena_array(a, count, sizeof *set->items)};
    for (uint32_t i = 0; i < v->count; i++) {
        struct str text = v->bytes[i];
        if (v->kinds[i] != kind || text.n == 0) continue;
        if (text.n > SPELLING_BYTES_MAX) {
            FAIL(e, ERR_MODEL,
                 "%s: token %u is a control or user-defined token of %zu bytes; at most %d are "
                 "supported",
                 v->path, i, text.n, SPELLING_BYTES_MAX);
        }
        set->items[set->count++] = (struct spelling){text, (int32_t)i};
        set->starts[(uint8_t)text.p[0]] = true;
    }
    if (count == 0) return 0;
    qsort(set->items, count, sizeof *set->items, spelling_compare);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && str_equal(set->items[kept - 1].text, set->items[i].text)) kept--;
        set->items[kept++] = set->items[i];
    }
    set->count = kept;
    return 0;
}

// The longest spelling that text begins with at `at`. Each further byte narrows the range of items
// that still agree; items are sorted, so both ends of the range are found by halving.
static const struct spelling *spelling_at(const struct spelling_set *set, struct str text,
                                          size_t at) {
    const struct spelling *found = NULL;
    size_t low = 0, high = set->count;
    for (size_t depth = 0; low < high; depth++) {
        if (set->items[low].text.n == depth) found = &set->items[low++];
        if (at + depth >= text.n) break;
        uint8_t byte = (uint8_t)text.p[at + depth];
        size_t begin = low, end = high;
        for (size_t top = high; begin < top;) { // first item with a byte >= `byte` here
            size_t middle = begin + (top - begin) / 2;
            if ((uint8_t)set->items[middle].text.p[depth] < byte)
                begin = middle + 1;
            else
                top = middle;
        }
        for (size_t bottom = begin; bottom < end;) { // first item with a byte > `byte` here
            size_t middle = bottom + (end - bottom) / 2;
            if ((uint8_t)set->items[middle].text.p[depth] <= byte)
                bottom = middle + 1;
            else
                end = middle;
        }
        low = begin;
        high = end;
    }
    return found;
}

bool spelling_find(const struct spelling_set *set, struct str text, size_t from, size_t *begin,
                   size_t *end, int32_t *id) {
    if (set->count == 0) return false;
    for (size_t at = from; at < text.n; at++) {
        if (!set->starts[(uint8_t)text.p[at]]) continue;
        const struct spelling *found = spelling_at(set, text, at);
        if (found == NULL) continue;
        *begin = at;
        *end = at + found->text.n;
        *id = found->id;
        return true;
    }
    return false;
}

int32_t spelling_id(const struct spelling_set *set, struct str text) {
    size_t begin, end;
    int32_t id;
    bool whole =
        text.n > 0 && spelling_find(set, text, 0, &begin, &end, &id) && begin == 0 && end == text.n;
    return whole ? id : -1;
}

static int kind_read(const struct gguf *g, const struct gguf_value *types, uint32_t i,
                     uint8_t *kind, struct err *e) {
    static const uint8_t kinds[] = {TOKEN_TEXT, TOKEN_TEXT,   TOKEN_CONTROL, TOKEN_CONTROL,
                                    TOKEN_USER, TOKEN_UNUSED, TOKEN_TEXT};
    int32_t type;
    memcpy(&type, types->data + (size_t)i * sizeof type, sizeof type);
    if (type < 1 || type > 6) {
        FAIL(e, ERR_MODEL, "%s: %s[%u] is %d; token types are 1 to 6", g->path, TYPES_KEY, i, type);
    }
    *kind = kinds[type];
    return 0;
}

static int arrays_find(const struct gguf *g, const struct gguf_value **tokens,
                       const struct gguf_value **types, struct err *e) {
    *tokens = gguf_find(g, TOKENS_KEY);
    *types = gguf_find(g, TYPES_KEY);
    if (*tokens == NULL || (*tokens)->type != GGUF_ARRAY || (*tokens)->element != GGUF_STRING) {
        FAIL(e, ERR_MODEL, "%s: %s is missing or not an array of strings", g->path, TOKENS_KEY);
    }
    if ((*tokens)->count == 0 || (*tokens)->count > TOKEN_COUNT_MAX) {
        FAIL(e, ERR_MODEL, "%s: %s has %llu tokens; 1 to %u are supported", g->path, TOKENS_KEY,
             (unsigned long long)(*tokens)->count, TOKEN_COUNT_MAX);
    }
    if (*types == NULL || (*types)->type != GGUF_ARRAY ||
        ((*types)->element != GGUF_I32 && (*types)->element != GGUF_U32)) {
        FAIL(e, ERR_MODEL,
             "%s: %s is missing or not an array of 32-bit integers; without it control tokens "
             "cannot "
             "be told from text",
             g->path, TYPES_KEY);
    }
    if ((*types)->count != (*tokens)->count) {
        FAIL(e, ERR_MODEL, "%s: %s has %llu entries for %llu tokens", g->path, TYPES_KEY,
             (unsigned long long)(*types)->count, (unsigned long long)(*tokens)->count);
    }
    return 0;
}

int vocabulary_open(const struct gguf *g, struct arena *a, struct vocabulary *out, struct err *e) {
    const struct gguf_value *tokens, *types;
    TRY(arrays_find(g, &tokens, &types, e));
    uint32_t count = (uint32_t)tokens->count;
    *out = (struct vocabulary){
        .path = g->path,
        .count = count,
        .bytes = arena_array(a, count, sizeof *out->bytes),
        .kinds = arena_array(a, count, sizeof *out->kinds),
        .in_alphabet = arena_array(a, count, sizeof *out->in_alphabet),
    };
    size_t total = 0; // a token's bytes are never more than those of its spelling
    for (uint32_t i = 0; i < count; i++) total += tokens->strings[i].n;
    char *room = arena_alloc(a, total + 1);
    for (uint32_t i = 0; i < count; i++) {
        TRY(kind_read(g, types, i, &out->kinds[i], e));
        struct str spelling = tokens->strings[i];
        size_t n = 0;
        out->in_alphabet[i] = vocabulary_decode(spelling, room, &n);
        if (out->kinds[i] == TOKEN_TEXT && out->in_alphabet[i]) {
            out->bytes[i] = (struct str){room, n};
            room += n;
        } else {
            out->bytes[i] = spelling;
        }
    }
    text_index(out, a);
    TRY(spelling_index(out, TOKEN_CONTROL, a, &out->control, e));
    return spelling_index(out, TOKEN_USER, a, &out->user, e);
}
