// The part of the HTML report that gives each model in a few numbers.
#ifndef LACUNA_REPORTS_HTML_AGGREGATE_H
#define LACUNA_REPORTS_HTML_AGGREGATE_H

#include "reports/summary.h"

void html_aggregate(const struct summary *s, struct buf *out);

#endif
