// The one forward pass of a decoder: prefill, decode and teacher forcing are the same loop over the
// same layers, and every difference between models is data (`model_config`).
//
// Pre-norm decoder with RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et al. 2021),
// grouped query attention (Ainslie et al. 2023) and a gated feed-forward (Shazeer 2020).
// Arithmetic: NUMERICS.md. A row's numbers depend on its own sequence's earlier tokens and on
// nothing else.
#ifndef LACUNA_ENGINE_FORWARD_H
#define LACUNA_ENGINE_FORWARD_H

#include "engine/weights.h"

struct forward;

// A watched row: the last one of a span, and wanted. Its span and its wanted span point to the two
// watches; shares on the device are the pass's own.
struct forward_watch {
    struct backend_watch of_span, of_wanted;
    float *shares; // host, [L][H][count]; there when the row is handed out
};

// One pass. Its sequences' pages have room for the rows; the wanted rows are those whose logits are
// wanted. Only the last layer makes use of it: the others need every row.
struct forward_batch {
    struct backend_pass pass;
    const struct token_draw *draws; // [wanted_count] of the wanted rows
    struct forward_watch *watches;
    uint32_t watch_count;
};

// Called for each wanted row in ascending order. `logits` [V] is on the device and valid during the
// call; all are finite, and `chosen` is the id that the row's draw gives.
struct forward_sink {
    int (*take)(void *context, uint32_t row, int32_t chosen, const float *logits, struct err *e);
    void *context;
};

// Device bytes of the buffers for calls of up to `rows` rows and `watched` ranges over all watches.
uint64_t forward_bytes(const struct backend *b, const struct model_config *c, uint32_t rows,
                       uint32_t watched);
struct backend_limits forward_limits(const struct model_config *c, uint32_t rows);

// Borrows everything it is given. What the layer loop cannot compute is refused by name.
int forward_open(struct backend *b, const struct model_config *c, const struct weights *w,
                 uint32_t rows, uint32_t watched, struct forward **out, struct err *e);
void forward_close(struct forward *f); // NULL is allowed

// Appends K and V of the rows to their sequences' pages and hands out the wanted logits. Allocates
// nothing. A value that is not finite is ERR_NUMERIC naming layer and position.
int forward_run(struct forward *f, const struct forward_batch *batch,
                const struct forward_sink *sink, struct err *e);

#endif
