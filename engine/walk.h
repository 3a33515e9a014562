// Walks prompts in the order they come and decodes their replies together.
//
// Every prompt in flight is a leaf with a KV sequence of its own. A new leaf forks the sequence
// that shares the longest prefix with it (of a leaf in flight, or of one of the last few that are
// answered) and computes the rest. Pages are shared by reference, so the sequences are a prefix
// tree without nodes. For prompts in ascending order of ids the longest match with any earlier
// prompt is that with the one just before (DESIGN section 2 sorts a plan so), hence each edge of
// the tree is computed once, and nothing older needs to be kept; the few that are kept serve other
// orders.
//
// A pass of the session takes the next token of every growing reply first and fills up with prompt
// tokens, of several prompts where they are short: replies ride along with prefill, and a leaf that
// ends is replaced by the next pass. A leaf begins only when the pool has room for the rest of its
// prompt and its whole reply beside what others may still need; kept prompts make room, oldest
// first. With the least memory one prompt is walked at a time, on the sequence of the one before.
// A fork copies the page that it ends in (some 2 ms for a page of 12 MB, beside some seconds for
// its prompt). By DESIGN section 5 neither sharing nor company changes a bit.
#ifndef LACUNA_ENGINE_WALK_H
#define LACUNA_ENGINE_WALK_H

#include "engine/provider.h"
#include "engine/continuation.h"
#include "engine/session.h"

struct walk;

// Replies that grow together unless memory allows fewer. Measured (SmolLM2-135M, two cores, 1,024
// tokens deep): 8, 16, 32 and 64 replies give 418, 524, 555 and 572 tokens/s; what an interrupted
// run loses grows with their number.
#define WALK_IN_FLIGHT 32

// Sequences and pages that a session needs for a walk of `in_flight` prompts: at least one prompt
// with its reply, at most all of them with nothing in common.
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
