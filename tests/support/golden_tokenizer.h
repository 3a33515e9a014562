// The tokenizer of tests/engine/golden/vocabulary.gguf, and small helpers on ids.
#ifndef LACUNA_TESTS_GOLDEN_TOKENIZER_H
#define LACUNA_TESTS_GOLDEN_TOKENIZER_H

#include "engine/base/json.h"
#include "engine/tokenizer.h"

// Opens the file in the arena; fails the test on error.
struct gguf *golden_gguf(struct arena *a);
struct tokenizer *golden_tokenizer(struct arena *a, const char *pre);

// Calls `check` with each line of a golden JSONL file.
void golden_each(const char *relative, void (*check)(const json_t *row, int line, void *context),
                 void *context);

// Encodes, failing the test on error; the caller frees the list.
struct token_list ids_of(const struct tokenizer *t, struct str text, bool control);
// Decodes into a buffer that the caller frees.
struct buf bytes_of(const struct tokenizer *t, const struct token_list *ids);
bool ids_equal_json(const struct token_list *ids, const json_t *array);

#endif
