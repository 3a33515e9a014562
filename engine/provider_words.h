// What providers without a model share: words as tokens, ChatML as the chat template, and the end
// of a reply by the request's limits.
//
// Tokens are words, with the space before them; signs, line breaks and every letter beyond ASCII
// stand alone.
#ifndef LACUNA_ENGINE_PROVIDER_WORDS_H
#define LACUNA_ENGINE_PROVIDER_WORDS_H

#include "engine/provider.h"

// Ids depend on the bytes alone, so they are the same in every process.
enum { WORDS_ID_START = 1, WORDS_ID_END = 2 };
struct words;
struct words *words_open(void);
void words_close(struct words *w); // NULL is allowed
int words_tokenize(struct words *w, const struct provider_piece *pieces, size_t count,
                   struct arena *a, struct provider_ids *out, struct err *e);
struct str words_bytes(const struct words *w, int32_t id);

// The pieces of the messages by ChatML, with the generation prompt. Tool calls are refused.
int words_render(const struct provider_message *messages, size_t count, struct arena *a,
                 struct provider_piece **pieces, size_t *piece_count, struct err *e);
struct str words_prompt(const struct provider_request *r, struct arena *a); // all pieces joined

// Completes with `text`, which ended by `finish`: cut before the first stop string, and where a
// budget of words is used up, as an engine does (engine/continuation.h). Ids are given when the
// provider tells exact ones.
int words_complete(struct words *w, const struct provider_generation *g, struct str text,
                   enum provider_finish finish, bool exact_ids, struct arena *a,
                   struct provider_completion *out, struct err *e);
// ok false: an error trial with this reason.
void words_refuse(struct provider_completion *out, const char *code, const char *text);

// Identity and manifest of a provider that is a file: `kind` as architecture and backend.
struct provider_identity words_identity(const struct provider_options *o, const char *kind,
                                        const char *name, const char *path, const char *sha256);

#endif
