// The messages of a prompt: filled in for a repeat, and with or without the rules that constraints
// took over from them (in_prompt).
#include "evals/plan_internal.h"

#include <stdio.h>
#include <string.h>

// ---- of a repeat ----

// The constraint in_prompt whose rule is the first in this message at or behind `at`; -1: none.
static int next_rule(const struct experiment *x, int message, size_t at) {
    int found = -1;
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        if (c->in_prompt && c->rule_message == message && c->rule_at >= at &&
            (found < 0 || c->rule_at < x->constraints[found].rule_at))
            found = i;
    }
    return found;
}

static int add_filled(struct str text, const struct variable *vars, int count, int message,
                      struct arena *a, struct buf *out, struct err *e) {
    char where[64];
    struct str filled;
    snprintf(where, sizeof where, "prompt.messages[%d].text", message);
    TRY(variables_replace(text, vars, count, where, a, &filled, e));
    buf_add_str(out, filled);
    return 0;
}

// Rules come as their constraints drew them, the rest with the columns of the case.
static int message_fill(const struct experiment *x, const struct variable *vars, int count,
                        int message, struct arena *a, struct repeat_draw *d, struct buf *out,
                        struct err *e) {
    const struct str text = x->messages[message].text;
    size_t at = 0;
    for (int c; (c = next_rule(x, message, at)) >= 0;) {
        TRY(add_filled(str_slice(text, at, x->constraints[c].rule_at), vars, count, message, a, out,
                       e));
        d->rules[c] = (struct rule_place){(size_t)message, out->n, out->n + d->texts[c].n};
        buf_add_str(out, d->texts[c]);
        at = x->constraints[c].rule_at + x->constraints[c].text.n;
    }
    return add_filled(str_slice(text, at, text.n), vars, count, message, a, out, e);
}

// A rule that the columns of a case bring a second time would stay when it is left out.
static int rules_once(const struct experiment *x, const struct repeat_draw *d, struct err *e) {
    for (int c = 0; c < x->constraint_count; c++) {
        size_t times = 0;
        if (!x->constraints[c].in_prompt) continue;
        for (int m = 0; m < x->message_count; m++)
            times += str_count(d->messages[m].text, d->texts[c]);
        if (times != 1)
            FAIL(e, ERR_CONFIG,
                 "constraint '%s': with the values of %s its text stands %zu times in "
                 "prompt.messages; it must stand there once",
                 x->constraints[c].id, d->scope, times);
    }
    return 0;
}

// The definitions one a line.
static struct str tools_text(const struct experiment *x, struct arena *a) {
    struct buf b = {0};
    for (int i = 0; i < x->tool_count; i++) {
        if (i > 0) buf_add_char(&b, '\n');
        buf_add_str(&b, x->tools[i]);
    }
    return buf_take(&b, a);
}

int messages_draw(const struct experiment *x, const struct case_table *cases,
                  const struct case_row *row, struct arena *a, struct repeat_draw *d,
                  struct err *e) {
    size_t most = (size_t)cases->column_count + (size_t)x->var_count + 2;
    struct variable *vars = arena_array(a, most, sizeof *vars);
    int count = 0;
    vars[count++] = (struct variable){"filler", STR(PROMPT_SLOT)};
    if (x->tools_as_text) vars[count++] = (struct variable){"tools", tools_text(x, a)};
    for (int i = 0; i < x->var_count; i++)
        vars[count++] = (struct variable){x->vars[i].name, d->vars[i].value};
    for (int i = 0; i < cases->column_count; i++)
        vars[count++] = (struct variable){cases->columns[i], row->values[i]};
    d->messages = arena_array(a, (size_t)x->message_count + 1, sizeof *d->messages);
    d->rules = arena_array(a, (size_t)x->constraint_count + 1, sizeof *d->rules);
    for (int i = 0; i < x->message_count; i++) {
        struct buf text = {0};
        int result = message_fill(x, vars, count, i, a, d, &text, e);
        const struct experiment_message *m = &x->messages[i];
        d->messages[i] = (struct provider_message){.role = m->role,
                                                   .text = str_copy(a, buf_str(&text)),
                                                   .calls = m->calls,
                                                   .call_count = (size_t)m->call_count};
        buf_free(&text);
        if (result != 0) return -1;
    }
    if (!x->tools_as_text && x->message_count > 0) {
        d->messages[0].tools = x->tools;
        d->messages[0].tool_count = (size_t)x->tool_count;
    }
    return rules_once(x, d, e);
}

// ---- of a cell ----

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Takes bytes [from, to) out of a text.
static struct str cut(struct str text, size_t from, size_t to, struct arena *a) {
    char *left = arena_alloc(a, text.n - (to - from) + 1);
    memcpy(left, text.p, from);
    memcpy(left + from, text.p + to, text.n - to);
    return (struct str){left, text.n - (to - from)};
}

// Behind the last line break of a text; 0 without one.
static size_t last_line(struct str s) {
    while (s.n > 0 && s.p[s.n - 1] != '\n') s.n--;
    return s.n;
}

// Widens the range of a rule by the white space that goes with it.
static void widen(struct str text, size_t *from, size_t *to) {
    size_t begin = *from, end = *to;
    while (begin > 0 && is_space(text.p[begin - 1])) begin--;
    while (end < text.n && is_space(text.p[end])) end++;
    const struct str before = str_slice(text, begin, *from), behind = str_slice(text, *to, end);
    const size_t breaks = str_count(before, STR("\n")), more = str_count(behind, STR("\n"));
    if (more > 0 && end < text.n && (begin == 0 || (breaks > 0 && breaks >= more))) {
        *from = begin + last_line(before);
        *to += last_line(behind);
    } else if (begin == 0 ||
               (end < text.n && (breaks > more || (breaks == more && before.n >= behind.n)))) {
        *to = end;
    } else {
        *from = begin;
    }
}

// Takes a rule out and moves the places of those behind it.
static void rule_cut(struct provider_message *messages, struct rule_place *rules, int count,
                     struct rule_place r, struct arena *a) {
    struct str *text = &messages[r.message].text;
    *text = cut(*text, r.from, r.to, a);
    for (int i = 0; i < count; i++)
        if (rules[i].message == r.message && rules[i].from >= r.to) {
            rules[i].from -= r.to - r.from;
            rules[i].to -= r.to - r.from;
        }
}

const struct provider_message *cell_messages(const struct experiment *x,
                                             const struct repeat_draw *d,
                                             struct prompt_insert *inserts, const int *constraints,
                                             size_t count, struct arena *a) {
    const int n = x->constraint_count;
    bool any = false;
    for (int c = 0; c < n; c++) any = any || x->constraints[c].in_prompt;
    if (!any) return d->messages;
    struct provider_message *messages = arena_array(a, (size_t)x->message_count, sizeof *messages);
    memcpy(messages, d->messages, (size_t)x->message_count * sizeof *messages);
    struct rule_place *rules = arena_array(a, (size_t)n, sizeof *rules);
    memcpy(rules, d->rules, (size_t)n * sizeof *rules);
    bool *stays = arena_array(a, (size_t)n, sizeof *stays);
    for (size_t i = 0; i < count; i++)
        stays[constraints[i]] |= inserts[i].anchor == PROMPT_IN_PLACE;
    for (int c = 0; c < n; c++) {
        if (!x->constraints[c].in_prompt || stays[c]) continue;
        struct rule_place r = rules[c];
        widen(messages[r.message].text, &r.from, &r.to);
        rule_cut(messages, rules, n, r, a);
    }
    for (size_t i = 0; i < count; i++) {
        if (inserts[i].anchor != PROMPT_IN_PLACE) continue;
        inserts[i].message = rules[constraints[i]].message;
        inserts[i].at = rules[constraints[i]].from;
    }
    return messages;
}
