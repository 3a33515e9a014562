#include "tests/support/check_yaml.h"

#include "evals/experiment_internal.h"

#include <string.h>

static struct check_set *set;

const struct check *check_from_yaml(const char *fields, struct arena *a, struct err *why) {
    const char *text = arena_printf(
        a,
        "lacuna: 1\nname: t\nmodels: [{id: m, path: m.gguf, context_tokens: 2048}]\n"
        "prompt: {messages: [{role: user, text: \"{{filler}}\\n\\nAnswer.\"}]}\n"
        "constraints:\n  - id: order\n    text: \"Give the order number {{code}} in your "
        "answer.\"\n"
        "    vars: {code: {kind: digits, count: 5}}\n%s\n"
        "placements: [{id: p, move: [order], depths: [middle]}]\nlengths: {tokens: [256]}\n"
        "repeats: 1\n",
        fields);
    struct experiment *x;
    if (experiment_read(str_from(text), "x.yaml", NULL, a, &x, why) != 0) return NULL;
    if (set == NULL) set = check_set_open();
    const struct variable vars[] = {{"code", STR("19763")}};
    const struct check *c = NULL;
    if (check_prepare(set, &x->constraints[0], vars, 1, &c, why) != 0) c = NULL;
    experiment_close(x);
    return c;
}

const char *check_verdict(const struct check *c, const char *reply, const char *finish,
                          struct arena *a, struct record_verdict *out) {
    struct reply r = {.text = str_from(reply), .answer = {0, strlen(reply)}, .finish = finish};
    check_judge(c, &r, a, out);
    return out->reason == NULL ? verdict_name(out->verdict)
                               : arena_printf(a, "%s:%s", verdict_name(out->verdict), out->reason);
}

int check_yaml_teardown(void **state) {
    (void)state;
    check_set_close(set);
    set = NULL;
    return 0;
}
