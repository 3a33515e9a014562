// What the renderers share: finding tables and trials of a summary, and the spelling of rates.
#ifndef LACUNA_REPORTS_LAYOUT_H
#define LACUNA_REPORTS_LAYOUT_H

#include "reports/summary.h"

// "6/8", "75 %", "41 to 93 %"; an empty rate is "-".
void layout_fraction(const struct summary_rate *r, char out[32]);
void layout_percent(double share, char out[16]);
void layout_interval(const struct summary_rate *r, char out[32]);

// In points, for printing with one decimal: never "-0.0".
double layout_tenths(double share);

// "+12.5 points (2.1 to 22.9)" and "71 % (60 to 80)"; without an interval "(underpowered)"; "-"
// where it is not defined.
void layout_points(const struct summary_estimate *e, char out[64]);
void layout_share(const struct summary_estimate *e, char out[64]);

// "p = 0.0312", "p < 0.0001".
void layout_p(double p, char out[16]);

// "508 to 515": how long the table's prompts really are, where that is not the length asked;
// otherwise false.
bool layout_real_length(const struct summary *s, const struct summary_table *t, int length,
                        char out[32]);
// "512", or "512 (508 to 515)".
void layout_length(const struct summary *s, const struct summary_table *t, int length,
                   char out[64]);

// The cell of a table at a length and a place (indices), or NULL.
const struct summary_cell *layout_cell(const struct summary_table *t, int length, int place);

// Does any cell of the table lie in this placement row?
bool layout_has_row(const struct summary *s, const struct summary_table *t, const char *placement);

// Places of one placement row that the table has cells for, in ascending depth, anchors behind;
// returns their count.
int layout_row_places(const struct summary *s, const struct summary_table *t, const char *placement,
                      int *places, int most);

// The distinct placement rows in order of appearance; returns their count.
int layout_rows(const struct summary *s, const char **rows, int most);

#define LAYOUT_MOST 256

// "moves", or "move together" of "order+day".
const char *layout_moves(const char *moved);
const char *layout_gate_word(enum summary_gate_result r); // "passed", "failed", "cannot decide"

#endif
