#include "reports/html_aggregate.h"

#include "reports/html_page.h"
#include "reports/layout.h"

#include <stdio.h>

static void add_models(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<div class=\"scroll\"><table><tr><th>model</th><th>trials planned</th>"
                   "<th>done</th><th>ok</th><th>invalid</th><th>error</th>"
                   "<th>ok, but a verdict is unscored</th></tr>\n");
    for (int i = 0; i < s->model_count; i++) {
        const struct summary_model *m = &s->models[i];
        const int64_t counts[] = {m->planned, m->done, m->ok, m->invalid, m->error, m->unscored};
        buf_add_c(out, "<tr>");
        html_cell(m->id, out);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            buf_printf(out, "<td>%lld</td>", (long long)counts[k]);
        buf_add_c(out, "</tr>\n");
    }
    buf_add_c(out, "</table></div>\n");
}

// "All 0 % to 100 %" is said once, where an area spans less.
static void add_area(const struct summary_aggregate *g, struct buf *out) {
    char text[64];
    layout_share(&g->area, text);
    buf_printf(out, "<td>%s", text);
    if (g->area.defined && (g->area_from > 0 || g->area_to < 100000))
        buf_printf(out, ", depths %g to %g %%", g->area_from / 1000.0, g->area_to / 1000.0);
    buf_add_c(out, "</td>");
}

static void add_rate(const struct summary_rate *r, struct buf *out) {
    char fraction[32], interval[32];
    layout_fraction(r, fraction);
    layout_interval(r, interval);
    buf_printf(out, r->n == 0 ? "<td>-</td>" : "<td class=\"rate\">%s<br>%s</td>", fraction,
               interval);
}

static void add_row(const struct summary_aggregate *g, struct buf *out) {
    char text[64];
    const char *const names[] = {g->model, g->constraint, g->placement};
    const struct summary_estimate *const points[] = {&g->middle_gap, &g->primacy, &g->recency};
    buf_add_c(out, "<tr>");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) html_cell(names[k], out);
    add_rate(&g->rate, out);
    add_rate(&g->absent, out);
    add_rate(&g->brief, out);
    html_cell(g->effective, out);
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        layout_points(points[k], text);
        html_cell(text, out);
    }
    add_area(g, out);
    for (int k = 0; k < g->sample_count; k++) {
        layout_share(&g->samples[k].all, text);
        html_cell(text, out);
        layout_share(&g->samples[k].any, text);
        html_cell(text, out);
    }
    buf_add_c(out, "</tr>\n");
}

void html_aggregate(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<h2>Each model in a few numbers</h2>\n");
    add_models(s, out);
    if (s->aggregate_count == 0) return;
    const struct summary_aggregate *most = &s->aggregates[0];
    for (int i = 1; i < s->aggregate_count; i++)
        if (s->aggregates[i].sample_count > most->sample_count) most = &s->aggregates[i];
    buf_printf(out,
               "<div class=\"scroll\"><table><tr><th>model</th><th>constraint</th><th>row</th>"
               "<th>met</th><th>absent</th><th>short</th><th>effective length at %g "
               "%%</th><th>middle gap</th><th>primacy</th>"
               "<th>recency</th><th>area over depth</th>",
               most->level * 100);
    for (int k = 0; k < most->sample_count; k++)
        buf_printf(out, "<th>all of %d samples</th><th>any of %d</th>", most->samples[k].k,
                   most->samples[k].k);
    buf_add_c(out, "</tr>\n");
    for (int i = 0; i < s->aggregate_count; i++) add_row(&s->aggregates[i], out);
    buf_add_c(
        out,
        "</table></div>\n<p class=\"soft\">Lengths are pooled; a prompt that stands for several "
        "places counts once. Absent and short: the arms without the constraint, and with it in a "
        "short prompt. Intervals are 95 % each "
        "and clustered by repeat. Effective length: the longest length at which, and at "
        "all shorter ones, the lower bound stays at the level; \"not excluded\" asks the "
        "same of the upper bound. Middle gap: start and end, averaged, minus the "
        "middle. Primacy: start minus middle; recency: end minus middle. Area: the mean "
        "rate if the constraint may stand at any depth.</p>\n");
}
