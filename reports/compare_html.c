// compare.html: the answers, and the trials that flipped with prompts and replies side by side.
#include "reports/comparison.h"
#include "reports/escape.h"
#include "reports/html_page.h"
#include "reports/html_trials.h"
#include "reports/layout.h"

#include <string.h>

enum { FLIPS_MOST = 500, CHANGED_MOST = 500 }; // of either kind

static void add_sides(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "<p>Baseline <code>");
    escape_html_c(out, c->before->path);
    buf_add_c(out, "</code>, run <code>");
    escape_html_c(out, c->now->path);
    buf_printf(out, "</code>. <b>%lld</b> of %lld replies are identical.</p>\n",
               (long long)c->identical, (long long)c->compared);
    buf_add_c(out, "<div class=\"box\"><b>");
    escape_html_c(out, c->headline);
    buf_add_c(out, "</b></div>\n");
    for (int i = 0; i < c->warning_count; i++) {
        buf_add_c(out, "<div class=\"box warn\">");
        escape_html_c(out, c->warnings[i]);
        buf_add_c(out, "</div>\n");
    }
}

static void add_fields(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "<h2>What differs besides the replies</h2>\n");
    if (c->field_count == 0) {
        buf_add_c(out, "<p>Nothing.</p>\n");
        return;
    }
    buf_add_c(out, "<div class=\"scroll\"><table><tr><th>field</th><th>of</th><th>baseline</th>"
                   "<th>run</th><th></th></tr>\n");
    for (int i = 0; i < c->field_count; i++) {
        const struct comparison_field *f = &c->fields[i];
        buf_add_c(out, "<tr>");
        html_cell(f->field, out);
        html_cell(f->where, out);
        html_cell(f->before, out);
        html_cell(f->after, out);
        html_cell(f->harmless ? "changes no reply" : f->allowed ? "allowed" : "not allowed", out);
        buf_add_c(out, "</tr>\n");
    }
    buf_add_c(out, "</table></div>\n");
}

static const char *answer_class(enum comparison_answer a) {
    return a == COMPARE_REGRESSED ? "error" : a == COMPARE_UNDERPOWERED ? "unscored" : "met";
}

static void add_row(const struct comparison_row *r, struct buf *out) {
    buf_printf(out, "<tr data-overall=\"%d\">", r->overall);
    html_cell(r->model, out);
    html_cell(r->constraint, out);
    html_cell(r->scope, out);
    char change[64], p[16];
    comparison_change(r, change);
    layout_p(r->p_holm, p);
    buf_printf(out, "<td>%d/%d</td><td>%d/%d</td>", r->met_before, r->pairs, r->met_now, r->pairs);
    html_cell(change, out);
    html_cell(r->has_interval ? p : "-", out);
    buf_printf(out, "<td><b class=\"%s\">%s</b></td></tr>\n", answer_class(r->answer),
               comparison_answer_name(r->answer));
}

static void add_rows(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "<h2>Answers</h2>\n");
    for (int i = 0; i < c->row_count && c->rows[i].overall; i++) {
        buf_add_c(out, "<p>");
        escape_html_c(out, c->rows[i].model);
        buf_add_c(out, ": ");
        escape_html_c(out, c->rows[i].sentence);
        buf_add_c(out, "</p>\n");
    }
    buf_add_c(out, "<div class=\"scroll\"><table><tr><th>model</th><th>constraint</th><th>scope"
                   "</th><th>met before</th><th>met now</th><th>change (95 % interval)</th>"
                   "<th>p, Holm</th><th>answer</th></tr>\n");
    for (int i = 0; i < c->row_count; i++) add_row(&c->rows[i], out);
    buf_add_c(out, "</table></div>\n<p class=\"soft\">Paired by trial, tested per repeat; "
                   "changes are the run minus the baseline.</p>\n");
}

static void add_gates(const struct comparison *c, struct buf *out) {
    if (c->gate_count == 0) return;
    buf_add_c(out, "<h2>Gates</h2>\n<div class=\"scroll\"><table><tr><th>gate</th><th>asks</th>"
                   "<th>measured</th><th>result</th><th>why</th></tr>\n");
    for (int i = 0; i < c->gate_count; i++) {
        const struct summary_gate *g = &c->gates[i];
        buf_add_c(out, "<tr>");
        html_cell(g->id, out);
        html_cell(g->text, out);
        html_cell(g->measured, out);
        html_cell(layout_gate_word(g->result), out);
        html_cell(g->why, out);
        buf_add_c(out, "</tr>\n");
    }
    buf_add_c(out, "</table></div>\n");
}

// ---- trials ----

static int add_side(const struct baseline *b, const struct baseline_trial *t, const char *label,
                    bool prompt, bool whole, struct buf *out, struct err *e) {
    const struct record_outcome *o = comparison_outcome(b, t);
    buf_printf(out, "<div><p><b>%s</b></p>\n", label);
    if (o == NULL)
        buf_printf(out,
                   "<p class=\"soft\">A baseline file keeps hashes: reply <code>%s</code>, "
                   "prompt <code>%s</code>.</p>\n",
                   t->reply, t->prompt);
    html_reply(o, out);
    if (o != NULL && prompt)
        TRY(html_prompt(b->record, &b->record->trials[t->trial], whole, out, e));
    buf_add_c(out, "</div>\n");
    return 0;
}

static int add_flip(const struct comparison *c, const struct comparison_flip *f, bool whole,
                    struct buf *out, struct err *e) {
    const struct comparison_pair *p = f->pair;
    buf_add_c(out, "<details class=\"flip\" data-key=\"");
    escape_html_c(out, p->now->key);
    buf_add_c(out, "\"><summary><code>");
    escape_html_c(out, p->now->key);
    buf_printf(out, "</code> <span class=\"chip %s\">", verdict_name(f->now));
    escape_html_c(out, f->constraint);
    buf_printf(out, ": %s, was %s</span></summary><div><div class=\"pair\">\n",
               verdict_name(f->now), verdict_name(f->before));
    // One prompt is shown once, by the side that surely has it.
    TRY(add_side(c->before, p->before, "Baseline", !p->same_prompt, whole, out, e));
    TRY(add_side(c->now, p->now, "Run", true, whole, out, e));
    buf_add_c(out, "</div></div></details>\n");
    return 0;
}

static int add_flips(const struct comparison *c, int64_t begin, int64_t end, const char *what,
                     struct buf *out, struct err *e) {
    if (begin == end) return 0;
    int64_t last = end - begin > FLIPS_MOST ? begin + FLIPS_MOST : end;
    uint64_t bytes = 0; // about four a token
    for (int64_t i = begin; i < last && c->now->record != NULL; i++)
        bytes += 4 * (uint64_t)c->now->record->trials[c->flips[i].pair->now->trial].prompt_tokens;
    buf_printf(out, "<h2>%s: %lld</h2>\n", what, (long long)(end - begin));
    for (int64_t i = begin; i < last; i++)
        TRY(add_flip(c, &c->flips[i], bytes <= HTML_PROMPT_BYTES_MOST, out, e));
    if (last < end)
        buf_printf(out,
                   "<p class=\"soft\">... and %lld more; `lacuna compare --json` lists all.</p>\n",
                   (long long)(end - last));
    return 0;
}

static void add_changed(const struct comparison *c, struct buf *out) {
    if (c->identical == c->compared) return;
    buf_printf(out,
               "<h2>Changed replies: %lld</h2>\n<div class=\"scroll\"><table><tr><th>trial</th>"
               "<th>prompt</th><th>first token that differs</th></tr>\n",
               (long long)(c->compared - c->identical));
    int64_t shown = 0;
    for (int64_t i = 0; i < c->pair_count && shown < CHANGED_MOST; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->identical || p->before->verdicts == NULL || p->now->verdicts == NULL) continue;
        buf_add_c(out, "<tr><td><code>");
        escape_html_c(out, p->now->key);
        buf_printf(out, "</code></td><td>%s</td>", p->same_prompt ? "same" : "another");
        if (p->first_token >= 0)
            buf_printf(out, "<td>%lld</td></tr>\n", (long long)p->first_token);
        else
            buf_add_c(out, "<td>not known</td></tr>\n");
        shown++;
    }
    buf_add_c(out, "</table></div>\n");
    if (c->compared - c->identical > shown)
        buf_printf(out, "<p class=\"soft\">... and %lld more.</p>\n",
                   (long long)(c->compared - c->identical - shown));
}

int compare_html(const struct comparison *c, struct buf *out, struct err *e) {
    html_page_open("compare", c->now->experiment, "Did it become worse? Two runs, trial by trial.",
                   out);
    add_sides(c, out);
    add_fields(c, out);
    if (c->refused == NULL) {
        add_rows(c, out);
        add_gates(c, out);
        TRY(add_flips(c, 0, c->lost, "Lost", out, e));
        TRY(add_flips(c, c->lost, c->flip_count, "Won", out, e));
        add_changed(c, out);
    }
    buf_printf(out,
               "<h2>Records</h2>\n<p class=\"soft\">baseline: identity <code>%s</code>, ledger "
               "<code>%s</code><br>run: identity <code>%s</code>, ledger <code>%s</code></p>\n"
               "</body></html>\n",
               c->before->identity_sha256, c->before->ledger_sha256, c->now->identity_sha256,
               c->now->ledger_sha256);
    return 0;
}
