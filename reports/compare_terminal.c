// What `lacuna compare` prints: differences, replies, answers, the first flips. Short.
#include "reports/comparison.h"
#include "reports/layout.h"

#include <string.h>

enum { CHANGED_SHOWN = 3, FLIPS_SHOWN = 3 };
#define REPLY_BYTES_SHOWN 200

static void add_fields(const struct comparison *c, struct buf *out) {
    if (c->field_count == 0) {
        buf_add_c(out, "identity: nothing differs\n");
        return;
    }
    buf_add_c(out, "identity differs in\n");
    for (int i = 0; i < c->field_count; i++) {
        const struct comparison_field *f = &c->fields[i];
        buf_printf(out, "  %s%s%s%s: %.120s -> %.120s%s\n", f->field, f->where[0] ? " (" : "",
                   f->where, f->where[0] ? ")" : "", f->before, f->after,
                   f->harmless  ? "  (changes no reply)"
                   : f->allowed ? "  (allowed)"
                                : "");
    }
}

static void add_replies(const struct comparison *c, struct buf *out) {
    int64_t changed = c->compared - c->identical, other_prompts = 0, shown = 0;
    for (int64_t i = 0; i < c->pair_count; i++) other_prompts += !c->pairs[i].same_prompt;
    buf_printf(out, "replies: %lld of %lld identical", (long long)c->identical,
               (long long)c->compared);
    if (other_prompts > 0) buf_printf(out, " (%lld prompts differ)", (long long)other_prompts);
    buf_add_c(out, "\n");
    for (int64_t i = 0; i < c->pair_count && shown < CHANGED_SHOWN; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->identical || p->before->verdicts == NULL || p->now->verdicts == NULL) continue;
        if (p->first_token >= 0)
            buf_printf(out, "  changed from token %lld on: %s\n", (long long)p->first_token,
                       p->now->key);
        else
            buf_printf(out, "  changed: %s\n", p->now->key);
        shown++;
    }
    if (changed > shown) buf_printf(out, "  ... and %lld more\n", (long long)(changed - shown));
    if (changed > 0 && (c->before->record == NULL || c->now->record == NULL))
        buf_add_c(out, "  (a baseline file keeps hashes, not replies; compare with the run's "
                       "folder to see where they part)\n");
}

static void add_rows(const struct comparison *c, struct buf *out) {
    for (int i = 0; i < c->row_count; i++) {
        const struct comparison_row *r = &c->rows[i];
        if (!r->overall && r->identical == r->pairs) continue;
        buf_printf(out, "%s%s%s, %s, %s: %s\n", r->overall ? "" : "  ",
                   r->overall ? "overall, " : "", r->model, r->constraint, r->scope, r->sentence);
    }
}

// One line, quoted as JSON does, cut at a character.
static void add_reply(const char *label, const struct record_outcome *o, struct buf *out) {
    if (o == NULL || o->forgotten) return;
    struct str head = str_head(o->reply, REPLY_BYTES_SHOWN);
    json_t *holder = json_object();
    json_put_bytes(holder, "reply", head);
    struct buf line = {0};
    json_compact(holder, &line);
    const char *value = strchr(line.p, ':') + 1;
    buf_printf(out, "      %s: %.*s%s\n", label, (int)(line.n - (size_t)(value - line.p) - 1),
               value, head.n < o->reply.n ? " ..." : "");
    buf_free(&line);
    json_decref(holder);
}

static void add_flip(const struct comparison *c, const struct comparison_flip *f, struct buf *out) {
    buf_printf(out, "    %s  %s: %s, was %s\n", f->pair->now->key, f->constraint,
               verdict_name(f->now), verdict_name(f->before));
    add_reply("was", comparison_outcome(c->before, f->pair->before), out);
    add_reply("now", comparison_outcome(c->now, f->pair->now), out);
}

static void add_flips(const struct comparison *c, struct buf *out) {
    if (c->flip_count == 0) return;
    buf_printf(out, "flips: %lld lost, %lld won\n", (long long)c->lost, (long long)c->won);
    int64_t begins[] = {0, c->lost}, ends[] = {c->lost, c->flip_count};
    for (int side = 0; side < 2; side++) {
        if (ends[side] == begins[side]) continue;
        buf_printf(out, "  %s\n", side == 0 ? "lost" : "won");
        int64_t shown = begins[side];
        for (; shown < ends[side] && shown < begins[side] + FLIPS_SHOWN; shown++)
            add_flip(c, &c->flips[shown], out);
        if (shown < ends[side])
            buf_printf(out, "    ... and %lld more (-o FOLDER writes them all)\n",
                       (long long)(ends[side] - shown));
    }
}

static void add_gates(const struct comparison *c, struct buf *out) {
    for (int i = 0; i < c->gate_count; i++)
        buf_printf(out, "gate %s: %s (%s)\n", c->gates[i].id, layout_gate_word(c->gates[i].result),
                   c->gates[i].why);
}

void compare_terminal(const struct comparison *c, struct buf *out) {
    buf_printf(out, "baseline %s (%s)\nrun      %s (%s)\n", c->before->path, c->before->experiment,
               c->now->path, c->now->experiment);
    add_fields(c, out);
    if (c->refused == NULL) {
        add_replies(c, out);
        add_rows(c, out);
        add_flips(c, out);
        add_gates(c, out);
    }
    for (int i = 0; i < c->warning_count; i++) buf_printf(out, "warning: %s\n", c->warnings[i]);
    buf_printf(out, "%s\n", c->headline);
}
