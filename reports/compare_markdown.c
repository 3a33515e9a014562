// compare.md: for a pull request. Replies are cut; compare.html has them whole.
#include "reports/comparison.h"
#include "reports/escape.h"
#include "reports/layout.h"

#include <string.h>

#define FLIPS_MOST 30 // of either kind
#define REPLY_BYTES_MOST 240

static void add_text(struct buf *out, const char *text) {
    escape_markdown(out, str_from(text));
}

static void add_fields(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "## What differs besides the replies\n\n");
    if (c->field_count == 0) {
        buf_add_c(out, "Nothing.\n\n");
        return;
    }
    buf_add_c(out, "| field | of | baseline | run | |\n|---|---|---|---|---|\n");
    for (int i = 0; i < c->field_count; i++) {
        const struct comparison_field *f = &c->fields[i];
        const char *const cells[] = {f->field, f->where, f->before, f->after,
                                     f->harmless  ? "changes no reply"
                                     : f->allowed ? "allowed"
                                                  : "**not allowed**"};
        for (int k = 0; k < 4; k++) {
            buf_add_c(out, k == 0 ? "| " : " | ");
            add_text(out, cells[k]);
        }
        buf_printf(out, " | %s |\n", cells[4]);
    }
    buf_add_char(out, '\n');
}

static void add_rows(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "## Answers\n\n| model | constraint | scope | met before | met now | change "
                   "(95 % interval) | p, Holm | answer |\n"
                   "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < c->row_count; i++) {
        const struct comparison_row *r = &c->rows[i];
        buf_add_c(out, "| ");
        add_text(out, r->model);
        buf_add_c(out, " | ");
        add_text(out, r->constraint);
        char change[64], p[16];
        comparison_change(r, change);
        layout_p(r->p_holm, p);
        buf_printf(out, " | %s | %d/%d | %d/%d | %s | ", r->scope, r->met_before, r->pairs,
                   r->met_now, r->pairs, change);
        add_text(out, r->has_interval ? p : "-");
        buf_printf(out, " | %s%s%s |\n", r->overall ? "**" : "", comparison_answer_name(r->answer),
                   r->overall ? "**" : "");
    }
    buf_add_char(out, '\n');
}

static void add_gates(const struct comparison *c, struct buf *out) {
    if (c->gate_count == 0) return;
    buf_add_c(out, "## Gates\n\n| gate | asks | result | why |\n|---|---|---|---|\n");
    for (int i = 0; i < c->gate_count; i++) {
        const struct summary_gate *g = &c->gates[i];
        buf_add_c(out, "| ");
        add_text(out, g->id);
        buf_add_c(out, " | ");
        add_text(out, g->text);
        buf_printf(out, " | %s | ", layout_gate_word(g->result));
        add_text(out, g->why);
        buf_add_c(out, " |\n");
    }
    buf_add_char(out, '\n');
}

static void add_reply(const struct record_outcome *o, struct buf *out) {
    if (o == NULL) {
        buf_add_c(out, "hash only");
        return;
    }
    if (o->forgotten) {
        buf_printf(out, "not kept, SHA-256 %.12s", o->reply_sha256);
        return;
    }
    struct str head = str_head(o->reply, REPLY_BYTES_MOST);
    escape_markdown(out, head);
    if (head.n < o->reply.n) buf_add_c(out, " ...");
}

static void add_flips(const struct comparison *c, int64_t begin, int64_t end, const char *what,
                      struct buf *out) {
    if (begin == end) return;
    buf_printf(out,
               "### %s: %lld\n\n| trial | constraint | before | now | reply before | reply now "
               "|\n|---|---|---|---|---|---|\n",
               what, (long long)(end - begin));
    int64_t last = end - begin > FLIPS_MOST ? begin + FLIPS_MOST : end;
    for (int64_t i = begin; i < last; i++) {
        const struct comparison_flip *f = &c->flips[i];
        buf_add_c(out, "| ");
        add_text(out, f->pair->now->key);
        buf_add_c(out, " | ");
        add_text(out, f->constraint);
        buf_printf(out, " | %s | %s | ", verdict_name(f->before), verdict_name(f->now));
        add_reply(comparison_outcome(c->before, f->pair->before), out);
        buf_add_c(out, " | ");
        add_reply(comparison_outcome(c->now, f->pair->now), out);
        buf_add_c(out, " |\n");
    }
    if (last < end) buf_printf(out, "\n... and %lld more.\n", (long long)(end - last));
    buf_add_char(out, '\n');
}

void compare_markdown(const struct comparison *c, struct buf *out) {
    buf_add_c(out, "# lacuna compare: ");
    add_text(out, c->headline);
    buf_add_c(out, "\n\nBaseline ");
    add_text(out, c->before->path);
    buf_add_c(out, ", run ");
    add_text(out, c->now->path);
    buf_printf(out, ". %lld of %lld replies are identical.\n\n", (long long)c->identical,
               (long long)c->compared);
    for (int i = 0; i < c->warning_count; i++) {
        buf_add_c(out, "> Warning: ");
        add_text(out, c->warnings[i]);
        buf_add_c(out, "\n\n");
    }
    add_fields(c, out);
    if (c->refused != NULL) return;
    add_rows(c, out);
    add_gates(c, out);
    if (c->flip_count > 0) buf_add_c(out, "## Trials that flipped\n\n");
    add_flips(c, 0, c->lost, "Lost", out);
    add_flips(c, c->lost, c->flip_count, "Won", out);
}
