// How fast a model runs here, each test beside the least time that the machine's measured ceilings
// allow for its work: `lacuna bench`.
//
// Tests run in rounds, one of each a round, so that a machine that becomes slower or faster
// favours none. Directly before each the ceilings are measured again, and shares are formed round
// by round: time allowed by the ceiling / time taken. What is kept is the median of the rounds.
#ifndef LACUNA_ENGINE_BENCH_H
#define LACUNA_ENGINE_BENCH_H

#include "engine/session.h"

#define BENCH_LIST_MOST 16
#define BENCH_REPEATS_MOST 64
#define BENCH_BATCH_MOST 64

struct bench_options {
    struct session_options session; // context, sequences and pages are set from the tests
    uint32_t prompts[BENCH_LIST_MOST], prompt_count; // prefill: tokens
    uint32_t depths[BENCH_LIST_MOST], depth_count;   // decode: tokens before
    uint32_t reply_tokens;                           // decode: tokens of each
    uint32_t batch; // sequences that decode together behind the first depth; 0: no such test
    int repeats;
    bool ops; // also products at the model's own shapes, attention at its heads
    void (*progress)(int round, int of); // told before each; NULL: nobody is told
};

// What can hold a test back. `issue`: what the cores can do by this op's instructions on data in
// their own caches. It is measured for few rows, where each weight and key serves so little
// arithmetic that reading it into place is the work.
enum bench_bound { BENCH_COMPUTE, BENCH_MEMORY, BENCH_ISSUE, BENCH_BOUNDS };
extern const char *const bench_bound_names[BENCH_BOUNDS];

// Of the rounds.
struct bench_range {
    double median, least, most;
};

struct bench_line {
    const char *kind;     // "prefill", "decode", "product", "attention"
    const char *name;     // "pp512", "tg32", "tg32@2048", "tg32 x 16", "qkv 576x960, 4 rows"
    uint32_t tokens;      // of all sequences together; 0: a single op
    uint32_t depth;       // tokens before
    uint32_t rows;        // of a pass or an op: sequences of decode, ...
    uint64_t flop, bytes; // what has to be computed and read at least
    struct bench_range seconds, tokens_per_s;
    struct bench_range share;       // of the ceiling that allows least; above 1 only by noise
    double allowed_s[BENCH_BOUNDS]; // least time by each ceiling, medians; 0: not measured
    int held_by;                    // enum bench_bound, the largest of these; -1: none is known
};

struct bench_result {
    double load_s;                       // model file to session: weights loaded, memory taken
    uint64_t peak_bytes;                 // most resident memory of the process
    struct bench_range flop_per_s;       // ceilings: arithmetic, and reading the memory of the
    struct bench_range read_bytes_per_s; // test that reads most again and again
    struct bench_line *lines;            // [count]
    int count;
};

// What does not fit the model's context (ERR_CONFIG) or the memory (ERR_MEMORY) is refused before
// anything is computed. The session stays open for its backend's facts: the caller closes
// *session, also after a failure.
int bench_run(const struct model *m, const struct bench_options *o, struct arena *a,
              struct session **session, struct bench_result *out, struct err *e);

#endif
