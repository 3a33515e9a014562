#include "reports/html_contrasts.h"

#include "reports/html_page.h"
#include "reports/layout.h"

#define NUMBERS                                                                                    \
    "<th>repeats</th><th>difference</th><th>95 % interval</th><th>p</th><th>p, Holm</th></tr>\n"

static void add_texts(const char *const *texts, size_t count, struct buf *out) {
    buf_add_c(out, "<tr>");
    for (size_t k = 0; k < count; k++) html_cell(texts[k], out);
}

static void add_numbers(const struct summary_contrast *c, struct buf *out) {
    if (!c->defined) {
        buf_add_c(out, "<td colspan=\"5\" class=\"soft\">undefined: a placement is "
                       "missing</td></tr>\n");
        return;
    }
    buf_printf(out, "<td>%d</td><td>%+.1f points</td><td>", c->repeats, layout_tenths(c->effect));
    if (!c->has_interval) {
        buf_add_c(out, "underpowered</td><td>-</td><td>-</td></tr>\n");
        return;
    }
    char p[16], holm[16];
    layout_p(c->p, p);
    layout_p(c->p_holm, holm);
    buf_printf(out, "%+.1f to %+.1f</td>", layout_tenths(c->low), layout_tenths(c->high));
    html_cell(p, out);
    html_cell(holm, out);
    buf_add_c(out, "</tr>\n");
}

static void add_places(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<h2>Contrasts between placements</h2>\n<p class=\"soft\">Paired per repeat: "
                   "the same filler and values at every place. Exact sign-flip test, two-sided; "
                   "places_alike: Cochran's Q, permuted within repeats, and bounds of the "
                   "largest difference. A difference is claimed where both the p-value after "
                   "Holm's correction and the interval show it.</p>\n<div class=\"scroll\"><table>"
                   "<tr><th></th><th>model</th><th>constraint</th><th>row</th><th>contrast</th>"
                   "<th>scope</th>" NUMBERS);
    for (int i = 0; i < s->contrast_count; i++) {
        const struct summary_contrast *c = &s->contrasts[i];
        const char *const texts[] = {c->primary ? "primary" : "exploratory",
                                     c->model,
                                     c->constraint,
                                     c->placement,
                                     c->name,
                                     c->scope};
        add_texts(texts, sizeof texts / sizeof *texts, out);
        add_numbers(c, out);
    }
    buf_add_c(out, "</table></div>\n");
}

static void add_models(const struct summary *s, struct buf *out) {
    static const char *const pairings[] = {[PAIRING_NONE] = "unpaired: different prompts",
                                           [PAIRING_TEXT] = "by repeat, equal text",
                                           [PAIRING_IDS] = "by repeat, equal token ids"};
    buf_add_c(out, "<h2>Contrasts between models</h2>\n<p class=\"soft\">The model minus the "
                   "other, over all placed cells that both have; all exploratory, Holm-corrected. "
                   "Pairs are tested by the exact sign-flip test; different prompts make two "
                   "independent groups: permutation test, Newcombe's interval.</p>\n"
                   "<div class=\"scroll\"><table><tr><th>model</th><th>other</th>"
                   "<th>constraint</th><th>scope</th><th>paired</th>" NUMBERS);
    for (int i = 0; i < s->model_contrast_count; i++) {
        const struct summary_contrast *c = &s->model_contrasts[i];
        const char *const texts[] = {c->model, c->other, c->constraint, c->scope,
                                     pairings[c->pairing]};
        add_texts(texts, sizeof texts / sizeof *texts, out);
        add_numbers(c, out);
    }
    buf_add_c(out, "</table></div>\n");
}

void html_contrasts(const struct summary *s, struct buf *out) {
    if (s->contrast_count > 0) add_places(s, out);
    if (s->model_contrast_count > 0) add_models(s, out);
}
