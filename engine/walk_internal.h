// What the files of the walk share.
#ifndef LACUNA_ENGINE_WALK_INTERNAL_H
#define LACUNA_ENGINE_WALK_INTERNAL_H

#include "engine/walk.h"
#include "engine/watch.h"

enum leaf_state {
    LEAF_FREE,
    LEAF_WAITING, // submitted
    LEAF_READING, // its prompt is being computed
    LEAF_GROWING, // its reply is
    LEAF_ENDED,   // to be delivered
    LEAF_KEPT     // delivered; ids and KV of the prompt stay for others to share
};

struct leaf {
    enum leaf_state state;
    uint64_t order; // of submission
    uint64_t used;  // when it was last begun or shared
    struct arena *arena;
    int64_t ticket;
    struct provider_ids ids; // the prompt
    struct provider_generation generation;
    struct rng sampling;
    struct kv_sequence *sequence; // from LEAF_READING on; of a failed leaf with what was computed
    struct continuation reply;
    struct watch watch;
    int32_t last;   // sampled, not yet passed
    int32_t chosen; // by the pass that runs; counts only when the pass succeeds
    bool failed;
    struct err failure;
    uint32_t shared_tokens;
    uint64_t prefill_ns, decode_ns, cpu_ns; // its share of each pass, by rows
};

struct walk {
    struct session *session;
    const struct continuation_vocabulary *vocabulary;
    struct leaf *leaf;
    int leaves;    // in flight or kept
    int in_flight; // at most
    uint64_t submitted, clock;
    struct leaf **listed;       // [leaves]
    struct session_item *items; // [leaves], of one pass
};

// Leaves in one state, by order of submission, into `out` [leaves]. Returns how many.
int walk_leaves(struct walk *w, enum leaf_state state, struct leaf **out);
void walk_leaf_end(struct walk *w, struct leaf *l);

// walk_begin.c: gives waiting leaves their sequences, in order, as long as there is room for them
// and a pass is not yet filled.
void walk_begin(struct walk *w);

// walk_pass.c: one pass for all that grow and as many that read as fit. False: interrupted, with
// everything as it was.
bool walk_pass(struct walk *w);

#endif
