// The scripted fixture: a provider whose replies are rules in a file, for tests of everything above
// the engine. It completes out of order, errs, hangs and cuts on demand, and is deterministic:
// equal requests get equal replies, whatever was asked before.
//
// The rules file is one JSON object:
//
//   {"lacuna_fixture": 1,
//    "exact_ids": true,       false: tokens are estimated (4 bytes each) and there are no ids
//    "context_tokens": 8192,  0: not limited
//    "in_flight": 4,
//    "order": "first",        or "shuffled": completions come in an order drawn from "seed"
//    "seed": 1,
//    "rules": [RULE, ...]}    the first rule that applies answers; without one the reply is empty
//
// A rule's conditions (all must hold; a rule without any always applies):
//   "key": "@middle/"          the trial key contains this
//   "prompt": "pickup day"     the prompt contains this
//   "while_file": "broken"     this file exists (relative to the rules file)
// and what it does:
//   "reply": "Order {{0}}."    or a list, one of which is drawn from the request's sampling stream;
//                              {{sample}} is a number below 10000 from that stream
//   "copy_after": ["no. is "]  {{0}}, {{1}}, ..., {{wrong 0}}, ...: what follows that marker in the
//                              prompt (engine/provider_copy.h)
//   "reply_base64": "/w=="     bytes that are no text
//   "finish": "stop"           or "length"; a reply over max_tokens is cut and ends with "length"
//   "error": "text"            the completion fails with the code "fixture"
//   "hang_ms": 60000           it fails with the code "hang" after this time, unless cancelled
//   "delay_ms": 5              it takes this long
//
// Tokens are words and the chat template is ChatML (engine/provider_words.h).
#ifndef LACUNA_ENGINE_PROVIDER_FIXTURE_H
#define LACUNA_ENGINE_PROVIDER_FIXTURE_H

#include "engine/provider.h"

int provider_fixture_open(const struct provider_options *options, struct provider **out,
                          struct err *e);

#endif
