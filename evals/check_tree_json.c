// The leaves of composite checks that read JSON.
#include "evals/check_tree_internal.h"

#include <string.h>

// An echo of the rule's text is masked by a character that JSON does not allow; a space is allowed
// and says nothing either.
static struct str unmasked(struct evaluation *ev, const struct check_text *text) {
    if (!text->masked || text->text.n == 0) return text->text;
    char *copy = arena_memdup(ev->arena, text->text.p, text->text.n);
    for (size_t i = 0; i < text->text.n; i++)
        if (copy[i] == '\x1A') copy[i] = ' ';
    return (struct str){copy, text->text.n};
}

void tree_judge_json(struct evaluation *ev, const struct check_tree *t,
                     const struct check_text *text, struct check_outcome *out) {
    struct json_finding f = json_in_text(unmasked(ev, text), t->spec->block, ev->arena);
    const char *why = f.why, *error = f.error;
    bool answers = f.found && json_answers(f.value, &t->asks[0], ev->arena, &why, &error);
    json_decref(f.value);
    bool settled = !text->open || f.closed;
    *out = (struct check_outcome){.truth = CHECK_FAILS, .settled = f.found ? settled : !text->open};
    if (error != NULL) tree_erred(error, out);
    if (answers) {
        *out = (struct check_outcome){.truth = CHECK_HOLDS, .settled = settled, .has_range = true};
        check_text_range(text, f.range, out->range);
    }
    tree_explain(ev, "json: %s", why);
}

void tree_judge_tool_call(struct evaluation *ev, const struct check_tree *t,
                          const struct check_text *text, struct check_outcome *out) {
    struct tool_calls calls;
    tool_calls_find(unmasked(ev, text), ev->arena, &calls);
    const char *why = calls.count == 0 ? "there is no call" : "there is no call of that name";
    const char *error = calls.error;
    tree_failed(text, out);
    for (size_t i = 0; i < calls.count && out->truth != CHECK_HOLDS; i++) {
        const struct tool_call *c = &calls.calls[i];
        if (!str_equal(c->name, t->name)) continue;
        bool answers = true;
        why = "called";
        for (int k = 0; k < t->ask_count && answers; k++) {
            const char *erred;
            answers = json_answers(c->arguments, &t->asks[k], ev->arena, &why, &erred);
            if (erred != NULL) error = erred;
        }
        if (!answers) continue;
        *out = (struct check_outcome){
            .truth = CHECK_HOLDS, .settled = !text->open || c->closed, .has_range = true};
        check_text_range(text, c->range, out->range);
    }
    if (out->truth == CHECK_FAILS && error != NULL) tree_erred(error, out);
    tool_calls_close(&calls);
    tree_explain(ev, "tool_call " STR_FMT ": %s", (int)(t->name.n < 60 ? t->name.n : 60), t->name.p,
                 why);
}
