// The answer in a reply of a model that thinks aloud (engine/base/reasoning.h): the last stretch
// outside of all blocks that holds more than white space, as it stands. A block that is never
// closed leaves no answer, and so do blocks with nothing outside of them: an empty range at the
// end. Checks look at the answer alone; the whole reply is kept.
#ifndef LACUNA_EVALS_ANSWER_H
#define LACUNA_EVALS_ANSWER_H

#include "engine/base/reasoning.h"

// Without tags the answer is the whole reply.
void answer_find(const struct reasoning_tags *tags, struct str reply, size_t answer[2]);

#endif
