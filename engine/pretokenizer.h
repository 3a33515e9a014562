// Pre-tokenizers: the fixed rules by which byte-level BPE tokenizers cut a text into pieces before
// merging. One named rule, one PCRE2 pattern; a rule that is not known is refused by name.
//
// The reference is HF tokenizers 0.23 (Oniguruma with Unicode 16; its Digits step uses Rust's
// Unicode 17). PCRE2 10.42 knows Unicode 14, so the classes name what came later explicitly, and
// the pieces are the same for every code point. White space is spelled out because PCRE2 counts
// U+180E.
#ifndef LACUNA_ENGINE_PRETOKENIZER_H
#define LACUNA_ENGINE_PRETOKENIZER_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdbool.h>

struct pretokenizer;      // a compiled rule, read-only and shared between threads
struct pretokenizer_scan; // working memory of one thread

// Fails with ERR_MODEL, naming the rule, the known ones and the experiment's key.
int pretokenizer_open(struct str name, struct pretokenizer **out, struct err *e);
void pretokenizer_close(struct pretokenizer *p); // NULL is allowed

const char *pretokenizer_name(const struct pretokenizer *p);
// Pieces that are tokens themselves are not merged (Llama 3).
bool pretokenizer_keeps_whole_tokens(const struct pretokenizer *p);
// Whether a file that does not say so gets a start token (Llama 3: yes).
bool pretokenizer_adds_bos(const struct pretokenizer *p);
const char *pretokenizer_known(void); // "smollm, llama-bpe, ...", for messages

struct pretokenizer_scan *pretokenizer_scan_open(const struct pretokenizer *p);
void pretokenizer_scan_close(struct pretokenizer_scan *s); // NULL is allowed

// The end of the piece that begins at `at` (< text.n). `text` is valid UTF-8 and is looked at
// beyond the piece, so all pieces of one text are asked for with the same `text`. Stack use is
// constant; a match that outgrows JIT's stack is repeated without JIT.
int pretokenizer_next(struct pretokenizer_scan *s, struct str text, size_t at, size_t *end,
                      struct err *e);

#endif
