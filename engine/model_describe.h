// What `lacuna model FILE` prints: what is in a model file, its identity, and the memory it takes.
#ifndef LACUNA_ENGINE_MODEL_DESCRIBE_H
#define LACUNA_ENGINE_MODEL_DESCRIBE_H

#include "engine/weights.h"

// Bounds of a length in tokens that memory is told for.
#define MODEL_MOST_TOKENS UINT64_C(1000000000)

// 512, 2048, 8192, ... below the trained context, then the trained context itself.
#define MODEL_MOST_LENGTHS 24
size_t model_usual_lengths(const struct model *m, uint64_t out[MODEL_MOST_LENGTHS]);

// Both need model_identify first. `lengths`, in tokens, are the rows of the memory table, which
// tells what `b` would take; each at most MODEL_MOST_TOKENS. The text is lines with a name in the
// first column; bytes that would act on a terminal are shown as '?'.
void model_describe_text(const struct model *m, struct backend *b, const uint64_t *lengths,
                         size_t count, struct buf *out);
json_t *model_describe_json(const struct model *m, struct backend *b, const uint64_t *lengths,
                            size_t count);

#endif
