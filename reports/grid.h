// Renders a summary's grids: tables that only some experiments have.
#ifndef LACUNA_REPORTS_GRID_H
#define LACUNA_REPORTS_GRID_H

#include "reports/summary.h"

void grids_html(const struct summary *s, struct buf *out);
void grids_markdown(const struct summary *s, struct buf *out);

#endif
