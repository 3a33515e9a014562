// Counting by the server's own tokenizer, through the routes that servers have for it beside
// OpenAI's. Which one answers is found out by asking:
//
//   /tokenize, given messages: vLLM ("Tokenizer API" of its OpenAI-compatible server; TokenizeChat-
//     Request in vllm/entrypoints)
//   /apply-template, then /tokenize of the text: llama-server (README of llama.cpp's tools/server)
//   /tokenize of texts alone: SGLang (native APIs; serving_tokenize.py)
//   /extras/tokenize/count of texts alone: llama-cpp-python (llama_cpp/server/app.py), which puts
//     the start token before each
//
// The last two do not know the chat template, so a conversation is counted as its texts.
// One request at a time: planning waits for each count.
#ifndef LACUNA_ENGINE_ENDPOINT_TOKENS_H
#define LACUNA_ENGINE_ENDPOINT_TOKENS_H

#include "engine/endpoint/http.h"
#include "engine/endpoint/retry.h"
#include "engine/provider.h"

struct tokens;
// `url`: the endpoint's; the routes stand where its "/v1" does. Asks once which server it is: a
// server without such a route is ERR_PROVIDER. `extra`: further keys of requests (NULL: none),
// those that change what a template writes go along. All but the policy is borrowed.
int tokens_open(const char *url, const char *name, const json_t *extra, const char *key,
                const char *ca_file, const struct http_limits *limits,
                const struct retry_policy *retry, struct tokens **out, struct err *e);
void tokens_close(struct tokens *t); // NULL is allowed

// Of a text that stands inside others.
int tokens_of_text(struct tokens *t, struct str text, uint32_t *count, struct err *e);
// False: the route does not know the template.
bool tokens_know_template(const struct tokens *t);
// Of a conversation in the server's template, up to where the reply begins; of its texts alone
// where the template is not known.
int tokens_of_chat(struct tokens *t, const struct provider_message *messages, size_t message_count,
                   uint32_t *count, struct err *e);

#endif
