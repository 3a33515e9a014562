// Byte-level BPE (Sennrich et al. 2016; GPT-2's byte alphabet) from the fields of a GGUF file.
//
// A pre-tokenizer splits the text (PCRE2 patterns, one per named rule); merges run inside a piece
// in near-linear time whatever its length. A file whose pre-tokenizer is unknown or absent is
// refused by name, never guessed. Bytes that are not UTF-8 are tokenized byte by byte and come back
// unchanged.
#ifndef LACUNA_ENGINE_TOKENIZER_H
#define LACUNA_ENGINE_TOKENIZER_H

#include "engine/gguf.h"

struct tokenizer;

struct token_list { // grows on the heap; zero-initialise, free with token_list_free
    int32_t *ids;
    size_t count;
    size_t capacity;
};
void token_list_add(struct token_list *l, int32_t id);
void token_list_free(struct token_list *l);

// `pre` NULL: the file's own rule (tokenizer.ggml.pre); else the user's explicit override.
// The tokenizer lives in the arena and keeps pointers into the file's mapping.
int tokenizer_open(const struct gguf *g, const char *pre, struct arena *a, struct tokenizer **out,
                   struct err *e);
void tokenizer_close(struct tokenizer *t); // compiled patterns

// Appends the ids of `text`. With `control`, spellings of control tokens become those tokens
// (leftmost, then longest match first); without, they are text. User-defined tokens are found in
// both. No start token is added. Safe to call from several threads with one tokenizer. Fails, and
// appends nothing, for a byte that the vocabulary has no token for: nothing is dropped silently.
int tokenizer_encode(const struct tokenizer *t, struct str text, bool control,
                     struct token_list *out, struct err *e);

// The leftmost control token spelled in `text` at or behind `from`, the longest one there: its
// bytes [*begin, *end) and id. False when there is none.
bool tokenizer_find_control(const struct tokenizer *t, struct str text, size_t from, size_t *begin,
                            size_t *end, int32_t *id);

// The bytes of one id (control tokens: their spelling); empty for an id outside the vocabulary.
struct str tokenizer_bytes(const struct tokenizer *t, int32_t id);

uint32_t tokenizer_size(const struct tokenizer *t);
const char *tokenizer_pre(const struct tokenizer *t); // rule in use: "smollm", ...
bool tokenizer_is_control(const struct tokenizer *t, int32_t id);
int32_t tokenizer_find(const struct tokenizer *t, struct str text); // id of a token by text, or -1
int32_t tokenizer_bos(const struct tokenizer *t);                   // -1 when the file has none
bool tokenizer_adds_bos(const struct tokenizer *t);                 // what the file asks for

// Every id that ends a turn: union of the eos / eot / eom keys and the end-of-turn tokens by their
// well-known spelling.
const int32_t *tokenizer_stops(const struct tokenizer *t, size_t *count);

#endif
