// The layers x heads maps of a report whose evidence is full.
#ifndef LACUNA_REPORTS_HTML_HEADS_H
#define LACUNA_REPORTS_HTML_HEADS_H

#include "reports/summary.h"

void html_heads(const struct summary *s, struct buf *out); // nothing without maps

#endif
