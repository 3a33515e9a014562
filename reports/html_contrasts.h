// The parts of the HTML report that compare places and models.
#ifndef LACUNA_REPORTS_HTML_CONTRASTS_H
#define LACUNA_REPORTS_HTML_CONTRASTS_H

#include "reports/summary.h"

void html_contrasts(const struct summary *s, struct buf *out);

#endif
