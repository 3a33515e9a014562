// Token ids of all prompts of a plan, held compactly: the prompts of one repeat share its filler,
// so a prompt is held as runs of another one's ids with what differs between them.
#ifndef LACUNA_EVALS_PLAN_IDS_H
#define LACUNA_EVALS_PLAN_IDS_H

#include "engine/provider.h"

struct ids_run {
    const int32_t *ids;
    uint32_t count;
};
struct plan_ids {
    struct ids_run *runs;
    uint32_t run_count;
    uint32_t count; // of ids
};

// Holds `ids` in the arena. *base is a prompt of the same repeat, model and length that was held
// before; with count 0 it becomes this one.
struct plan_ids plan_ids_hold(const struct provider_ids *ids, struct provider_ids *base,
                              struct arena *a);
// How many ids at the beginning are equal.
uint32_t plan_ids_common(const struct plan_ids *a, const struct plan_ids *b);
// Order by ids, a prefix first: negative, 0, positive.
int plan_ids_order(const struct plan_ids *a, const struct plan_ids *b);

#endif
