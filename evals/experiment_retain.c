// An experiment without its texts: what a record keeps of it that keeps no prompts, and what a
// report without texts is made of. Names (ids, models, rows, cases), numbers and files stay; what
// stands in prompts goes, and so do the checks, which say what replies look like.
#include "evals/experiment.h"

#include <string.h>

static bool is_listed(const char *key, const char *const *names) {
    for (; *names != NULL; names++)
        if (strcmp(key, *names) == 0) return true;
    return false;
}

static void keep_keys(json_t *o, const char *const *names) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(o, next, key, value) {
        if (!is_listed(key, names)) json_object_del(o, key);
    }
}

// As many empty texts as there were.
static void empty_list(json_t *o, const char *key) {
    json_t *list = json_object_get(o, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        json_array_set_new(list, i, json_text(STR("")));
}

static void empty_variables(json_t *vars) {
    const char *name;
    json_t *value;
    json_object_foreach(vars, name, value) empty_list(value, "choices");
}

static void empty_prompt(json_t *prompt) {
    static const char *const kept[] = {"messages", "filler", "tools_file", NULL};
    static const char *const of_message[] = {"role", NULL};
    size_t i;
    json_t *message, *filler = json_object_get(prompt, "filler");
    keep_keys(prompt, kept);
    json_array_foreach(json_object_get(prompt, "messages"), i, message) {
        keep_keys(message, of_message);
        json_put(message, "text", json_text(STR("")));
    }
    empty_list(filler, "sentences");
    json_object_del(filler, "wrapper");
}

static void empty_constraint(json_t *constraint) {
    static const char *const kept[] = {
        "id",        "kind",        "vars",   "variants", "look_in", "contradicts", "draw_variants",
        "multiline", "ignore_case", "dotall", NULL};
    keep_keys(constraint, kept);
    json_put(constraint, "text", json_text(STR("")));
    empty_list(constraint, "variants");
    empty_variables(json_object_get(constraint, "vars"));
}

json_t *experiment_without_texts(const struct experiment *x) {
    json_t *o = json_deep_copy(x->resolved), *constraint;
    size_t i;
    empty_prompt(json_object_get(o, "prompt"));
    empty_variables(json_object_get(o, "vars"));
    json_array_foreach(json_object_get(o, "constraints"), i, constraint)
        empty_constraint(constraint);
    json_put(o, "without_texts", json_true());
    return o;
}

json_t *experiment_kept(const struct experiment *x) {
    return x->drops_prompts ? experiment_without_texts(x) : json_incref(x->resolved);
}
