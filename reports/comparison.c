#include "reports/comparison.h"

const char *comparison_answer_name(enum comparison_answer a) {
    static const char *const names[] = {"regressed", "improved", "no difference shown",
                                        "underpowered"};
    return names[a];
}

const struct record_outcome *comparison_outcome(const struct baseline *b,
                                                const struct baseline_trial *t) {
    return b->record == NULL || t->trial < 0 ? NULL : b->record->outcomes[t->trial];
}
