// The coarse seam: where prompts go in and replies come out. Local engine, served endpoint,
// scripted fixture and simulated subject are rows of it; evals/run.c above owns order and
// durability. Asynchronous: many requests may be in flight, completions come in any order.
#ifndef LACUNA_ENGINE_PROVIDER_H
#define LACUNA_ENGINE_PROVIDER_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/reasoning.h"
#include "engine/base/rng.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct provider_call {
    struct str name, arguments; // arguments: a JSON object as json_python writes it
};

struct provider_message {
    struct str role; // "system", "user", "assistant", "tool"; what a template allows is its own
                     // matter
    struct str text;
    const struct provider_call *calls; // tools that an assistant's turn calls
    size_t call_count;
    // Of the first message: the tools that the conversation offers, each a definition in OpenAI's
    // spelling as json_python writes it.
    const struct str *tools;
    size_t tool_count;
};

// A run of prompt text. Template pieces are tokenized with control tokens on, all other text with
// them off (DESIGN section 4.3); neighbouring pieces are tokenized as one text between control
// tokens, as the reference tokenizers do.
struct provider_piece {
    struct str text;
    bool control; // written by the chat template
};

struct provider_ids {
    int32_t *ids;
    size_t count;
};

enum provider_finish {
    FINISH_STOP,
    FINISH_LENGTH,
    FINISH_STOP_STRING,
    FINISH_FILTER, // a server's filter cut it
    FINISH_ERROR,
    FINISH_REASONING // the reasoning's own budget ended while the model was thinking
};
// "stop", "length", "stop_string", "filter", "error", "reasoning_length"
const char *provider_finish_name(enum provider_finish f);

struct provider_generation {
    int max_tokens; // of reasoning and answer together
    // Of these, for the reasoning alone: neither part takes from the other. 0: one budget for both.
    // A server has only the sum.
    int reasoning_tokens;
    const struct reasoning_tags *reasoning; // NULL: the model has none
    double temperature;                     // 0: greedy
    double top_p;                           // 1: all
    const struct str *stop;
    int stop_count;
};

// Nothing of it borrowed.
struct provider_generation provider_generation_copy(const struct provider_generation *g,
                                                    struct arena *a);

// What the outcome depends on (identity.json, models[]) and what it does not (manifest.json).
struct provider_identity {
    json_t *identity;     // {"sha256", "tokenizer_sha256", "template_sha256", "architecture", ...}
    json_t *manifest;     // {"path", "bytes", "parameters", "trained_context", ...}
    const char *numerics; // "bf16-1"; "none" when bits are not under our control
    const char *backend;  // "cpu", "served", "fixture", "simulated"
};

// What a run would take on this machine, known without loading; all 0 where nothing is.
struct provider_memory {
    const char *weights;    // how they would be held: "unpacked", "stored"; "unpacked and stored"
                            // at most, for what is faster is measured when they are loaded
    uint64_t weights_bytes; // in that form
    uint64_t least_bytes;   // beside the weights, with which one prompt at a time still runs
    uint64_t span_bytes;    // in either for each watched span of a request, unless opened for these
    uint64_t planned_bytes; // beside the weights, of what is free and the bound; 0: does not fit
    int replies;            // of the longest prompts with nothing in common that this has room for
};

struct provider_capabilities {
    bool exact_ids;     // tokenize gives the ids that the model consumes
    bool likely_ids;    // those of a tokenizer that stands for the model's
    bool evidence;      // says what attention the spans of a request get; has exact ids
    bool deterministic; // equal requests give equal bytes
    bool reads_key;     // the reply depends on the trial's key too (a script, a made-up subject)
    int in_flight;      // how many requests it takes at once
    uint32_t context_tokens; // prompt and reply together; 0: not limited by the provider
    struct str start_text;   // what its tokenizer puts before any text by itself; n 0: nothing
    struct provider_memory memory;
};

// Prompt tokens whose share of attention is wanted. Spans with one subject are looked at as one.
struct provider_span {
    int subject; // 0 .. subject_count - 1
    uint32_t first_token, tokens;
};

// What one subject gets, out of 1. The row of a token says where the model looks when it has read
// that token and chooses the next: the last prompt token's row gives the first reply token, and a
// reply token's row gives the one behind it. Arrays are [layers][heads].
struct provider_attention {
    const double *prompt;     // of the last prompt token's row
    const double *reply_mean; // over the rows of reply tokens, ascending; NULL: there are none,
    const double *reply_max;  // for the first token ended the reply
    double prompt_tokens, reply_tokens; // share of the tokens that the rows see; the mean of it
};

struct provider_request {
    int64_t ticket;  // the caller's number, comes back with the completion; trials in plan order
    const char *key; // trial key, for messages and fixture rules
    const struct provider_piece *pieces;
    size_t piece_count;
    struct provider_ids ids; // the prompt's ids (exact_ids), else count 0
    uint32_t prompt_tokens;  // as planned: what a server says is compared with it
    const struct provider_generation *generation;
    struct rng sampling;               // the stream of this reply (NUMERICS, "Choice of a token")
    const struct provider_span *spans; // watched; none unless opened with watched_spans
    int span_count, subject_count;
};

// What a server says about one reply.
struct provider_served {
    int64_t prompt_tokens; // -1: it does not say
    // As it calls the model and its own state, and the program that answers; NULL: it does not say.
    const char *model, *fingerprint, *server;
    int attempts; // requests that this reply took
};

struct provider_completion {
    int64_t ticket;
    bool ok;          // false: `reason` says what failed; the run loop records an error trial
    bool undelivered; // with ok false: the model did not get this prompt; an invalid trial
    const char *reason_code; // "engine", "hang", "cancelled", ...
    const char *reason_text;
    struct str text;         // reply bytes; a stop string and what follows it is left out
    struct str reasoning;    // what a server gave apart from the reply as thought; n 0: nothing
    struct provider_ids ids; // reply ids without the stop token (exact_ids only)
    int tokens;              // of the reply; -1: a server does not say
    // Tokens of the reply, or beside it, that are thinking: those whose first byte lies in a block
    // (engine/base/reasoning.h), or what a server says.
    bool reasoning_counted;
    int reasoning_tokens;
    enum provider_finish finish;
    int stop_id;                                // the token that ended the reply, -1 when none did
    const struct provider_attention *attention; // [subject_count] of the request; NULL: not watched
    uint32_t layers, heads;
    const struct provider_served *served; // NULL: not a served model
    // Facts for timings.jsonl only. Where requests are computed together each gets its part of the
    // time, by tokens, so that sums over requests are what the provider took.
    double wall_ms, cpu_ms, prefill_ms, decode_ms;
    int shared_tokens; // prompt tokens whose KV was reused
};

struct provider;

struct provider_ops {
    const char *kind; // "local", "served", "fixture", "simulated"
    // Chat template over messages, with the generation prompt: pieces in order, in the arena.
    int (*render)(struct provider *p, const struct provider_message *messages, size_t count,
                  struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                  struct err *e);
    // Ids of the pieces. Without exact and likely ids: a count alone, ids NULL.
    int (*tokenize)(struct provider *p, const struct provider_piece *pieces, size_t count,
                    struct arena *a, struct provider_ids *out, struct err *e);
    // The bytes that one id stands for (borrowed). Concatenated they are the tokenized text.
    struct str (*id_bytes)(struct provider *p, int32_t id);
    // Offers a request; *accepted false: full, call next first. The request is copied as needed.
    int (*submit)(struct provider *p, const struct provider_request *request, bool *accepted,
                  struct err *e);
    // Waits for a completion; its memory is in the arena. Fails only when the provider itself is
    // broken; *any false: nothing is in flight (or cancelled).
    int (*next)(struct provider *p, struct arena *a, struct provider_completion *out, bool *any,
                struct err *e);
    // Thread and signal safe: makes next return soon.
    void (*cancel)(struct provider *p);
    void (*close)(struct provider *p);
};

struct provider {
    const struct provider_ops *ops;
    struct provider_capabilities can;
    struct provider_identity what;
};

// A model behind an OpenAI-compatible server (engine/endpoint/). All borrowed.
struct provider_endpoint {
    const char *url;            // what the routes are added to: "https://host/v1"
    const char *name;           // the model's, as the server knows it
    const char *api;            // "chat", "text" or "ids": what is sent
    const char *max_tokens_key; // under which the reply's budget is sent
    const char *body;           // JSON object of further keys of the request; NULL: none
    const char *key_variable;   // where the key was read from, for messages; NULL: no key
    const char *key;            // secret; NULL: none was found
    const char *ca_file;        // certificates to trust; NULL: the system's
    const char *count_file;     // GGUF file whose tokenizer counts, or NULL
    bool count_there;           // the server's tokenizer counts; with neither, bytes estimate
    bool stream;                // replies come in pieces; what they say is the same
    int in_flight, attempts, reply_seconds;
    int stall_seconds;     // longest silence in the middle of a reply
    int32_t shortfall_ppm; // how far the server's count of a prompt may stay below ours; -1: the
                           // default of the way of counting
};

// How to open one. Strings are borrowed for the provider's life.
struct provider_options {
    const char *id; // the experiment's name for it
    // One of the four is given, files resolved; the others are NULL.
    const char *path;                         // model file
    const struct provider_endpoint *endpoint; // served model
    const char *fixture;                      // rules file of the scripted fixture
    const char *simulated;                    // subject file of a simulated subject
    const char *backend;                      // "auto", "cpu", "cuda"
    const char *numerics;                     // "bf16-1", "f32"
    const char *weights;                      // "auto", "unpacked", "stored"
    const char
        *chat_template; // NULL: by the identity of the file's own; "chatml", "llama3", "plain"
    const char *pre_tokenizer; // NULL: the file's own; else an explicit override, recorded
    uint32_t context_tokens;   // KV is planned for this many positions in a sequence
    bool beyond_trained;       // context_tokens may exceed the trained context
    int threads;               // 0: as many as the machine has
    const char *op_table;      // of the CPU, by name; NULL: the fastest
    const char *cache;         // folder of what later runs may use again; NULL: none
    uint64_t memory_bytes;     // bound on KV and scratch; 0: from the machine
    uint32_t watched_spans;    // most of one request; 0: no evidence
    bool plan_only; // tokenizer and template only: submit is refused, weights stay closed
};

int provider_open(const struct provider_options *options, struct provider **out, struct err *e);

// How prompts are measured: "exact", "counted" (by a tokenizer that stands for the model's, or the
// server's own), "estimated".
const char *provider_length_word(const struct provider *p);

#endif
