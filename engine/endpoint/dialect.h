// What a request says and what a reply means, in the spelling that OpenAI began and vLLM, SGLang,
// llama-server, Ollama and most hosted services speak. Texts in, texts out: no network.
//
// Written from the published references of /v1/chat/completions and /v1/completions (OpenAI's API
// reference; the documentation of vLLM's and SGLang's OpenAI-compatible servers, of llama.cpp's
// tools/server and of Ollama's OpenAI compatibility).
#ifndef LACUNA_ENGINE_ENDPOINT_DIALECT_H
#define LACUNA_ENGINE_ENDPOINT_DIALECT_H

#include "engine/provider.h"

enum dialect_api {
    DIALECT_CHAT, // messages; the server applies its chat template
    DIALECT_TEXT, // one text, rendered here
    DIALECT_IDS,  // token ids, tokenized here
};
bool dialect_api_named(const char *word, enum dialect_api *out); // "chat", "text", "ids"
const char *dialect_route(enum dialect_api api);                 // "/chat/completions"

// ---- asking ----

struct dialect_settings {
    enum dialect_api api;
    const char *name;       // of the model, as the server knows it
    const char *max_tokens; // the key of the reply's budget: "max_tokens"
    struct str start;       // a text does not begin with it: the server's tokenizer adds it
    bool stream;            // the reply comes in pieces, with its usage at the end
    const json_t *extra;    // the experiment's `body`: added to the request; null takes a key out
};
// A conversation as pieces of ChatML, with its tools and the calls of them. ERR_CONFIG for a role
// that the pieces cannot hold. In the arena.
int dialect_render(const struct provider_message *messages, size_t count, struct arena *a,
                   struct provider_piece **pieces, size_t *piece_count, struct err *e);
// Such pieces give their messages back. ERR_PROVIDER when the
// pieces are no such conversation. Texts are borrowed or in the arena.
int dialect_messages(const struct provider_piece *pieces, size_t count, struct arena *a,
                     struct provider_message **out, size_t *message_count, struct err *e);
// Puts "messages" and, where the first one brings some, "tools" into a request; ERR_PROVIDER when a
// text is not UTF-8. On failure `o` is to be dropped.
int dialect_put_messages(json_t *o, const struct provider_message *messages, size_t count,
                         struct err *e);
int dialect_put_text(json_t *o, const char *key, struct str text, struct err *e); // likewise
// Appends the body of the request; `seed` is sent unless the reply is greedy.
int dialect_request(const struct dialect_settings *s, const struct provider_request *r,
                    uint32_t seed, struct buf *out, struct err *e);
// ERR_CONFIG when the experiment's `body` would change what lacuna itself decides.
int dialect_check_extra(const json_t *extra, struct err *e);

// ---- what came back ----

#define DIALECT_UNKNOWN (-1) // a count that the server does not tell

struct dialect_reply {
    const char *code; // NULL: a reply; else why not: "server_error", "no_choice", ...
    const char *why;  // with code: one line
    int status;       // of an error that names one ({"error": {"code": 429}}); 0: none
    struct str text, reasoning;
    bool has_reasoning;
    enum provider_finish finish;
    int64_t prompt_tokens, tokens, reasoning_tokens;
    const char *model, *fingerprint; // as the server reports them; NULL: it does not
};
// The body of a response with status 200. All in the arena.
void dialect_reply_read(enum dialect_api api, struct str body, struct arena *a,
                        struct dialect_reply *out);
// What a document says as an error, whoever wrote it; NULL: it is none.
const json_t *dialect_error(const json_t *o);
// Puts the events of a streamed reply together to the body of the same reply asked for whole. An
// event that is no part of one (an error, garbage) stands for the whole; a body without events
// stays as it is. False: the stream ended before its reply did, so there is none. *out is `body`'s
// or in the arena.
//
// A reply has ended when a finish_reason came, for then no text is missing, or "[DONE]": some
// gateways leave either out.
bool dialect_stream_join(enum dialect_api api, struct str body, struct arena *a, struct str *out);
// What a server says when it refuses: its error's message, else the beginning of the body; on one
// line and short.
const char *dialect_refusal(struct str body, struct arena *a);

#endif
