// Counting by the server's own tokenizer, through the routes that servers have for it beside
// OpenAI's: /tokenize of vLLM and SGLang, and /tokenize with /apply-template of llama-server.
//
// Written from vLLM's and SGLang's documentation of their tokenizer routes and from the README of
// llama.cpp's tools/server. One request at a time: planning waits for each count.
#ifndef LACUNA_ENGINE_ENDPOINT_TOKENS_H
#define LACUNA_ENGINE_ENDPOINT_TOKENS_H

#include "engine/endpoint/http.h"
#include "engine/endpoint/retry.h"
#include "engine/provider.h"

struct tokens;
// `url`: the endpoint's; the routes stand where its "/v1" does. Asks once which server it is: a
// server without such a route is ERR_PROVIDER. All but the policy is borrowed.
int tokens_open(const char *url, const char *name, const char *key, const char *ca_file,
                const struct http_limits *limits, const struct retry_policy *retry,
                struct tokens **out, struct err *e);
void tokens_close(struct tokens *t); // NULL is allowed

// Of a text that stands inside others.
int tokens_of_text(struct tokens *t, struct str text, uint32_t *count, struct err *e);
// Of a conversation in the server's template, up to where the reply begins.
int tokens_of_chat(struct tokens *t, const struct provider_message *messages, size_t message_count,
                   uint32_t *count, struct err *e);

#endif
