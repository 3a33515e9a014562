#include "evals/compare.h"

#include "evals/gates.h"
#include "evals/tally.h"

int compare_gates(struct comparison *c, const struct record *r, const struct experiment *x,
                  const struct compare_options *options, struct arena *a, struct err *e) {
    struct tally t;
    struct gates_against against = {c->before, options};
    if (c->refused != NULL) return 0;
    TRY(tally_make(x, r->trials, r->trial_count, r->outcomes, a, &t, e));
    return gates_judge(&t, r, r->done_count == r->trial_count, &against, a, &c->gates,
                       &c->gate_count, e);
}
