// report.html: one file, no network, no script. Reads the summary and the record's prompts.
#include "reports/escape.h"
#include "reports/grid.h"
#include "reports/html_aggregate.h"
#include "reports/html_contrasts.h"
#include "reports/html_heads.h"
#include "reports/html_page.h"
#include "reports/html_trials.h"
#include "reports/layout.h"
#include "reports/svg.h"

#include <stdio.h>
#include <string.h>

static void add_head(const struct summary *s, struct buf *out) {
    html_page_open(s->experiment, s->experiment,
                   "Which constraints of a long prompt does the model leave out, and where do they "
                   "stand?",
                   out);
}

static void add_counts(const struct summary *s, struct buf *out) {
    buf_printf(out,
               "<p><b>%lld</b> of %lld planned trials done: <b>%lld</b> ok, %lld invalid, %lld "
               "error. %d repeat%s, %d sample%s each.%s</p>\n",
               (long long)s->done, (long long)s->planned, (long long)s->ok, (long long)s->invalid,
               (long long)s->error, s->repeats, s->repeats == 1 ? "" : "s", s->samples,
               s->samples == 1 ? "" : "s",
               s->partial ? " <b>This is a partial plan</b> (cut by --only or --limit)." : "");
    if (s->count_count > 0) {
        buf_add_c(out, "<div class=\"scroll\"><table><tr><th>not met, or not counted</th>"
                       "<th>trials</th><th>share</th><th></th></tr>\n");
        for (int i = 0; i < s->count_count; i++) {
            buf_add_c(out, "<tr><td>");
            escape_html_c(out, s->counts[i].what);
            buf_printf(out, "</td><td>%lld</td><td>%.1f %%</td><td>%s</td></tr>\n",
                       (long long)s->counts[i].count, s->counts[i].share * 100,
                       s->counts[i].beyond_tolerated ? "<b class=\"error\">beyond what the "
                                                       "experiment tolerates</b>"
                                                     : "");
        }
        buf_add_c(out, "</table></div>\n");
    }
    for (int i = 0; i < s->warning_count; i++) {
        buf_add_c(out, "<div class=\"box warn\">");
        escape_html_c(out, s->warnings[i]);
        buf_add_c(out, "</div>\n");
    }
    buf_add_c(out, "<p class=\"audit\">");
    escape_html_c(out, s->audit);
    buf_add_c(out, "</p>\n");
}

static void add_sentence(const struct summary_contrast *c, struct buf *out) {
    buf_add_c(out, "<p>");
    escape_html_c(out, c->sentence);
    buf_add_c(out, "</p>\n");
}

// What a sentence is about stands before it; `constraint` may be NULL.
static void add_said(const char *about, const char *constraint, const char *sentence,
                     struct buf *out) {
    buf_add_c(out, "<p><b>");
    escape_html_c(out, about);
    if (constraint != NULL) {
        buf_add_c(out, " · ");
        escape_html_c(out, constraint);
    }
    buf_add_c(out, "</b>: ");
    escape_html_c(out, sentence);
    buf_add_c(out, "</p>\n");
}

static void add_gates(const struct summary *s, struct buf *out) {
    if (s->gate_count == 0) return;
    buf_add_c(out, "<h3>Gates</h3>\n<div class=\"scroll\"><table><tr><th>gate</th><th>asks</th>"
                   "<th>measured</th><th>result</th><th>why</th></tr>\n");
    for (int i = 0; i < s->gate_count; i++) {
        const struct summary_gate *g = &s->gates[i];
        buf_add_c(out, "<tr>");
        html_cell(g->id, out);
        html_cell(g->text, out);
        html_cell(g->measured, out);
        buf_printf(out, "<td><b class=\"%s\">%s</b></td><td>",
                   g->result == GATE_PASSED   ? "met"
                   : g->result == GATE_FAILED ? "error"
                                              : "unscored",
                   layout_gate_word(g->result));
        escape_html_c(out, g->why);
        if (g->detail[0] != '\0') {
            buf_add_c(out, "<details><summary>trials</summary><div><pre>");
            escape_html_c(out, g->detail);
            buf_add_c(out, "</pre></div></details>");
        }
        buf_add_c(out, "</td></tr>\n");
    }
    buf_add_c(out, "</table></div>\n");
}

static void add_verdict(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<h2>What it says</h2>\n<div class=\"box\">\n");
    int primaries = 0;
    for (int i = 0; i < s->contrast_count; i++)
        if (s->contrasts[i].primary) {
            add_sentence(&s->contrasts[i], out);
            primaries++;
        }
    if (primaries == 0)
        buf_add_c(out, "<p>The experiment names no primary contrast, so nothing here is a test: "
                       "all contrasts below are exploratory.</p>\n");
    for (int i = 0; i < s->grid_count; i++)
        for (int k = 0; k < s->grids[i].sentence_count; k++)
            add_said(s->grids[i].title, NULL, s->grids[i].sentences[k], out);
    for (int t = 0; t < s->table_count; t++)
        for (int i = 0; i < s->tables[t].remark_count; i++) {
            add_said(s->tables[t].model, s->tables[t].constraint, s->tables[t].remarks[i], out);
        }
    buf_add_c(out, "</div>\n");
    add_gates(s, out);
}

static void add_table_numbers(const struct summary *s, const struct summary_table *t,
                              const char *placement, struct buf *out) {
    int places[LAYOUT_MOST];
    int count = layout_row_places(s, t, placement, places, LAYOUT_MOST);
    buf_add_c(out, "<details><summary>Numbers</summary><div class=\"scroll\"><table><tr>"
                   "<th>length</th><th>place</th><th>real depth</th><th>met</th><th>rate</th>"
                   "<th>95 % interval</th><th>lift over absent</th><th>of finished replies</th>"
                   "<th>omitted</th><th>violated</th><th>unscored</th><th>near miss</th>"
                   "<th>copied distractor</th>");
    bool windowed = t->cell_count > 0 && t->cells[0].in_window != NULL;
    buf_printf(out, "%s</tr>\n", windowed ? "<th>in the window</th>" : "");
    for (int l = 0; l < s->length_count; l++)
        for (int i = 0; i < count; i++) {
            const struct summary_cell *c = layout_cell(t, l, places[i]);
            if (c == NULL) continue;
            char fraction[32], percent[16], interval[32], lift[24] = "-", real[32] = "-";
            layout_fraction(&c->rate, fraction);
            layout_percent(c->rate.rate, percent);
            layout_interval(&c->rate, interval);
            if (c->has_lift) snprintf(lift, sizeof lift, "%+.0f points", c->lift * 100);
            if (s->places[places[i]].depth >= 0)
                snprintf(real, sizeof real, "%.1f to %.1f %%", c->depth_real_low / 1000.0,
                         c->depth_real_high / 1000.0);
            char length[64];
            layout_length(s, t, l, length);
            buf_printf(out, "<tr><td>%s</td><td>", length);
            escape_html_c(out, s->places[places[i]].place);
            buf_printf(out,
                       "</td><td>%s</td><td>%s</td><td>%s</td><td>%s%s</td><td>%s</td>"
                       "<td>%d/%d</td><td>%d</td><td>%d</td><td>%d</td><td>%d</td><td>%d</td>",
                       real, fraction, percent, interval,
                       c->rate.underpowered ? " (underpowered)" : "", lift, c->rate.finished_met,
                       c->rate.finished_n, c->rate.omitted, c->rate.violated, c->rate.unscored,
                       c->rate.near, c->rate.copied);
            if (c->in_window != NULL) buf_printf(out, "<td>%s</td>", c->in_window);
            buf_add_c(out, "</tr>\n");
        }
    buf_add_c(out, "</table></div></details>\n");
}

static void add_figures(const struct summary *s, struct buf *out) {
    const char *rows[LAYOUT_MOST];
    int row_count = layout_rows(s, rows, LAYOUT_MOST);
    buf_add_c(out, "<h2>Met, by length and depth</h2>\n<p class=\"soft\">Share of all ok trials "
                   "whose reply met the constraint. Dashed cells have fewer than 10 repeats: "
                   "underpowered. The absent arm is the prior: the same prompt without the "
                   "constraint.</p>\n");
    for (int t = 0; t < s->table_count; t++) {
        const struct summary_table *table = &s->tables[t];
        for (int r = 0; r < row_count; r++) {
            if (!layout_has_row(s, table, rows[r])) continue;
            int places[LAYOUT_MOST];
            layout_row_places(s, table, rows[r], places, LAYOUT_MOST);
            buf_add_c(out, "<h3>");
            escape_html_c(out, table->model);
            buf_add_c(out, " · ");
            escape_html_c(out, strcmp(table->constraint, "all") == 0 ? "all constraints at once"
                                                                     : table->constraint);
            buf_add_c(out, " <span class=\"soft\">(");
            escape_html_c(out, rows[r]);
            buf_add_c(out, ": ");
            escape_html_c(out, s->places[places[0]].moved);
            buf_printf(out, " %s)</span></h3>\n<div class=\"figures\">\n",
                       layout_moves(s->places[places[0]].moved));
            svg_heat_map(s, table, rows[r], out);
            svg_curves(s, table, rows[r], out);
            buf_add_c(out, "</div>\n");
            if (table->brief.n > 0) {
                char fraction[32], interval[32];
                layout_fraction(&table->brief, fraction);
                layout_interval(&table->brief, interval);
                buf_printf(out, "<p class=\"soft\">Short arm (the ceiling): %s, %s.</p>\n",
                           fraction, interval);
            }
            add_table_numbers(s, table, rows[r], out);
        }
    }
}

static void add_constraints(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<h2>Constraints and models</h2>\n<div class=\"scroll\"><table><tr>"
                   "<th>constraint</th><th>kind</th><th>text</th></tr>\n");
    for (int i = 0; i < s->constraint_count; i++) {
        buf_add_c(out, "<tr><td>");
        escape_html_c(out, s->constraints[i]);
        buf_add_c(out, "</td><td>");
        escape_html_c(out, s->constraint_kinds[i]);
        buf_add_c(out, "</td><td dir=\"auto\">");
        escape_html_c(out, s->constraint_texts[i]);
        buf_add_c(out, "</td></tr>\n");
    }
    buf_add_c(out, "</table></div>\n<div class=\"scroll\"><table><tr><th>model</th><th>name</th>"
                   "<th>weights</th><th>numerics</th><th>backend</th><th>SHA-256</th></tr>\n");
    for (int i = 0; i < s->model_count; i++) {
        const struct summary_model *m = &s->models[i];
        const char *const texts[] = {m->id, m->name, m->tensor_types, m->numerics, m->backend};
        buf_add_c(out, "<tr>");
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            buf_add_c(out, "<td>");
            escape_html_c(out, texts[k]);
            buf_add_c(out, "</td>");
        }
        buf_add_c(out, "<td><code>");
        escape_html_c(out, m->sha256);
        buf_add_c(out, "</code></td></tr>\n");
    }
    buf_add_c(out, "</table></div>\n");
}

static void add_limits(const struct summary *s, struct buf *out) {
    buf_add_c(out, "<h2>What this does not show</h2>\n<p>");
    escape_html_c(out, s->does_not_show);
    buf_add_c(out, "</p>\n");
}

static void add_foot(const struct summary *s, struct buf *out) {
    buf_printf(out,
               "<h2>Record</h2>\n<p class=\"soft\">request <code>%s</code><br>plan "
               "<code>%s</code><br>ledger <code>%s</code>",
               s->request_sha256, s->plan_sha256, s->ledger_sha256);
    if (s->evidence_sha256 != NULL)
        buf_printf(out, "<br>evidence <code>%s</code>", s->evidence_sha256);
    buf_add_c(out,
              "</p>\n<p class=\"soft\">`lacuna verify` checks the chain and scores every reply "
              "again.</p>\n</body></html>\n");
}

int report_html(const struct record *r, const struct summary *s, struct buf *out, struct err *e) {
    add_head(s, out);
    add_counts(s, out);
    add_verdict(s, out);
    html_aggregate(s, out);
    add_limits(s, out);
    add_figures(s, out);
    html_contrasts(s, out);
    grids_html(s, out);
    html_heads(s, out);
    add_constraints(s, out);
    TRY(html_trials(r, s, out, e));
    add_foot(s, out);
    return 0;
}
