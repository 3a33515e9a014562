// report.md: the summary for a terminal, a pull request or a wiki; no prompts and no replies.
#include "reports/escape.h"
#include "reports/grid.h"
#include "reports/layout.h"

#include <string.h>

static void add_counts(const struct summary *s, struct buf *out) {
    buf_printf(out,
               "%lld of %lld planned trials done: %lld ok, %lld invalid, %lld error. %d repeat%s, "
               "%d sample%s each.%s\n\n",
               (long long)s->done, (long long)s->planned, (long long)s->ok, (long long)s->invalid,
               (long long)s->error, s->repeats, s->repeats == 1 ? "" : "s", s->samples,
               s->samples == 1 ? "" : "s",
               s->partial ? " **A partial plan** (cut by --only or --limit)." : "");
    for (int i = 0; i < s->count_count; i++) {
        buf_add_c(out, "- ");
        escape_markdown(out, str_from(s->counts[i].what));
        buf_printf(
            out, ": %lld (%.1f %%)%s\n", (long long)s->counts[i].count, s->counts[i].share * 100,
            s->counts[i].beyond_tolerated ? " **beyond what the experiment tolerates**" : "");
    }
    if (s->count_count > 0) buf_add_char(out, '\n');
    for (int i = 0; i < s->warning_count; i++) {
        buf_add_c(out, "> Warning: ");
        escape_markdown(out, str_from(s->warnings[i]));
        buf_add_c(out, "\n\n");
    }
    escape_markdown(out, str_from(s->audit));
    buf_add_c(out, "\n\n");
}

// The answer first: the primary contrast, and what wordings and contradictions say.
static void add_verdict(const struct summary *s, struct buf *out) {
    buf_add_c(out, "## What it says\n\n");
    int primaries = 0;
    for (int i = 0; i < s->contrast_count; i++) {
        if (!s->contrasts[i].primary) continue;
        primaries++;
        buf_add_c(out, "- ");
        escape_markdown(out, str_from(s->contrasts[i].sentence));
        buf_add_char(out, '\n');
    }
    if (primaries == 0)
        buf_add_c(out, "- The experiment names no primary contrast: all contrasts below are "
                       "exploratory.\n");
    for (int i = 0; i < s->grid_count; i++)
        for (int k = 0; k < s->grids[i].sentence_count; k++) {
            buf_add_c(out, "- ");
            escape_markdown(out, str_from(s->grids[i].title));
            buf_add_c(out, ": ");
            escape_markdown(out, str_from(s->grids[i].sentences[k]));
            buf_add_char(out, '\n');
        }
    buf_add_char(out, '\n');
}

static void add_rate(const struct summary_rate *r, struct buf *out) {
    char fraction[32], interval[32];
    layout_fraction(r, fraction);
    layout_interval(r, interval);
    if (r->n == 0)
        buf_add_c(out, " - |");
    else
        buf_printf(out, " %s (%s)%s |", fraction, interval, r->underpowered ? " *" : "");
}

static const struct summary_cell *cell_or_none(const struct summary_table *t, int length,
                                               int place) {
    static const struct summary_cell none;
    const struct summary_cell *c = layout_cell(t, length, place);
    return c != NULL ? c : &none;
}

// Beside the rates: lift, the rate over replies that ended by themselves, near misses, copied
// distractors, unscored.
static void add_beside(const struct summary *s, const struct summary_table *t, const int *places,
                       int count, struct buf *out) {
    buf_add_c(out, "\n| length | place | lift over absent | of finished replies | near misses | "
                   "copied distractors | unscored | real depth |\n"
                   "|---:|---|---|---|---|---|---|---|\n");
    for (int l = 0; l < s->length_count; l++)
        for (int i = 0; i < count; i++) {
            const struct summary_cell *c = cell_or_none(t, l, places[i]);
            if (c->rate.n == 0) continue;
            buf_printf(out, "| %d | ", s->lengths[l]);
            escape_markdown(out, str_from(s->places[places[i]].place));
            if (c->has_lift)
                buf_printf(out, " | %+.0f points", c->lift * 100);
            else
                buf_add_c(out, " | -");
            buf_printf(out, " | %d/%d | %d | %d | %d | ", c->rate.finished_met, c->rate.finished_n,
                       c->rate.near, c->rate.copied, c->rate.unscored);
            if (c->depth_real_high > 0 || c->depth_mean >= 0)
                buf_printf(out, "%.1f to %.1f %% |\n", c->depth_real_low / 1000.0,
                           c->depth_real_high / 1000.0);
            else
                buf_add_c(out, "- |\n");
        }
}

static void add_table(const struct summary *s, const struct summary_table *t, const char *placement,
                      struct buf *out) {
    int places[LAYOUT_MOST];
    int count = layout_row_places(s, t, placement, places, LAYOUT_MOST);
    buf_add_c(out, "### ");
    escape_markdown(out, str_from(t->model));
    buf_add_c(out, ", ");
    escape_markdown(out, str_from(t->constraint));
    buf_add_c(out, ", ");
    escape_markdown(out, str_from(placement));
    buf_add_c(out, "\n\n| length |");
    for (int i = 0; i < count; i++) {
        buf_add_char(out, ' ');
        escape_markdown(out, str_from(s->places[places[i]].place));
        buf_add_c(out, " |");
    }
    buf_add_c(out, " absent |\n|---:|");
    for (int i = 0; i <= count; i++) buf_add_c(out, "---|");
    buf_add_char(out, '\n');
    for (int l = 0; l < s->length_count; l++) {
        char length[64];
        layout_length(s, t, l, length);
        buf_printf(out, "| %s |", length);
        for (int i = 0; i < count; i++) {
            add_rate(&cell_or_none(t, l, places[i])->rate, out);
        }
        add_rate(&t->absent[l], out);
        buf_add_char(out, '\n');
    }
    add_beside(s, t, places, count, out);
    if (t->brief.n > 0) {
        buf_add_c(out, "\nShort arm:");
        add_rate(&t->brief, out);
        out->n -= 2; // the cell's bar
    }
    buf_add_c(out, "\n\n");
    for (int i = 0; i < t->remark_count; i++) {
        escape_markdown(out, str_from(t->remarks[i]));
        buf_add_c(out, "\n\n");
    }
}

static void add_aggregate(const struct summary_aggregate *g, struct buf *out) {
    char gap[64], primacy[64], recency[64], area[64];
    const char *const names[] = {g->model, g->constraint, g->placement};
    layout_points(&g->middle_gap, gap);
    layout_points(&g->primacy, primacy);
    layout_points(&g->recency, recency);
    layout_share(&g->area, area);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        buf_add_c(out, "| ");
        escape_markdown(out, str_from(names[k]));
        buf_add_char(out, ' ');
    }
    buf_add_char(out, '|');
    add_rate(&g->rate, out);
    add_rate(&g->absent, out);
    add_rate(&g->brief, out);
    buf_add_char(out, ' ');
    escape_markdown(out, str_from(g->effective));
    buf_printf(out, " | %s | %s | %s | %s |", gap, primacy, recency, area);
    for (int k = 0; k < g->sample_count; k++) {
        char all[64], any[64];
        layout_share(&g->samples[k].all, all);
        layout_share(&g->samples[k].any, any);
        buf_printf(out, " of %d: all %s, any %s", g->samples[k].k, all, any);
    }
    buf_add_c(out, g->sample_count > 0 ? " |\n" : " - |\n");
}

static void add_aggregates(const struct summary *s, struct buf *out) {
    buf_add_c(out, "## Each model in a few numbers\n\n");
    for (int i = 0; i < s->model_count; i++) {
        const struct summary_model *m = &s->models[i];
        buf_add_c(out, "- ");
        escape_markdown(out, str_from(m->id));
        buf_printf(out,
                   ": %lld of %lld trials done, %lld ok, %lld invalid, %lld error; %lld ok with an "
                   "unscored verdict\n",
                   (long long)m->done, (long long)m->planned, (long long)m->ok,
                   (long long)m->invalid, (long long)m->error, (long long)m->unscored);
    }
    if (s->aggregate_count > 0)
        buf_printf(out,
                   "\n| model | constraint | row | met | absent | short | effective length at "
                   "%g %% | middle gap | primacy | recency | area over depth | samples |\n"
                   "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
                   s->aggregates[0].level * 100);
    for (int i = 0; i < s->aggregate_count; i++) add_aggregate(&s->aggregates[i], out);
    if (s->aggregate_count > 0)
        buf_add_c(out, "\nLengths pooled (a prompt that stands for several places counts once), "
                       "95 % intervals. Middle gap: mean of start and end minus middle; primacy: "
                       "start minus middle; recency: end minus middle.\n");
    buf_add_char(out, '\n');
}

static void add_contrasts(const struct summary *s, struct buf *out) {
    if (s->contrast_count == 0) return;
    buf_add_c(out, "## Contrasts\n\n");
    for (int i = 0; i < s->contrast_count; i++) {
        const struct summary_contrast *c = &s->contrasts[i];
        buf_add_c(out, c->primary ? "- **Primary**, " : "- ");
        const char *const where[] = {c->model, c->placement, c->scope};
        for (size_t k = 0; k < sizeof where / sizeof *where; k++) {
            if (k > 0) buf_add_c(out, ", ");
            escape_markdown(out, str_from(where[k]));
        }
        buf_add_c(out, ": ");
        escape_markdown(out, str_from(c->sentence));
        buf_add_char(out, '\n');
    }
    buf_add_char(out, '\n');
}

static void add_model_contrasts(const struct summary *s, struct buf *out) {
    if (s->model_contrast_count == 0) return;
    buf_add_c(out, "## Contrasts between models\n\n");
    for (int i = 0; i < s->model_contrast_count; i++) {
        buf_add_c(out, "- ");
        escape_markdown(out, str_from(s->model_contrasts[i].sentence));
        buf_add_char(out, '\n');
    }
    buf_add_char(out, '\n');
}

static void add_gates(const struct summary *s, struct buf *out) {
    if (s->gate_count == 0) return;
    buf_add_c(out,
              "## Gates\n\n| gate | asks | measured | result | why |\n|---|---|---|---|---|\n");
    for (int i = 0; i < s->gate_count; i++) {
        const struct summary_gate *g = &s->gates[i];
        buf_add_c(out, "| ");
        escape_markdown(out, str_from(g->id));
        buf_add_c(out, " | ");
        escape_markdown(out, str_from(g->text));
        buf_add_c(out, " | ");
        escape_markdown(out, str_from(g->measured));
        buf_printf(out, " | %s | ", layout_gate_word(g->result));
        escape_markdown(out, str_from(g->why));
        buf_add_c(out, " |\n");
    }
    buf_add_char(out, '\n');
}

int report_markdown(const struct record *r, const struct summary *s, struct buf *out,
                    struct err *e) {
    (void)r;
    (void)e;
    buf_add_c(out, "# lacuna: ");
    escape_markdown(out, str_from(s->experiment));
    buf_add_c(out, "\n\n");
    add_counts(s, out);
    add_verdict(s, out);
    add_gates(s, out);
    add_aggregates(s, out);
    buf_add_c(out, "## What this does not show\n\n");
    escape_markdown(out, str_from(s->does_not_show));
    buf_add_c(out, "\n\n");
    const char *rows[LAYOUT_MOST];
    int row_count = layout_rows(s, rows, LAYOUT_MOST);
    buf_add_c(out, "## Met, by length and depth\n\nmet / all ok trials (95 % interval); \\* fewer "
                   "than 10 repeats: underpowered.\n\n");
    for (int t = 0; t < s->table_count; t++)
        for (int i = 0; i < row_count; i++)
            if (layout_has_row(s, &s->tables[t], rows[i]))
                add_table(s, &s->tables[t], rows[i], out);
    add_contrasts(s, out);
    add_model_contrasts(s, out);
    grids_markdown(s, out);
    buf_add_c(out, "## Models\n\n");
    for (int i = 0; i < s->model_count; i++) {
        buf_add_c(out, "- ");
        escape_markdown(out, str_from(s->models[i].id));
        buf_add_c(out, ": ");
        escape_markdown(out, str_from(s->models[i].name));
        buf_printf(out, ", %s on %s", s->models[i].numerics, s->models[i].backend);
        if (s->models[i].sha256[0] != '\0') buf_printf(out, ", SHA-256 `%s`", s->models[i].sha256);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "\nrequest `%s`\nplan `%s`\nledger `%s`\n", s->request_sha256, s->plan_sha256,
               s->ledger_sha256);
    if (s->evidence_sha256 != NULL) buf_printf(out, "evidence `%s`\n", s->evidence_sha256);
    return 0;
}
