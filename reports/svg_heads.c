// Layers x heads: which heads look at a constraint, one map a place.
#include "reports/svg.h"

#include "reports/escape.h"

#include <math.h>

enum {
    LEFT = 34,
    TOP = 34,
    BOTTOM = 22,
    GAP = 30,
    WIDTH_MOST = 260,
    CELL_MOST = 14,
    CELL_LEAST = 4
};

static int cell_size(int count) {
    int size = WIDTH_MOST / count;
    return size > CELL_MOST ? CELL_MOST : size < CELL_LEAST ? CELL_LEAST : size;
}

static double largest_share(const struct summary_heads *h) {
    double most = 0;
    for (int m = 0; m < h->map_count; m++)
        for (int i = 0; i < h->layers * h->heads; i++)
            if (h->maps[m].shares[i] > most) most = h->maps[m].shares[i];
    return most;
}

// The root brings out small shares.
static double shade(double share, double most) {
    return most > 0 ? sqrt(share / most) : 0;
}

static void add_map(const struct summary_heads *h, const struct summary_head_map *map, int left,
                    int size, double most, struct buf *out) {
    buf_printf(out, "<g class=\"heads\" data-place=\"");
    escape_html_c(out, map->place);
    buf_printf(out, "\" data-n=\"%d\"><text x=\"%d\" y=\"14\" class=\"axis\">", map->n, left);
    escape_html_c(out, map->place);
    buf_printf(out, ", %d replies</text>\n", map->n);
    for (int l = 0; l < h->layers; l++)
        for (int k = 0; k < h->heads; k++) {
            double share = map->shares[l * h->heads + k];
            buf_printf(out,
                       "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"high\" "
                       "fill-opacity=\"%.2f\">",
                       left + k * size, TOP + l * size, size - 1, size - 1, shade(share, most));
            buf_printf(out, "<title>layer %d, head %d: %.2f %%", l, k, 100 * share);
            if (map->tokens > 0) buf_printf(out, ", %.1f times its tokens", share / map->tokens);
            buf_add_c(out, "</title></rect>");
        }
    buf_printf(out, "\n<text x=\"%d\" y=\"%d\" class=\"axis\">head 0 to %d</text></g>\n", left,
               TOP + h->layers * size + 15, h->heads - 1);
}

void svg_heads(const struct summary_heads *h, struct buf *out) {
    int size = cell_size(h->heads), map_width = h->heads * size;
    if (map_width < 150) map_width = 150; // room for its title
    int width = LEFT + h->map_count * (map_width + GAP);
    int height = TOP + h->layers * size + BOTTOM;
    double most = largest_share(h);
    buf_printf(out,
               "<svg class=\"heads\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
               "aria-label=\"share of attention on the constraint, by layer and head\">\n",
               width, height, width, height);
    buf_printf(out,
               "<text x=\"%d\" y=\"%d\" class=\"axis right\">0</text>"
               "<text x=\"%d\" y=\"%d\" class=\"axis right\">%d</text>"
               "<text x=\"2\" y=\"%d\" class=\"axis\">layer</text>\n",
               LEFT - 5, TOP + size, LEFT - 5, TOP + h->layers * size, h->layers - 1, TOP - 6);
    for (int m = 0; m < h->map_count; m++)
        add_map(h, &h->maps[m], LEFT + m * (map_width + GAP), size, most, out);
    buf_add_c(out, "</svg>\n");
    buf_printf(
        out,
        "<p class=\"soft\">Faintest: no attention; strongest: %.1f %% (the root of the share "
        "gives the shade).</p>\n",
        100 * most);
}
