// A model ready to run: weights in a backend, the KV cache, and everything that a forward pass
// needs. All memory is planned before the weights are loaded and taken when the session opens;
// forward passes allocate nothing. One thread uses a session.
#ifndef LACUNA_ENGINE_SESSION_H
#define LACUNA_ENGINE_SESSION_H

#include "engine/forward.h"
#include "engine/kv.h"

#include <stdatomic.h>

struct session_options {
    const char *backend;     // "auto", "cpu", "cuda"; NULL: auto
    const char *numerics;    // "bf16-1", "f32"; NULL: bf16-1
    const char *weights;     // "auto", "unpacked", "stored"; NULL: auto
    const char *op_table;    // NULL: the fastest that proves itself
    const char *products;    // of a GPU: "own", "admitted", "any"; NULL: auto (engine/backend.h)
    const char *cache;       // folder of what later runs may use again; NULL: none
    bool no_graphs;          // of a GPU: engine/backend.h
    int threads;             // 0: as many as the process may use
    uint32_t context_tokens; // most positions of a sequence; 0: the trained context
    bool beyond_trained;     // context_tokens may exceed the trained context
    uint32_t chunk_tokens;   // rows of one pass; 0: the backend's choice. Changes no bit
    uint32_t sequences;      // at once; 0: 1
    uint32_t watched;        // most ranges that the items of one call watch together
    // KV pages: as many as memory gives between the two. 0: one context and a page for a fork; the
    // least again.
    uint32_t pages_least, pages_most;
    uint64_t memory_bytes; // bound on everything but the weights; 0: from the machine
    const char *lower; // what takes less memory when it is lowered; NULL: the context. For messages
    const atomic_bool *cancel; // looked at between passes; NULL: never
};

// What a session takes, decided before anything is loaded.
struct session_plan {
    enum backend_storage storage; // BACKEND_BOTH: at most; what it became, session_storage says
    const char *storage_why;
    uint32_t context_tokens, chunk_tokens, sequences, pages, watched;
    uint64_t page_bytes;
    uint64_t weights_bytes, kv_bytes, activation_bytes, scratch_bytes, total_bytes;
    uint64_t free_bytes; // what the device could give
};

// The context that is meant: `asked`, or the trained one for 0. Beyond it only with leave
// (ERR_CONFIG).
int session_context_tokens(const struct model *m, uint32_t asked, bool beyond_trained,
                           uint32_t *out, struct err *e);

// Refuses (ERR_CONFIG) a context beyond the trained one without leave, and (ERR_MEMORY, with the
// table of bytes) what does not fit; *out is then the least that would do.
int session_plan_make(struct backend *b, const struct model *m, const struct session_options *o,
                      struct session_plan *out, struct err *e);

// Sizes of the largest calls under a plan.
struct backend_limits session_limits(const struct model *m, const struct session_plan *p);

// Puts into the plan what the weights became when they were loaded.
void session_plan_settle(struct backend *b, const struct model *m, enum backend_storage storage,
                         struct session_plan *p);

struct session;

// Borrows the model for its life.
int session_open(const struct model *m, const struct session_options *o, struct session **out,
                 struct err *e);
void session_close(struct session *s); // NULL is allowed
const struct session_plan *session_plan(const struct session *s);
const struct model_config *session_model(const struct session *s);
struct backend *session_backend(const struct session *s);
struct kv_pool *session_kv(const struct session *s);
const struct weights *session_weights(const struct session *s);
// The form of the weights that a product of this many rows takes.
enum backend_storage session_storage(const struct session *s, uint32_t rows);

// Sequences: kv_sequence_open, kv_fork, kv_truncate, kv_sequence_close on session_kv.

// Ranges of positions whose share of attention is wanted of the last row of an item.
struct session_watch {
    const struct backend_key_range *ranges;
    uint32_t count;
    float *shares; // [L][H][count], there when the sink gets the row and after the call
};

enum session_logits { SESSION_NONE, SESSION_LAST, SESSION_ALL };

// `count` ids that follow what the sequence already holds. A sequence stands in one item only.
struct session_item {
    struct kv_sequence *sequence;
    const int32_t *ids;
    uint32_t count; // >= 1
    enum session_logits logits;
    const struct session_watch *watch; // NULL: nothing is watched; the last row must be wanted
    struct token_draw draw;            // of the token behind the last row; zeros: the largest logit
};

// The numbers behind one token: what the model expects after it.
struct session_row {
    uint32_t item;       // which of the call's items
    uint32_t index;      // which of the item's ids
    uint32_t position;   // absolute
    int32_t chosen;      // by the item's draw; not of its last row: the largest logit
    const float *logits; // on the device
};

struct session_sink {
    int (*take)(void *context, struct session *s, const struct session_row *row, struct err *e);
    void *context;
};

// Runs all items, in passes of at most chunk_tokens rows that may mix items. Rows are handed out by
// item and index, ascending; a `sink` that is NULL takes none of them. What does not fit the
// context is refused before anything is computed, never cut. On failure every sequence is as long
// as before.
int session_forward(struct session *s, const struct session_item *items, uint32_t count,
                    const struct session_sink *sink, struct err *e);

// For use inside the sink. The row's V logits on the host, valid until the next row.
const float *session_row_logits(struct session *s, const struct session_row *row);
float session_row_log_sum_exp(struct session *s, const struct session_row *row);

#endif
