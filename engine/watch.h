// Where a reply looks: what the rows that choose its tokens give to watched spans of its prompt
// (NUMERICS.md, Evidence; which rows: struct provider_attention).
#ifndef LACUNA_ENGINE_WATCH_H
#define LACUNA_ENGINE_WATCH_H

#include "engine/model.h"
#include "engine/provider.h"
#include "engine/session.h"

struct watch {
    struct session_watch item; // for the item whose last row is the next one; count 0: no spans
    const struct model_config *model;
    const struct provider_span *spans; // copied
    int subject_count;
    uint32_t prompt_tokens;
    uint32_t rows; // of the last prompt token and the reply's tokens, so far
    // [subject_count][L][H]: the row at hand, and over the reply's rows
    double *row, *prompt, *sum, *most;
    double *prompt_tokens_share, *tokens_sum; // [subject_count]
};

// Takes all memory from the arena.
void watch_start(struct watch *w, const struct model_config *c, const struct provider_request *r,
                 struct arena *a);
// The item's shares are those of the next row: of the last prompt token, then of each reply token.
void watch_add(struct watch *w);
// What was seen, in the arena; NULL where nothing was to be watched.
const struct provider_attention *watch_end(const struct watch *w, struct arena *a);

#endif
