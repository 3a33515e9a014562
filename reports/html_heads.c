#include "reports/html_heads.h"

#include "reports/escape.h"
#include "reports/svg.h"

void html_heads(const struct summary *s, struct buf *out) {
    if (s->heads_count == 0) return;
    buf_add_c(out, "<h2>Attended, by layer and head</h2>\n<p class=\"soft\">Share of each head's "
                   "attention on the constraint's tokens, a mean over the tokens of a reply and "
                   "over replies, lengths pooled. Attention is evidence and not cause.</p>\n");
    for (int i = 0; i < s->heads_count; i++) {
        const struct summary_heads *h = &s->heads[i];
        buf_add_c(out, "<h3>");
        escape_html_c(out, h->model);
        buf_add_c(out, " · ");
        escape_html_c(out, h->constraint);
        buf_add_c(out, " <span class=\"soft\">(");
        escape_html_c(out, h->placement);
        buf_add_c(out, ")</span></h3>\n<div class=\"scroll\">");
        svg_heads(h, out);
        buf_add_c(out, "</div>\n");
    }
}
