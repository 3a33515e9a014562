// compare-junit.xml: one test case per comparison and one per gate. A regression is a failure; an
// overall comparison that cannot tell is skipped.
#include "reports/comparison.h"
#include "reports/junit.h"

#include <stdio.h>
#include <string.h>

#define FLIPS_MOST 50

static enum summary_gate_result result_of(const struct comparison_row *r) {
    if (r->answer == COMPARE_REGRESSED) return GATE_FAILED;
    return r->overall && r->answer == COMPARE_UNDERPOWERED ? GATE_UNDECIDED : GATE_PASSED;
}

// Flips of the row's model, constraint and length.
static void add_flips(const struct comparison *c, const struct comparison_row *r,
                      struct buf *text) {
    bool all = strcmp(r->constraint, "all") == 0;
    int shown = 0;
    for (int64_t i = 0; i < c->flip_count && shown < FLIPS_MOST; i++) {
        const struct comparison_flip *f = &c->flips[i];
        if (strcmp(c->now->models[f->pair->now->model], r->model) != 0) continue;
        if (!all && strcmp(f->constraint, r->constraint) != 0) continue;
        if (r->length != 0 && f->pair->now->length != r->length) continue;
        buf_printf(text, "\n%s %s %s: %s, was %s", i < c->lost ? "lost" : "won", f->pair->now->key,
                   f->constraint, verdict_name(f->now), verdict_name(f->before));
        shown++;
    }
}

static void add_row(const struct comparison *c, const struct comparison_row *r, struct buf *out) {
    struct buf name = {0}, text = {0};
    buf_printf(&name, "%s, %s, %s", r->model, r->constraint, r->scope);
    buf_add_c(&text, r->sentence);
    if (r->answer == COMPARE_REGRESSED) add_flips(c, r, &text);
    junit_case(c->now->experiment, name.p, result_of(r), r->sentence, buf_str(&text), out);
    buf_free(&name);
    buf_free(&text);
}

static void count(enum summary_gate_result r, int *failures, int *skipped) {
    *failures += r == GATE_FAILED;
    *skipped += r == GATE_UNDECIDED;
}

void compare_junit(const struct comparison *c, struct buf *out) {
    bool refused = c->refused != NULL;
    int failures = 0, skipped = refused ? 1 : 0;
    int tests = c->row_count + c->gate_count + (refused ? 1 : 0);
    for (int i = 0; i < c->row_count; i++) count(result_of(&c->rows[i]), &failures, &skipped);
    for (int i = 0; i < c->gate_count; i++) count(c->gates[i].result, &failures, &skipped);
    buf_add_c(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    junit_attribute(out, "name", str_from(c->now->experiment));
    buf_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\">\n", tests, failures,
               skipped);
    if (refused)
        junit_case(c->now->experiment, "compare", GATE_UNDECIDED, c->headline,
                   str_from(c->headline), out);
    for (int i = 0; i < c->row_count; i++) add_row(c, &c->rows[i], out);
    for (int i = 0; i < c->gate_count; i++) junit_gate(c->now->experiment, &c->gates[i], out);
    buf_add_c(out, "</testsuite>\n");
}
