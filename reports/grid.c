#include "reports/grid.h"

#include "reports/escape.h"

#include <string.h>

#define WORD_MOST 40

// A word stays on one line, unless it is very long: "order-moves@start" would break at its hyphen.
static void add_cell(const char *text, struct buf *out) {
    bool word = strchr(text, ' ') == NULL && strlen(text) <= WORD_MOST;
    buf_add_c(out, word ? "<td class=\"word\">" : "<td>");
    escape_html_c(out, text);
    buf_add_c(out, "</td>");
}

void grids_html(const struct summary *s, struct buf *out) {
    for (int i = 0; i < s->grid_count; i++) {
        const struct summary_grid *g = &s->grids[i];
        buf_add_c(out, "<h2>");
        escape_html_c(out, g->title);
        buf_add_c(out, "</h2>\n<p class=\"soft\">");
        escape_html_c(out, g->note);
        buf_add_c(out, "</p>\n");
        for (int k = 0; k < g->sentence_count; k++) {
            buf_add_c(out, "<p>");
            escape_html_c(out, g->sentences[k]);
            buf_add_c(out, "</p>\n");
        }
        buf_add_c(out, "<div class=\"scroll\"><table>");
        buf_add_c(out, "<tr>");
        for (int c = 0; c < g->column_count; c++) {
            buf_add_c(out, "<th>");
            escape_html_c(out, g->heads[c]);
            buf_add_c(out, "</th>");
        }
        buf_add_c(out, "</tr>\n");
        for (int k = 0; k < g->row_count; k++) {
            buf_add_c(out, "<tr>");
            for (int c = 0; c < g->column_count; c++) add_cell(g->rows[k][c], out);
            buf_add_c(out, "</tr>\n");
        }
        buf_add_c(out, "</table></div>\n");
    }
}

static void markdown_cells(const char *const *cells, int count, struct buf *out) {
    for (int i = 0; i < count; i++) {
        buf_add_c(out, "| ");
        escape_markdown(out, str_from(cells[i]));
        buf_add_char(out, ' ');
    }
    buf_add_c(out, "|\n");
}

void grids_markdown(const struct summary *s, struct buf *out) {
    for (int i = 0; i < s->grid_count; i++) {
        const struct summary_grid *g = &s->grids[i];
        buf_add_c(out, "## ");
        escape_markdown(out, str_from(g->title));
        buf_add_c(out, "\n\n");
        escape_markdown(out, str_from(g->note));
        buf_add_c(out, "\n\n");
        for (int k = 0; k < g->sentence_count; k++) {
            escape_markdown(out, str_from(g->sentences[k]));
            buf_add_c(out, "\n\n");
        }
        markdown_cells(g->heads, g->column_count, out);
        for (int k = 0; k < g->column_count; k++) buf_add_c(out, "|---");
        buf_add_c(out, "|\n");
        for (int k = 0; k < g->row_count; k++) markdown_cells(g->rows[k], g->column_count, out);
        buf_add_char(out, '\n');
    }
}
