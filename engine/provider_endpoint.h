// A served model: requests to an OpenAI-compatible server, many in flight.
//
// The parts below engine/endpoint/: what a request and a reply say (dialect), when a request is
// sent again (retry), how it travels (http), what must not be seen (secret). Here is what a trial
// becomes of it.
//
// The prompt of `api: chat` is kept as ChatML (dialect.h), whose control pieces mark roles
// and turns; the server gets the messages and applies its own template. With `api: text` and `ids`
// the prompt is rendered and tokenized here, by the tokenizer and template of `count_file`.
//
// How long a prompt is: exact with `api: ids` and `text`; counted with a count_file (its template
// and tokenizer stand for the server's) or by the server's own tokenizer; else estimated, at four
// bytes a token. What the server says it
// got is compared with that, and less than allowed is an undelivered prompt.
//
// Reason codes. Of errors, after as many attempts as the policy makes: "unreachable", "dropped",
// "timeout", "stalled" (silence in the middle of a reply), "stream_cut" (a stream that ended before
// its reply did), "http_503" (any status). At once: "tls", "redirect", "too_large", "not_http",
// "http_401" (any status that says the same again), "server_error" (an error in a reply with status
// 200), "no_choice", "empty_choice", "endpoint_schema" (a reply of another shape). Of undelivered
// prompts: "prompt_truncated". Which model a server says that answered is told with the reply;
// whether it is still the same one is the run's matter (evals/served.h).
#ifndef LACUNA_ENGINE_PROVIDER_ENDPOINT_H
#define LACUNA_ENGINE_PROVIDER_ENDPOINT_H

#include "engine/provider.h"

int provider_endpoint_open(const struct provider_options *options, struct provider **out,
                           struct err *e);

#endif
