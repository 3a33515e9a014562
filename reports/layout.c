#include "reports/layout.h"

#include <stdio.h>
#include <string.h>

void layout_fraction(const struct summary_rate *r, char out[32]) {
    if (r->n == 0)
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%d/%d", r->met, r->n);
}

void layout_percent(double share, char out[16]) {
    snprintf(out, 16, "%.0f %%", share * 100);
}

void layout_interval(const struct summary_rate *r, char out[32]) {
    if (r->n == 0)
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%.0f to %.0f %%", r->low * 100, r->high * 100);
}

double layout_tenths(double share) {
    double points = share * 100;
    return points > -0.05 && points < 0.05 ? 0 : points;
}

void layout_points(const struct summary_estimate *e, char out[64]) {
    if (!e->defined)
        snprintf(out, 64, "-");
    else if (!e->has_interval)
        snprintf(out, 64, "%+.1f points (underpowered)", layout_tenths(e->value));
    else
        snprintf(out, 64, "%+.1f points (%+.1f to %+.1f)", layout_tenths(e->value),
                 layout_tenths(e->low), layout_tenths(e->high));
}

void layout_share(const struct summary_estimate *e, char out[64]) {
    if (!e->defined)
        snprintf(out, 64, "-");
    else if (!e->has_interval)
        snprintf(out, 64, "%.0f %% (underpowered)", e->value * 100);
    else
        snprintf(out, 64, "%.0f %% (%.0f to %.0f)", e->value * 100, e->low * 100, e->high * 100);
}

void layout_p(double p, char out[16]) {
    if (p < 0.0001)
        snprintf(out, 16, "p < 0.0001");
    else
        snprintf(out, 16, "p = %.4f", p);
}

bool layout_real_length(const struct summary *s, const struct summary_table *t, int length,
                        char out[32]) {
    uint32_t asked = (uint32_t)s->lengths[length], low = 0, high = 0;
    for (int i = 0; i < t->cell_count; i++) {
        const struct summary_cell *c = &t->cells[i];
        if (c->length != length || c->tokens_high == 0) continue;
        if (low == 0 || c->tokens_low < low) low = c->tokens_low;
        if (c->tokens_high > high) high = c->tokens_high;
    }
    if (low == high)
        snprintf(out, 32, "%u", low);
    else
        snprintf(out, 32, "%u to %u", low, high);
    return high > 0 && (low != asked || high != asked);
}

void layout_length(const struct summary *s, const struct summary_table *t, int length,
                   char out[64]) {
    char real[32];
    if (layout_real_length(s, t, length, real))
        snprintf(out, 64, "%d (%s)", s->lengths[length], real);
    else
        snprintf(out, 64, "%d", s->lengths[length]);
}

const struct summary_cell *layout_cell(const struct summary_table *t, int length, int place) {
    for (int i = 0; i < t->cell_count; i++)
        if (t->cells[i].length == length && t->cells[i].column == place) return &t->cells[i];
    return NULL;
}

bool layout_has_row(const struct summary *s, const struct summary_table *t, const char *placement) {
    for (int i = 0; i < t->cell_count; i++)
        if (strcmp(s->places[t->cells[i].column].placement, placement) == 0) return true;
    return false;
}

static bool is_before(const struct summary_place *a, const struct summary_place *b) {
    if ((a->depth < 0) != (b->depth < 0)) return b->depth < 0;
    return a->depth < b->depth;
}

static bool has_place(const struct summary_table *t, int place) {
    for (int i = 0; i < t->cell_count; i++)
        if (t->cells[i].column == place) return true;
    return false;
}

int layout_row_places(const struct summary *s, const struct summary_table *t, const char *placement,
                      int *places, int most) {
    int count = 0;
    for (int i = 0; i < s->place_count && count < most; i++) {
        if (strcmp(s->places[i].placement, placement) != 0 || !has_place(t, i)) continue;
        int at = count++;
        for (; at > 0 && is_before(&s->places[i], &s->places[places[at - 1]]); at--)
            places[at] = places[at - 1];
        places[at] = i;
    }
    return count;
}

int layout_rows(const struct summary *s, const char **rows, int most) {
    int count = 0;
    for (int i = 0; i < s->place_count && count < most; i++) {
        bool known = false;
        for (int j = 0; j < count; j++) known |= strcmp(rows[j], s->places[i].placement) == 0;
        if (!known) rows[count++] = s->places[i].placement;
    }
    return count;
}

const char *layout_moves(const char *moved) {
    return strchr(moved, '+') != NULL ? "move together" : "moves";
}

const char *layout_gate_word(enum summary_gate_result r) {
    return r == GATE_PASSED ? "passed" : r == GATE_FAILED ? "failed" : "cannot decide";
}
