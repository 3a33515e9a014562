// `primary` and `gates` of resolved.json into the struct.
#include "evals/experiment_load.h"

#include <string.h>

static int of_named(struct load *l, const json_t *o, const char *path) {
    const char *id = json_string_value(json_object_get(o, "of"));
    if (id == NULL || strcmp(id, "all") == 0) return -1;
    return load_constraint(l, id, arena_printf(l->arena, "%s.of", path));
}

static void build_where(struct load *l, const json_t *o, const char *path,
                        struct experiment_where *w) {
    static const char *const arms[] = {"placed", "absent", "short", NULL};
    const struct experiment *x = l->x;
    const char *model = json_string_value(json_object_get(o, "model"));
    const char *placement = json_string_value(json_object_get(o, "placement"));
    *w = (struct experiment_where){.model = -1, .placement = -1, .arm = ARM_PLACED};
    if (model != NULL && (w->model = experiment_model_index(x, model)) < 0)
        diagnose_at(l->d, l->root, arena_printf(l->arena, "%s.model", path),
                    "there is no model '%s'", model);
    if (placement != NULL && (w->placement = experiment_placement_index(x, placement)) < 0)
        diagnose_at(l->d, l->root, arena_printf(l->arena, "%s.placement", path),
                    "there is no placement '%s'", placement);
    w->length_tokens = (int)load_integer(o, "length", -1);
    w->has_place = load_place(json_object_get(o, "depth"), &w->place);
    w->arm = (enum arm)load_index(json_string_value(json_object_get(o, "arm")), arms);
}

static void name_gate(struct load *l, struct experiment_gate *g, const json_t *o) {
    const char *of = json_string_value(json_object_get(o, "of"));
    struct buf name = {0};
    buf_printf(&name, "%s of %s", g->metric == NULL ? "" : g->metric, of == NULL ? "all" : of);
    static const char *const bounds[] = {"at_least", "at_most"};
    for (int i = 0; i < 2; i++) {
        const char *text = json_string_value(json_object_get(o, bounds[i]));
        if (text != NULL) buf_printf(&name, " %s %s", bounds[i], text);
    }
    const char *key;
    json_t *value;
    const char *between = " where ";
    json_object_foreach(json_object_get(o, "where"), key, value) {
        if (strcmp(key, "arm") == 0 && g->where.arm == ARM_PLACED) continue;
        buf_printf(&name, "%s%s=", between, key);
        if (json_is_integer(value))
            buf_printf(&name, "%lld", (long long)json_integer_value(value));
        else
            buf_add_c(&name, json_string_value(value));
        between = ",";
    }
    g->id = buf_take(&name, l->arena).p;
}

static void build_allow(struct load *l, const json_t *list, struct experiment_gate *g) {
    g->allow = arena_array(l->arena, json_array_size(list) + 1, sizeof *g->allow);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (word != NULL) g->allow[g->allow_count++] = arena_strdup(l->arena, word);
    }
}

void build_gates(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->gate_count = (int)json_array_size(list);
    x->gates = arena_array(l->arena, (size_t)x->gate_count + 1, sizeof *x->gates);
    for (int i = 0; i < x->gate_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i), *pool = json_object_get(o, "pool");
        struct experiment_gate *g = &x->gates[i];
        const char *path = arena_printf(l->arena, "gates[%d]", i);
        g->metric = load_word(l, o, "metric");
        g->of = of_named(l, o, path);
        g->has_at_least = json_object_get(o, "at_least") != NULL;
        g->has_at_most = json_object_get(o, "at_most") != NULL;
        g->at_least = (double)load_share(o, "at_least") / 1e6;
        g->at_most = (double)load_share(o, "at_most") / 1e6;
        build_where(l, json_object_get(o, "where"), arena_printf(l->arena, "%s.where", path),
                    &g->where);
        for (size_t k = 0; k < json_array_size(pool); k++) {
            const char *word = json_string_value(json_array_get(pool, k));
            if (word == NULL) continue;
            g->pool_model |= strcmp(word, "model") == 0;
            g->pool_length |= strcmp(word, "length") == 0;
            g->pool_placement |= strcmp(word, "placement") == 0;
            g->pool_depth |= strcmp(word, "depth") == 0;
        }
        g->baseline_name = load_word(l, o, "baseline");
        g->baseline = load_path(l, json_object_get(o, "baseline"));
        build_allow(l, json_object_get(o, "allow"), g);
        g->id = load_word(l, o, "id");
        if (g->id == NULL) name_gate(l, g, o);
    }
}

void build_primary(struct load *l, const json_t *o) {
    l->x->primary =
        (struct experiment_primary){o != NULL, load_word(l, o, "metric"), of_named(l, o, "primary"),
                                    load_word(l, o, "contrast")};
}
