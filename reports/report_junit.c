// junit.xml: one test case per gate or, without gates, per cell and constraint. A case that cannot
// be decided is skipped, a failed gate is a failure; cells without gates only report their numbers.
#include "reports/escape.h"
#include "reports/junit.h"
#include "reports/layout.h"

#include <string.h>

static void add_cell(const struct summary *s, const struct summary_table *t,
                     const struct summary_cell *c, struct buf *out) {
    struct buf name = {0}, class_name = {0};
    char interval[32];
    layout_interval(&c->rate, interval);
    buf_printf(&class_name, "%s.%s", s->experiment, t->model);
    buf_printf(&name, "%s at %s@%s, %d tokens", t->constraint, s->places[c->column].placement,
               s->places[c->column].place, s->lengths[c->length]);
    buf_add_c(out, "  <testcase");
    junit_attribute(out, "classname", buf_str(&class_name));
    junit_attribute(out, "name", buf_str(&name));
    buf_printf(out, " time=\"0\">\n    <system-out>met %d/%d, %s%s</system-out>\n  </testcase>\n",
               c->rate.met, c->rate.n, interval, c->rate.underpowered ? ", underpowered" : "");
    buf_free(&name);
    buf_free(&class_name);
}

int report_junit(const struct record *r, const struct summary *s, struct buf *out, struct err *e) {
    (void)r;
    (void)e;
    int tests = s->gate_count, failures = 0, skipped = 0;
    for (int i = 0; i < s->gate_count; i++) {
        failures += s->gates[i].result == GATE_FAILED;
        skipped += s->gates[i].result == GATE_UNDECIDED;
    }
    if (s->gate_count == 0)
        for (int t = 0; t < s->table_count; t++) tests += s->tables[t].cell_count;
    buf_add_c(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    junit_attribute(out, "name", str_from(s->experiment));
    buf_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\">\n", tests, failures,
               skipped);
    for (int i = 0; i < s->gate_count; i++) junit_gate(s->experiment, &s->gates[i], out);
    if (s->gate_count == 0)
        for (int t = 0; t < s->table_count; t++)
            for (int i = 0; i < s->tables[t].cell_count; i++)
                add_cell(s, &s->tables[t], &s->tables[t].cells[i], out);
    buf_add_c(out, "</testsuite>\n");
    return 0;
}
