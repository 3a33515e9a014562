// The thinking part of a reply and its answer. Checks look at the answer alone; the whole reply is
// kept.
//
// A thinking block goes from the model's opening tag to the next closing tag. Where a closing tag
// stands before any opening one, the prompt had opened the block. Outside of blocks a tag in a code
// span or a fenced block of Markdown is text.
//
// The answer is the last stretch outside of all blocks that holds more than white space, as it
// stands. A block that is never closed leaves no answer, and so do blocks with nothing outside of
// them: an empty range at the end.
#ifndef LACUNA_EVALS_THINKING_H
#define LACUNA_EVALS_THINKING_H

#include "engine/base/str.h"

// Without tags (open.n == 0) the answer is the whole reply.
void thinking_answer(struct str reply, struct str open, struct str close, size_t answer[2]);

#endif
