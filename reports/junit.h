// Test cases of a JUnit file: what CI systems read.
#ifndef LACUNA_REPORTS_JUNIT_H
#define LACUNA_REPORTS_JUNIT_H

#include "reports/summary.h"

void junit_attribute(struct buf *out, const char *name, struct str value);
// One case: failed and undecided (skipped) ones say why; `text` is what it prints.
void junit_case(const char *class_name, const char *name, enum summary_gate_result result,
                const char *why, struct str text, struct buf *out);
// A gate's case: what it asks, what was measured, the trials that flipped.
void junit_gate(const char *class_name, const struct summary_gate *g, struct buf *out);

#endif
