// What a reply looks like apart from any constraint: nothing, the same over and over, a refusal.
#ifndef LACUNA_EVALS_REPLY_H
#define LACUNA_EVALS_REPLY_H

#include "engine/base/str.h"
#include "evals/check.h"
#include "evals/pattern.h"

// "stop" and "stop_string" end a reply by itself; "length", "reasoning_length" and "filter" cut it.
bool reply_finished(const char *finish);

// Nothing but white space (Unicode's, invisible characters included).
bool reply_blank(struct str text);

// The text ends in one unit at least four times in a row, over 48 bytes or more and half of the
// text.
bool reply_loops(struct str text);

// The first sentence declines to answer ("I'm sorry, but I can't ...") in one of the languages of
// the list in reply.c. Other languages are `omitted` rather than `refusal`; both count as not met.
bool reply_refuses(struct pattern_set *patterns, struct str text);

// There is reasoning, and no answer.
bool reply_only_thought(const struct reply *r);

// Why a reply that met nothing has no verdict: "cut", "no_answer", "empty", "loop", "refusal" in
// this order, or NULL: it is a reply.
const char *reply_unscored(struct pattern_set *patterns, const struct reply *r);

#endif
