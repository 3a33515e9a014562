#include "reports/comparison.h"

#include "reports/layout.h"

const char *comparison_answer_name(enum comparison_answer a) {
    static const char *const names[] = {"regressed", "improved", "no difference shown",
                                        "underpowered"};
    return names[a];
}

void comparison_change(const struct comparison_row *r, char out[64]) {
    layout_points(&(struct summary_estimate){.defined = true,
                                             .has_interval = r->has_interval,
                                             .value = r->effect,
                                             .low = r->low,
                                             .high = r->high},
                  out);
}

const struct record_outcome *comparison_outcome(const struct baseline *b,
                                                const struct baseline_trial *t) {
    return b->record == NULL || t->trial < 0 ? NULL : b->record->outcomes[t->trial];
}
