// The vocabulary of a byte-level BPE tokenizer: the tokens of a GGUF file as bytes, checked, and
// the three ways in which a token is looked up.
//
// Normal tokens are spelled in GPT-2's byte alphabet (each byte a printable character) and are
// found by their bytes. Control and user-defined tokens are spelled as they are and are found
// inside texts. Types: 1 normal and 6 byte are text; 2 unknown and 3 control are control; 4 is
// user-defined; 5 unused is never produced. When several tokens of one kind have the same text, the
// last one counts, as it does in llama.cpp.
#ifndef LACUNA_ENGINE_VOCABULARY_H
#define LACUNA_ENGINE_VOCABULARY_H

#include "engine/gguf.h"

enum token_kind { TOKEN_TEXT, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED };

// A set of spellings that are looked for inside texts.
struct spelling_set {
    struct spelling {
        struct str text;
        int32_t id;
    } * items; // sorted by bytes, without doubles
    size_t count;
    bool starts[256]; // first bytes
};

struct vocabulary {
    const char *path;  // of the file, for messages
    struct str *bytes; // [count] what each token stands for
    uint8_t *kinds;    // [count] enum token_kind
    bool *in_alphabet; // [count] the whole token is spelled in the byte alphabet
    uint32_t count;
    int32_t byte_id[256]; // the token of each single byte, or -1
    int32_t *slots;       // hash table over the bytes of text tokens; -1: free
    size_t mask;
    struct spelling_set control, user;
};

// Reads tokenizer.ggml.tokens and tokenizer.ggml.token_type. Lives in the arena.
int vocabulary_open(const struct gguf *g, struct arena *a, struct vocabulary *out, struct err *e);

// The text token with exactly these bytes, or -1.
int32_t vocabulary_find(const struct vocabulary *v, struct str bytes);

// The leftmost spelling at or behind `from`, the longest one there; false when there is none.
bool spelling_find(const struct spelling_set *set, struct str text, size_t from, size_t *begin,
                   size_t *end, int32_t *id);
// The id of a whole spelling, or -1.
int32_t spelling_id(const struct spelling_set *set, struct str text);

// Decodes a token's spelling from the byte alphabet into `out` (room for spelling.n bytes). False
// when some character is outside the alphabet.
bool vocabulary_decode(struct str spelling, char *out, size_t *bytes);

#endif
