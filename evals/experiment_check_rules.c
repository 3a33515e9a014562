// Rules that stand in the user's own prompt and are taken over as constraints (in_prompt): each is
// found exactly once, or it is said how often and where.
#include "evals/experiment_internal.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

static const char *message_name(struct load *l, int message) {
    const struct experiment_message *m = &l->x->messages[message];
    const struct str origin = str_from(m->origin); // "FILE:LINE: "
    return origin.n == 0 ? m->path : AT("%s (%.*s)", m->path, (int)origin.n - 2, origin.p);
}

// "prompt.messages[0] (2 times), prompt.messages[2]"; counts all.
static size_t find_all(struct load *l, struct experiment_constraint *c, const char **where) {
    struct buf list = {0};
    size_t total = 0;
    for (int m = 0; m < l->x->message_count; m++) {
        const struct str text = l->x->messages[m].text;
        const size_t n = text.p == NULL ? 0 : str_count(text, c->text);
        if (n == 0) continue;
        c->rule_message = m;
        c->rule_at = str_find(text, c->text, 0);
        total += n;
        buf_printf(&list, "%s%s", list.n > 0 ? ", " : "", message_name(l, m));
        if (n > 1) buf_printf(&list, " (%zu times)", n);
    }
    *where = buf_take(&list, l->arena).p;
    return total;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Whether the rule begins at text.p[at] when any white space equals any other.
static bool begins_here(struct str text, size_t at, struct str rule) {
    size_t k = 0;
    while (k < rule.n) {
        if (at == text.n || is_space(text.p[at]) != is_space(rule.p[k])) return false;
        if (!is_space(rule.p[k])) {
            if (text.p[at++] != rule.p[k++]) return false;
            continue;
        }
        while (at < text.n && is_space(text.p[at])) at++;
        while (k < rule.n && is_space(rule.p[k])) k++;
    }
    return true;
}

static bool same_with_other_space(struct str text, struct str rule) {
    for (size_t at = 0; at < text.n; at++)
        if (begins_here(text, at, rule)) return true;
    return false;
}

static void rule_missing(struct load *l, const struct experiment_constraint *c, const char *path) {
    const char *hint = "";
    for (int m = 0; m < l->x->message_count; m++)
        if (l->x->messages[m].text.p != NULL &&
            same_with_other_space(l->x->messages[m].text, c->text))
            hint = AT("; in %s it stands with other white space", message_name(l, m));
    WRONG(path, "prompt.messages do not hold this text; it must stand there once, byte for byte%s",
          hint);
}

static void rule_find(struct load *l, int index) {
    struct experiment_constraint *c = &l->x->constraints[index];
    const char *path = AT("constraints[%d].in_prompt", index), *where;
    const struct str trimmed = str_trim(c->text);
    c->rule_message = -1;
    if (trimmed.n == 0) return; // complained about as empty
    if (trimmed.n < c->text.n) {
        WRONG(path, "the text begins or ends with white space; give the rule without it");
        return;
    }
    const size_t found = find_all(l, c, &where);
    if (found == 1) return;
    c->rule_message = -1;
    if (found == 0)
        rule_missing(l, c, path);
    else
        WRONG(path, "prompt.messages hold this text %zu times, in %s; it must stand there once",
              found, where);
}

static bool overlap(const struct experiment_constraint *a, const struct experiment_constraint *b) {
    return a->rule_message == b->rule_message && a->rule_at < b->rule_at + b->text.n &&
           b->rule_at < a->rule_at + a->text.n;
}

void experiment_check_rules(struct load *l) {
    struct experiment *x = l->x;
    for (int i = 0; i < x->constraint_count; i++) {
        struct experiment_constraint *c = &x->constraints[i];
        if (!c->in_prompt) continue;
        rule_find(l, i);
        for (int k = 0; k < i && c->rule_message >= 0; k++)
            if (x->constraints[k].in_prompt && overlap(c, &x->constraints[k]))
                WRONG(AT("constraints[%d].in_prompt", i), "overlaps the text of constraints[%d]",
                      k);
    }
}

struct str experiment_without_rules(struct load *l, int message) {
    const struct experiment *x = l->x;
    const struct str text = x->messages[message].text;
    if (text.p == NULL) return text;
    bool *rule = arena_array(l->arena, text.n + 1, sizeof *rule);
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        if (c->in_prompt && c->rule_message == message) memset(rule + c->rule_at, true, c->text.n);
    }
    char *left = arena_alloc(l->arena, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        if (!rule[i]) left[n++] = text.p[i];
    return (struct str){left, n};
}
