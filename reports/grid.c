#include "reports/grid.h"

#include "reports/escape.h"

static void html_cells(const char *const *cells, int count, const char *tag, struct buf *out) {
    buf_add_c(out, "<tr>");
    for (int i = 0; i < count; i++) {
        buf_printf(out, "<%s>", tag);
        escape_html_c(out, cells[i]);
        buf_printf(out, "</%s>", tag);
    }
    buf_add_c(out, "</tr>\n");
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
        html_cells(g->heads, g->column_count, "th", out);
        for (int k = 0; k < g->row_count; k++) html_cells(g->rows[k], g->column_count, "td", out);
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
