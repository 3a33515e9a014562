// The small table that `lacuna run` ends with: length x place, met / n and interval.
#include "reports/layout.h"

#include <stdio.h>
#include <string.h>

static void add_padded(struct buf *out, const char *text, size_t width) {
    size_t columns = 0; // bytes that start a character
    for (const char *p = text; *p != '\0'; p++) columns += ((unsigned char)*p & 0xC0) != 0x80;
    buf_add_c(out, text);
    for (; columns < width; columns++) buf_add_char(out, ' ');
}

static const char *rate_text(const struct summary_rate *r, char text[96]) {
    snprintf(text, 96, "-");
    if (r->n > 0)
        snprintf(text, 96, "%d/%d [%.0f-%.0f]%s", r->met, r->n, r->low * 100, r->high * 100,
                 r->underpowered ? "*" : "");
    return text;
}

// Rates of a row's length at one place, or of the absent arm (place -1).
static const struct summary_rate *rate_at(const struct summary_table *t, int length, int place) {
    static const struct summary_rate none;
    if (place < 0) return &t->absent[length];
    const struct summary_cell *cell = layout_cell(t, length, place);
    return cell == NULL ? &none : &cell->rate;
}

// So many columns of text as its widest cell takes, and two more.
static size_t width_of(const struct summary *s, const struct summary_table *t, int place,
                       const char *head) {
    char text[96];
    size_t most = strlen(head);
    for (int l = 0; l < s->length_count; l++) {
        size_t n = strlen(rate_text(rate_at(t, l, place), text));
        if (n > most) most = n;
    }
    return most + 2;
}

static bool any_underpowered(const struct summary_table *t) {
    for (int i = 0; i < t->cell_count; i++)
        if (t->cells[i].rate.underpowered) return true;
    return false;
}

static void add_row_table(const struct summary *s, const struct summary_table *t,
                          const char *placement, struct buf *out) {
    int places[LAYOUT_MOST + 1]; // the last: the absent arm
    int count = layout_row_places(s, t, placement, places, LAYOUT_MOST);
    buf_printf(out, "\n%s · %s · %s (%s %s)\n", t->model, t->constraint, placement,
               s->places[places[0]].moved, layout_moves(s->places[places[0]].moved));
    char real[32];
    size_t width = 8;
    for (int l = 0; l < s->length_count; l++)
        if (layout_real_length(s, t, l, real)) width = 24;
    buf_add_c(out, "  ");
    add_padded(out, "length", width);
    size_t widths[LAYOUT_MOST + 1];
    places[count] = -1;
    for (int i = 0; i <= count; i++) {
        const char *head = i < count ? s->places[places[i]].place : "absent";
        widths[i] = width_of(s, t, places[i], head);
        if (i < count)
            add_padded(out, head, widths[i]);
        else
            buf_printf(out, "%s\n", head);
    }
    for (int l = 0; l < s->length_count; l++) {
        char length[64];
        layout_length(s, t, l, length);
        buf_add_c(out, "  ");
        add_padded(out, length, width);
        for (int i = 0; i <= count; i++) {
            char text[96];
            add_padded(out, rate_text(rate_at(t, l, places[i]), text), widths[i]);
        }
        while (out->n > 0 && out->p[out->n - 1] == ' ') out->n--;
        buf_add_char(out, '\n');
    }
    if (t->brief.n > 0)
        buf_printf(out, "  short arm: %d/%d [%.0f-%.0f]\n", t->brief.met, t->brief.n,
                   t->brief.low * 100, t->brief.high * 100);
}

static void add_aggregate(const struct summary_aggregate *g, struct buf *out) {
    char text[64];
    const struct {
        const char *what;
        const struct summary_estimate *points;
    } parts[] = {
        {"middle gap", &g->middle_gap}, {"primacy", &g->primacy}, {"recency", &g->recency}};
    buf_printf(out, "%s · %s · %s: effective length at %g %%: %s", g->model, g->constraint,
               g->placement, g->level * 100, g->effective);
    const char *joint = "\n  ";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].points->defined) continue;
        layout_points(parts[i].points, text);
        buf_printf(out, "%s%s %s", joint, parts[i].what, text);
        joint = "; ";
    }
    layout_share(&g->area, text);
    if (g->area.defined) buf_printf(out, "%sarea over depth %s", joint, text);
    for (int k = 0; k < g->sample_count; k++) {
        layout_share(&g->samples[k].all, text);
        buf_printf(out, "\n  all of %d samples %s", g->samples[k].k, text);
        layout_share(&g->samples[k].any, text);
        buf_printf(out, ", any %s", text);
    }
    buf_add_char(out, '\n');
}

void report_terminal(const struct summary *s, struct buf *out) {
    const char *rows[LAYOUT_MOST];
    int row_count = layout_rows(s, rows, LAYOUT_MOST);
    bool marked = false;
    for (int t = 0; t < s->table_count; t++) {
        const struct summary_table *table = &s->tables[t];
        for (int r = 0; r < row_count; r++)
            if (layout_has_row(s, table, rows[r])) add_row_table(s, table, rows[r], out);
        marked |= any_underpowered(table);
        for (int i = 0; i < table->remark_count; i++) buf_printf(out, "  %s\n", table->remarks[i]);
    }
    buf_add_c(out, "\nmet / trials [95 % interval, per cent]");
    buf_add_c(out, marked ? "; * underpowered: fewer than 10 repeats\n" : "\n");
    for (int i = 0; i < s->aggregate_count; i++) add_aggregate(&s->aggregates[i], out);
    for (int i = 0; i < s->contrast_count && s->contrasts[i].primary; i++)
        buf_printf(out, "%s\n", s->contrasts[i].sentence);
    for (int i = 0; i < s->model_contrast_count; i++)
        if (strcmp(s->model_contrasts[i].scope, "all lengths") == 0 || s->length_count == 1)
            buf_printf(out, "%s\n", s->model_contrasts[i].sentence);
    for (int i = 0; i < s->grid_count; i++)
        for (int k = 0; k < s->grids[i].sentence_count; k++)
            buf_printf(out, "%s: %s\n", s->grids[i].title, s->grids[i].sentences[k]);
    for (int i = 0; i < s->gate_count; i++)
        buf_printf(out, "gate %s: %s (%s)\n", s->gates[i].id, layout_gate_word(s->gates[i].result),
                   s->gates[i].why);
    for (int i = 0; i < s->warning_count; i++) buf_printf(out, "warning: %s\n", s->warnings[i]);
    buf_printf(out, "%s\n", s->audit);
    buf_printf(out, "%lld of %lld trials: %lld ok, %lld invalid, %lld error%s\n",
               (long long)s->done, (long long)s->planned, (long long)s->ok, (long long)s->invalid,
               (long long)s->error, s->partial ? " (a partial plan)" : "");
}
