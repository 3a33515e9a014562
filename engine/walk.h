// Walks prompts in the order they come and decodes their replies together.
//
// A trunk holds the KV of the last prompt. The next prompt keeps the prefix that both share,
// computes the rest, and its reply grows on a fork of the trunk; so prompts in the order of a
// prefix tree compute each shared prefix once. Replies of several prompts decode in one batch, and
// by DESIGN section 5 neither sharing nor company changes a bit of them.
#ifndef LACUNA_ENGINE_WALK_H
#define LACUNA_ENGINE_WALK_H

#include "engine/provider.h"
#include "engine/continuation.h"
#include "engine/session.h"

struct walk;

// Sequences and pages that a session needs for a walk of `in_flight` replies.
void walk_session_options(struct session_options *o, uint32_t context_tokens, int in_flight);

// Borrows session and vocabulary.
struct walk *walk_open(struct session *s, const struct continuation_vocabulary *v, int in_flight);
void walk_close(struct walk *w); // NULL is allowed

// Takes a copy of the request. Prompt and reply that do not fit the context, an empty prompt and
// settings that make no sense are refused (ERR_CONFIG). *accepted false: call walk_next first.
int walk_submit(struct walk *w, const struct provider_request *request, bool *accepted,
                struct err *e);
// Works until a reply is complete; a failure is the reply's own (`ok` false). False: nothing is
// left, or the session was interrupted.
bool walk_next(struct walk *w, struct arena *a, struct provider_completion *out);

#endif
