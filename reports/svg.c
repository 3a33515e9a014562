#include "reports/svg.h"

#include "reports/escape.h"
#include "reports/layout.h"

#include <stdio.h>
#include <string.h>

enum {
    CELL_WIDTH = 92,
    CELL_HEIGHT = 46,
    GAP = 3,
    LEFT = 110,
    TOP = 26,
    ARM_GAP = 12,
    REAL_HEIGHT = 14, // room for the real lengths below the lengths
    PLOT_WIDTH = 420,
    PLOT_HEIGHT = 220,
    PLOT_LEFT = 60,
    PLOT_TOP = 14,
    PLOT_BOTTOM = 44,
    LEGEND_WIDTH = 150,
};

// What the tooltip adds to a cell's rate: lift, replies that ended by themselves, what was real.
static void add_details(struct buf *out, const struct summary_cell *c) {
    const struct summary_rate *r = &c->rate;
    if (c->has_lift) buf_printf(out, "; lift over absent %+.0f points", c->lift * 100);
    buf_printf(out, "; of replies that ended by themselves %d/%d", r->finished_met, r->finished_n);
    if (r->near > 0) buf_printf(out, "; near misses %d", r->near);
    if (r->unscored > 0) buf_printf(out, "; unscored %d", r->unscored);
    if (c->tokens_high > 0)
        buf_printf(out, "; real length %u to %u tokens", c->tokens_low, c->tokens_high);
    if (c->depth_mean >= 0)
        buf_printf(out, "; real depth %.1f to %.1f %%", c->depth_real_low / 1000.0,
                   c->depth_real_high / 1000.0);
}

static void add_cell(struct buf *out, int x, int y, const struct summary_rate *r, int length,
                     const char *place, const struct summary_cell *cell) {
    char fraction[32], interval[32];
    layout_fraction(r, fraction);
    layout_interval(r, interval);
    buf_printf(out, "<g class=\"cell\" data-length=\"%d\" data-place=\"", length);
    escape_html_c(out, place);
    buf_printf(out, "\" data-met=\"%d\" data-n=\"%d\"", r->met, r->n);
    if (r->n == 0) {
        buf_printf(out,
                   "><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"none\"/></g>\n", x,
                   y, CELL_WIDTH, CELL_HEIGHT);
        return;
    }
    // Red below a half and blue above, told apart with any colour vision; the nearer to a half the
    // more of the page shows through, so that a map suits a dark page too.
    double depth = r->rate < 0.5 ? 1 - 2 * r->rate : 2 * r->rate - 1;
    const char *ink = depth > 0.7 ? "fill=\"#fff\" class=\"" : "class=\"ink ";
    buf_printf(out, "><title>%d tokens, ", length);
    escape_html_c(out, place);
    buf_printf(out, ": met %s, 95 %% interval %s%s", fraction, interval,
               r->underpowered ? ", underpowered" : "");
    if (cell != NULL) add_details(out, cell);
    buf_add_c(out, "</title>");
    buf_printf(out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"edge %s%s\" "
               "fill-opacity=\"%.2f\"/>",
               x, y, CELL_WIDTH, CELL_HEIGHT, r->rate < 0.5 ? "low" : "high",
               r->underpowered ? " weak" : "", depth);
    buf_printf(out,
               "<text x=\"%d\" y=\"%d\" %sbig\">%s</text>"
               "<text x=\"%d\" y=\"%d\" %ssmall\">%s</text></g>\n",
               x + CELL_WIDTH / 2, y + 21, ink, fraction, x + CELL_WIDTH / 2, y + 37, ink,
               interval);
}

static void add_row_label(struct buf *out, int y, const char *label) {
    buf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"axis right\">", LEFT - 8,
               y + CELL_HEIGHT / 2 + 4);
    escape_html_c(out, label);
    buf_add_c(out, "</text>\n");
}

void svg_heat_map(const struct summary *s, const struct summary_table *t, const char *placement,
                  struct buf *out) {
    int places[LAYOUT_MOST];
    int count = layout_row_places(s, t, placement, places, LAYOUT_MOST);
    bool has_absent = false;
    for (int l = 0; l < s->length_count; l++) has_absent |= t->absent[l].n > 0;
    int rows_height = count * (CELL_HEIGHT + GAP);
    int width = LEFT + s->length_count * (CELL_WIDTH + GAP) + 4;
    int height = TOP + rows_height + (has_absent ? ARM_GAP + CELL_HEIGHT : 0) + 22 + REAL_HEIGHT;
    buf_printf(out,
               "<svg class=\"heat\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
               "aria-label=\"share of replies that met the constraint, by length and depth\">\n",
               width, height, width, height);
    buf_printf(out, "<text x=\"4\" y=\"14\" class=\"axis\">depth (start at the top)</text>\n");
    for (int i = 0; i < count; i++) {
        int y = TOP + i * (CELL_HEIGHT + GAP);
        add_row_label(out, y, s->places[places[i]].place);
        for (int l = 0; l < s->length_count; l++) {
            static const struct summary_rate none;
            const struct summary_cell *cell = layout_cell(t, l, places[i]);
            add_cell(out, LEFT + l * (CELL_WIDTH + GAP), y, cell ? &cell->rate : &none,
                     s->lengths[l], s->places[places[i]].place, cell);
        }
    }
    if (has_absent) {
        int y = TOP + rows_height + ARM_GAP;
        add_row_label(out, y, "absent");
        for (int l = 0; l < s->length_count; l++)
            add_cell(out, LEFT + l * (CELL_WIDTH + GAP), y, &t->absent[l], s->lengths[l], "absent",
                     NULL);
    }
    for (int l = 0; l < s->length_count; l++) {
        char real[32];
        int x = LEFT + l * (CELL_WIDTH + GAP) + CELL_WIDTH / 2;
        buf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"axis mid\">%d%s</text>\n", x,
                   height - REAL_HEIGHT - 6, s->lengths[l], l == 0 ? " tokens" : "");
        if (layout_real_length(s, t, l, real))
            buf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"axis small\">%s</text>\n", x,
                       height - 4, real);
    }
    buf_add_c(out, "</svg>\n");
}

static const char *const line_colours[] = {"#2166ac", "#d6604d", "#1b7837",
                                           "#762a83", "#b8860b", "#4d4d4d"};
#define LINE_COLOURS (int)(sizeof line_colours / sizeof *line_colours)

static double plot_x(double depth) {
    return PLOT_LEFT + depth / 100000.0 * PLOT_WIDTH;
}

static double plot_y(double rate) {
    return PLOT_TOP + (1 - rate) * PLOT_HEIGHT;
}

static void add_axes(struct buf *out) {
    for (int i = 0; i <= 4; i++) {
        double rate = i / 4.0, y = plot_y(rate);
        buf_printf(out,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                   "<text x=\"%d\" y=\"%.1f\" class=\"axis right\">%d %%</text>\n",
                   PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, y, y, PLOT_LEFT - 14, y + 4, i * 25);
        double x = plot_x(i * 25000);
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" class=\"axis mid\">%d %%</text>\n", x,
                   PLOT_TOP + PLOT_HEIGHT + 18, i * 25);
    }
    buf_printf(out,
               "<text x=\"%d\" y=\"%d\" class=\"axis mid\">real depth of what moves, mean</text>\n",
               PLOT_LEFT + PLOT_WIDTH / 2, PLOT_TOP + PLOT_HEIGHT + 38);
}

static void add_arm_line(struct buf *out, const struct summary_rate *r, const char *colour,
                         const char *what) {
    if (r->n == 0) return;
    double y = plot_y(r->rate);
    buf_printf(out,
               "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" class=\"arm\">"
               "<title>%s: %d/%d</title></line>\n",
               PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, y, y, colour, what, r->met, r->n);
}

static void add_legend(struct buf *out, int row, const char *colour, const char *text,
                       bool dashed) {
    int x = PLOT_LEFT + PLOT_WIDTH + 22, y = PLOT_TOP + 12 + row * 20;
    buf_printf(out,
               "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" class=\"%s\"/>"
               "<text x=\"%d\" y=\"%d\" class=\"axis\">%s</text>\n",
               x, x + 22, y, y, colour, dashed ? "arm" : "line", x + 28, y + 4, text);
}

// Where the constraint really stood, on average; else where it was asked for.
static double depth_of(const struct summary *s, const struct summary_cell *c) {
    return c->depth_mean >= 0 ? c->depth_mean : s->places[c->column].depth;
}

// One length's line; intervals are drawn a little beside each other so that none hides another.
static void add_line(const struct summary *s, const struct summary_table *t, const int *places,
                     int count, int length, struct buf *out) {
    const char *colour = line_colours[length % LINE_COLOURS];
    double shift = (length - (s->length_count - 1) / 2.0) * 5;
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" class=\"line\" points=\"", colour);
    for (int i = 0; i < count; i++) {
        const struct summary_cell *c = layout_cell(t, length, places[i]);
        if (c == NULL || c->rate.n == 0) continue;
        buf_printf(out, "%.1f,%.1f ", plot_x(depth_of(s, c)) + shift, plot_y(c->rate.rate));
    }
    buf_add_c(out, "\"/>\n");
    for (int i = 0; i < count; i++) {
        const struct summary_cell *c = layout_cell(t, length, places[i]);
        if (c == NULL || c->rate.n == 0) continue;
        double x = plot_x(depth_of(s, c)) + shift;
        buf_printf(out,
                   "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                   "class=\"whisker\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\">"
                   "<title>%d tokens, depth %.1f %%: %d/%d</title></circle>\n",
                   x, x, plot_y(c->rate.low), plot_y(c->rate.high), colour, x, plot_y(c->rate.rate),
                   colour, s->lengths[length], depth_of(s, c) / 1000, c->rate.met, c->rate.n);
    }
}

void svg_curves(const struct summary *s, const struct summary_table *t, const char *placement,
                struct buf *out) {
    int places[LAYOUT_MOST], depths = 0;
    int count = layout_row_places(s, t, placement, places, LAYOUT_MOST);
    while (depths < count && s->places[places[depths]].depth >= 0) depths++;
    if (depths < 2) return;
    int width = PLOT_LEFT + PLOT_WIDTH + 22 + LEGEND_WIDTH;
    int height = PLOT_TOP + PLOT_HEIGHT + PLOT_BOTTOM;
    buf_printf(out,
               "<svg class=\"curve\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
               "role=\"img\" aria-label=\"share met against depth, one line a length\">\n",
               width, height, width, height);
    add_axes(out);
    for (int l = 0; l < s->length_count; l++) {
        const char *colour = line_colours[l % LINE_COLOURS];
        char text[80], length[64];
        layout_length(s, t, l, length);
        snprintf(text, sizeof text, "%s tokens", length);
        add_legend(out, l, colour, text, false);
        add_arm_line(out, &t->absent[l], colour, "absent arm");
    }
    add_arm_line(out, &t->brief, "#777", "short arm");
    if (t->brief.n > 0) add_legend(out, s->length_count, "#777", "short arm", true);
    add_legend(out, s->length_count + 1, line_colours[0], "absent arm", true);
    for (int l = 0; l < s->length_count; l++) add_line(s, t, places, depths, l, out);
    buf_add_c(out, "</svg>\n");
}
