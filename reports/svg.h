// Inline SVG figures of the HTML report. Every mark carries its own numbers as data attributes, so
// that a reader (or a test) can take the figures from the markup.
#ifndef LACUNA_REPORTS_SVG_H
#define LACUNA_REPORTS_SVG_H

#include "reports/summary.h"

// Length (x, ascending) against depth (y, 0 at the top) of one table in one placement row; below it
// a row for the absent arm.
void svg_heat_map(const struct summary *s, const struct summary_table *t, const char *placement,
                  struct buf *out);

// Rate against depth, one line a length with its intervals; dashed: the short arm and the absent
// arm. Nothing when the row has fewer than two depths.
void svg_curves(const struct summary *s, const struct summary_table *t, const char *placement,
                struct buf *out);

// Layers (y, 0 at the top) x heads (x), one map a place.
void svg_heads(const struct summary_heads *h, struct buf *out);

#endif
