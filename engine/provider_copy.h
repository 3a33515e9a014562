// Reply texts that copy from the prompt, for providers without a model.
//
// In a text {{0}}, {{1}}, ... stand for what follows the first, second, ... marker in the prompt,
// up to white space and without punctuation at its end; nothing when the marker is not there.
// {{wrong 0}} is the same with every digit and ASCII letter replaced by another one of its kind,
// and {{sample}} a number below 10000: both drawn.
#ifndef LACUNA_ENGINE_PROVIDER_COPY_H
#define LACUNA_ENGINE_PROVIDER_COPY_H

#include "engine/base/rng.h"
#include "engine/base/str.h"

struct copy_markers {
    const struct str *markers;
    int count;
};
struct str copy_text(struct str text, const struct copy_markers *m, struct str prompt,
                     struct rng *draw, struct arena *a);
bool copy_wanted(struct str text, const struct copy_markers *m); // has it a {{N}} or {{wrong N}}?

#endif
