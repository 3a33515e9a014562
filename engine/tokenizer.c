#include "engine/tokenizer.h"
#include "engine/bpe.h"
#include "engine/pretokenizer.h"
#include "engine/vocabulary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define MERGE_COUNT_MAX (1u << 24)
#define STOPS_MAX 32

struct tokenizer {
    struct vocabulary vocabulary;
    struct pretokenizer *pretokenizer;
    struct bpe *bpe;
    int32_t bos;
    bool adds_bos;
    int32_t stops[STOPS_MAX];
    size_t stop_count;
};

void token_list_add(struct token_list *l, int32_t id) {
    if (l->count == l->capacity) {
        size_t capacity = l->capacity < 64 ? 64 : l->capacity * 2;
        int32_t *ids = realloc(l->ids, capacity * sizeof *ids);
        if (ids == NULL) mem_exhausted("token ids", capacity * sizeof *ids);
        l->ids = ids;
        l->capacity = capacity;
    }
    l->ids[l->count++] = id;
}

void token_list_free(struct token_list *l) {
    free(l->ids);
    *l = (struct token_list){0};
}

static void token_list_reserve(struct token_list *l, size_t extra) {
    if (l->capacity - l->count >= extra) return;
    size_t capacity = l->capacity * 2 > l->count + extra ? l->capacity * 2 : l->count + extra;
    int32_t *ids = realloc(l->ids, capacity * sizeof *ids);
    if (ids == NULL) mem_exhausted("token ids", capacity * sizeof *ids);
    l->ids = ids;
    l->capacity = capacity;
}

// Opening -----------------------------------------------------------------------------------------

// One line of the merges: two parts with a space between them, both and their join being tokens.
static int merge_add(struct tokenizer *t, struct str line, uint32_t index, struct buf *work,
                     struct err *e) {
    const struct vocabulary *v = &t->vocabulary;
    int shown = line.n > 80 ? 80 : (int)line.n;
    size_t space = str_find(line, STR(" "), 0);
    if (space == STR_NONE || space == 0 || space + 1 == line.n ||
        str_find(line, STR(" "), space + 1) != STR_NONE) {
        FAIL(e, ERR_MODEL, "%s: %s[%u] is '%.*s'; expected two parts with one space between them",
             v->path, KEY("merges"), index, shown, line.p);
    }
    buf_clear(work);
    buf_reserve(work, line.n);
    struct str left = {work->p, 0}, right = {NULL, 0};
    bool spelled = vocabulary_decode(str_slice(line, 0, space), work->p, &left.n);
    right.p = work->p + left.n;
    spelled = spelled &&
              vocabulary_decode(str_slice(line, space + 1, line.n), work->p + left.n, &right.n);
    if (!spelled) {
        FAIL(e, ERR_MODEL, "%s: %s[%u] '%.*s' is not spelled in the byte alphabet", v->path,
             KEY("merges"), index, shown, line.p);
    }
    int32_t left_id = vocabulary_find(v, left), right_id = vocabulary_find(v, right);
    int32_t result = vocabulary_find(v, (struct str){work->p, left.n + right.n});
    if (left_id < 0 || right_id < 0 || result < 0) {
        FAIL(e, ERR_MODEL, "%s: %s[%u] '%.*s': the vocabulary has no text token for %s", v->path,
             KEY("merges"), index, shown, line.p,
             left_id < 0    ? "its first part"
             : right_id < 0 ? "its second part"
                            : "the two parts joined");
    }
    bpe_add(t->bpe, left_id, right_id, result);
    return 0;
}

static int merges_read(const struct gguf *g, struct tokenizer *t, struct arena *a, struct err *e) {
    const struct gguf_value *merges = gguf_find(g, KEY("merges"));
    if (merges == NULL || merges->type != GGUF_ARRAY || merges->element != GGUF_STRING) {
        FAIL(e, ERR_MODEL, "%s: %s is missing or not an array of strings", g->path, KEY("merges"));
    }
    if (merges->count > MERGE_COUNT_MAX) {
        FAIL(e, ERR_MODEL, "%s: %s has %llu entries; at most %u are supported", g->path,
             KEY("merges"), (unsigned long long)merges->count, MERGE_COUNT_MAX);
    }
    t->bpe = bpe_create(a, (size_t)merges->count);
    struct buf work = {0};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < merges->count; i++) {
        rc = merge_add(t, merges->strings[i], i, &work, e);
    }
    buf_free(&work);
    return rc;
}

// An optional key that holds a token id: *out is -1 when absent.
static int id_read(const struct gguf *g, const char *key, uint32_t tokens, int32_t *out,
                   struct err *e) {
    uint32_t id = 0;
    bool present = false;
    *out = -1;
    TRY(gguf_get_u32(g, key, &id, &present, e));
    if (!present) return 0;
    if (id >= tokens) {
        FAIL(e, ERR_MODEL, "%s: %s is %u, but the vocabulary has %u tokens", g->path, key, id,
             tokens);
    }
    *out = (int32_t)id;
    return 0;
}

static void stop_add(struct tokenizer *t, int32_t id) {
    if (id < 0) return;
    for (size_t i = 0; i < t->stop_count; i++) {
        if (t->stops[i] == id) return;
    }
    assert(t->stop_count < STOPS_MAX);
    t->stops[t->stop_count++] = id;
}

static int marks_read(const struct gguf *g, struct tokenizer *t, struct err *e) {
    static const char *const keys[] = {KEY("eos_token_id"), KEY("eot_token_id"),
                                       KEY("eom_token_id")};
    static const char *const spellings[] = {
        "<|im_end|>", "<|eot_id|>",    "<|eom_id|>", "<|endoftext|>",  "<|end_of_text|>",
        "<|end|>",    "<end_of_turn>", "</s>",       "<|endofturn|>",  "<|end_of_turn|>",
        "<|return|>", "<|eos|>",       "<|EOT|>",    "<|end_of_role|>"};
    uint32_t tokens = t->vocabulary.count;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int32_t id;
        TRY(id_read(g, keys[i], tokens, &id, e));
        stop_add(t, id);
    }
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        stop_add(t, spelling_id(&t->vocabulary.control, str_from(spellings[i])));
    }
    TRY(id_read(g, KEY("bos_token_id"), tokens, &t->bos, e));
    bool present = false;
    t->adds_bos = pretokenizer_adds_bos(t->pretokenizer);
    TRY(gguf_get_bool(g, KEY("add_bos_token"), &t->adds_bos, &present, e));
    if (t->adds_bos && t->bos < 0) {
        FAIL(e, ERR_MODEL, "%s: %s is true, but %s is missing", g->path, KEY("add_bos_token"),
             KEY("bos_token_id"));
    }
    return 0;
}

static int rule_choose(const struct gguf *g, const char *pre, struct tokenizer *t, struct err *e) {
    struct str name = str_from(pre);
    if (pre == NULL) {
        bool present = false;
        TRY(gguf_get_string(g, KEY("pre"), &name, &present, e));
        if (!present) {
            FAIL(e, ERR_MODEL,
                 "%s: %s is missing, so the file does not say how to split text; set "
                 "models[].pre_tokenizer in the experiment to the model's rule (known: %s)",
                 g->path, KEY("pre"), pretokenizer_known());
        }
    }
    if (pretokenizer_open(name, &t->pretokenizer, e) != 0) return err_prefix(e, "%s", g->path);
    return 0;
}

int tokenizer_open(const struct gguf *g, const char *pre, struct arena *a, struct tokenizer **out,
                   struct err *e) {
    struct str model;
    TRY(gguf_need_string(g, KEY("model"), &model, e));
    if (!str_equal_c(model, "gpt2")) {
        int shown = model.n > 80 ? 80 : (int)model.n;
        FAIL(e, ERR_MODEL,
             "%s: tokenizer '%.*s' (%s) is not supported; only byte-level BPE ('gpt2') is", g->path,
             shown, model.p, KEY("model"));
    }
    struct tokenizer *t = arena_alloc(a, sizeof *t);
    TRY(vocabulary_open(g, a, &t->vocabulary, e));
    TRY(merges_read(g, t, a, e));
    TRY(rule_choose(g, pre, t, e));
    if (marks_read(g, t, e) != 0) {
        tokenizer_close(t);
        return -1;
    }
    *out = t;
    return 0;
}

void tokenizer_close(struct tokenizer *t) {
    if (t == NULL) return;
    pretokenizer_close(t->pretokenizer);
    t->pretokenizer = NULL;
}

// Encoding ----------------------------------------------------------------------------------------

// What one call works with; its threads share nothing but the tokenizer.
struct encoder {
    const struct tokenizer *t;
    struct pretokenizer_scan *scan;
    struct bpe_scratch scratch;
    struct token_list *out;
    struct str whole; // for offsets in messages
};

static int bytes_add(struct encoder *c, struct str bytes, struct err *e) {
    const struct vocabulary *v = &c->t->vocabulary;
    token_list_reserve(c->out, bytes.n);
    for (size_t i = 0; i < bytes.n; i++) {
        uint8_t byte = (uint8_t)bytes.p[i];
        if (v->byte_id[byte] < 0) {
            FAIL(
                e, ERR_INPUT,
                "the text has the byte 0x%02X at offset %zu, for which the vocabulary of %s has no "
                "token; the model cannot be given this text",
                byte, (size_t)(bytes.p + i - c->whole.p), v->path);
        }
        c->out->ids[c->out->count + i] = v->byte_id[byte];
    }
    return 0;
}

static int piece_encode(struct encoder *c, struct str piece, struct err *e) {
    if (pretokenizer_keeps_whole_tokens(c->t->pretokenizer)) {
        int32_t id = vocabulary_find(&c->t->vocabulary, piece);
        if (id >= 0) {
            token_list_add(c->out, id);
            return 0;
        }
    }
    TRY(bytes_add(c, piece, e));
    size_t count = piece.n;
    TRY(bpe_merge(c->t->bpe, c->out->ids + c->out->count, &count, &c->scratch, e));
    c->out->count += count;
    return 0;
}

// Well-formed stretches are cut into pieces, each as a text of its own; the bytes of an ill-formed
// sequence become their byte tokens without merging.
static int text_encode(struct encoder *c, struct str text, struct err *e) {
    while (text.n > 0) {
        struct str good = str_slice(text, 0, utf8_first_bad(text));
        for (size_t at = 0; at < good.n;) {
            size_t end;
            TRY(pretokenizer_next(c->scan, good, at, &end, e));
            TRY(piece_encode(c, str_slice(good, at, end), e));
            at = end;
        }
        text = str_slice(text, good.n, text.n);
        if (text.n == 0) break;
        uint32_t replacement;
        size_t bad = utf8_decode(text, 0, &replacement);
        TRY(bytes_add(c, str_slice(text, 0, bad), e));
        c->out->count += bad;
        text = str_slice(text, bad, text.n);
    }
    return 0;
}

// User-defined tokens are part of the text's own vocabulary (runs of spaces, say): found
// everywhere.
static int prose_encode(struct encoder *c, struct str text, struct err *e) {
    size_t at = 0, begin, end;
    int32_t id;
    while (spelling_find(&c->t->vocabulary.user, text, at, &begin, &end, &id)) {
        TRY(text_encode(c, str_slice(text, at, begin), e));
        token_list_add(c->out, id);
        at = end;
    }
    return text_encode(c, str_slice(text, at, text.n), e);
}

static int control_encode(struct encoder *c, struct str text, struct err *e) {
    size_t at = 0, begin, end;
    int32_t id;
    while (tokenizer_find_control(c->t, text, at, &begin, &end, &id)) {
        TRY(prose_encode(c, str_slice(text, at, begin), e));
        token_list_add(c->out, id);
        at = end;
    }
    return prose_encode(c, str_slice(text, at, text.n), e);
}

int tokenizer_encode(const struct tokenizer *t, struct str text, bool control,
                     struct token_list *out, struct err *e) {
    size_t before = out->count;
    struct encoder c = {.t = t, .out = out, .whole = text};
    c.scan = pretokenizer_scan_open(t->pretokenizer);
    int rc = control ? control_encode(&c, text, e) : prose_encode(&c, text, e);
    if (rc != 0) out->count = before;
    bpe_scratch_free(&c.scratch);
    pretokenizer_scan_close(c.scan);
    return rc;
}

// Reading -----------------------------------------------------------------------------------------

static bool id_known(const struct tokenizer *t, int32_t id) {
    return id >= 0 && (uint32_t)id < t->vocabulary.count;
}

struct str tokenizer_bytes(const struct tokenizer *t, int32_t id) {
    return id_known(t, id) ? t->vocabulary.bytes[id] : (struct str){"", 0};
}

uint32_t tokenizer_size(const struct tokenizer *t) {
    return t->vocabulary.count;
}

const char *tokenizer_pre(const struct tokenizer *t) {
    return pretokenizer_name(t->pretokenizer);
}

bool tokenizer_is_control(const struct tokenizer *t, int32_t id) {
    return id_known(t, id) && t->vocabulary.kinds[id] == TOKEN_CONTROL;
}

bool tokenizer_find_control(const struct tokenizer *t, struct str text, size_t from, size_t *begin,
                            size_t *end, int32_t *id) {
    return spelling_find(&t->vocabulary.control, text, from, begin, end, id);
}

int32_t tokenizer_find(const struct tokenizer *t, struct str text) {
    int32_t id = spelling_id(&t->vocabulary.control, text);
    if (id < 0) id = spelling_id(&t->vocabulary.user, text);
    return id < 0 ? vocabulary_find(&t->vocabulary, text) : id;
}

int32_t tokenizer_bos(const struct tokenizer *t) {
    return t->bos;
}

bool tokenizer_adds_bos(const struct tokenizer *t) {
    return t->adds_bos;
}

const int32_t *tokenizer_stops(const struct tokenizer *t, size_t *count) {
    *count = t->stop_count;
    return t->stops;
}
