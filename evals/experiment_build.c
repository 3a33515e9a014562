// resolved.json into struct experiment. Everything may be missing here: the table has then
// complained, and the rest is still built so that all errors of a file come in one go.
#include "engine/base/file.h"
#include "evals/experiment_internal.h"
#include "evals/experiment_scalar.h"

#include <string.h>

static struct str text_of(struct load *l, const json_t *o, const char *key) {
    struct str text = {0};
    struct err ignored;
    if (json_is_object(o) && json_get_bytes(o, key, "", l->arena, &text, &ignored) == 0)
        return text;
    return (struct str){0};
}

static const char *word_of(struct load *l, const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    return json_is_string(value) ? arena_strdup(l->arena, json_string_value(value)) : NULL;
}

static int64_t integer_of(const json_t *o, const char *key, int64_t otherwise) {
    const json_t *value = json_object_get(o, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static bool boolean_of(const json_t *o, const char *key) {
    return json_is_true(json_object_get(o, key));
}

static double decimal_of(const json_t *o, const char *key, double otherwise) {
    const char *text = json_string_value(json_object_get(o, key));
    int64_t value;
    if (text == NULL || scalar_decimal(str_from(text), 6, &value) != 0) return otherwise;
    return (double)value / 1e6;
}

static int32_t share_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    int32_t ppm;
    return text != NULL && scalar_share(str_from(text), &ppm) == 0 ? ppm : 0;
}

static bool place_of(const json_t *value, struct place *out) {
    const char *text = json_string_value(value);
    *out = (struct place){PLACE_AT_DEPTH, DEPTH_NONE};
    return text != NULL && scalar_place(str_from(text), out) == 0;
}

// Index of the word in a list that ends with NULL; 0 when it is not there.
static int index_of(const char *word, const char *const *words) {
    for (int i = 0; word != NULL && words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return 0;
}

static struct str *texts_of(struct load *l, const json_t *o, const char *key, int *count) {
    const json_t *list = json_object_get(o, key);
    *count = (int)json_array_size(list);
    struct str *texts = arena_array(l->arena, (size_t)*count + 1, sizeof *texts);
    for (int i = 0; i < *count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        if (json_is_string(item))
            texts[i] =
                str_copy(l->arena, (struct str){json_string_value(item), json_string_length(item)});
    }
    return texts;
}

static const char *path_of(struct load *l, const json_t *value) {
    if (!json_is_string(value)) return NULL;
    return path_resolve(l->arena, l->x->folder, json_string_value(value));
}

static void build_models(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->model_count = (int)json_array_size(list);
    x->models = arena_array(l->arena, (size_t)x->model_count + 1, sizeof *x->models);
    for (int i = 0; i < x->model_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        x->models[i] = (struct experiment_model){
            .id = word_of(l, o, "id"),
            .path = path_of(l, json_object_get(o, "path")),
            .fixture = path_of(l, json_object_get(o, "fixture")),
            .backend = word_of(l, o, "backend"),
            .numerics = word_of(l, o, "numerics"),
            .weights = word_of(l, o, "weights"),
            .chat_template = word_of(l, o, "template"),
            .pre_tokenizer = word_of(l, o, "pre_tokenizer"),
            .context_tokens = (uint32_t)integer_of(o, "context_tokens", 0),
            .beyond_trained = boolean_of(o, "beyond_trained"),
        };
    }
}

static void build_prompt(struct load *l, const json_t *o) {
    struct experiment *x = l->x;
    const json_t *list = json_object_get(o, "messages");
    x->message_count = (int)json_array_size(list);
    x->messages = arena_array(l->arena, (size_t)x->message_count + 1, sizeof *x->messages);
    for (int i = 0; i < x->message_count; i++) {
        const json_t *m = json_array_get(list, (size_t)i);
        x->messages[i] = (struct experiment_message){text_of(l, m, "role"), text_of(l, m, "text")};
    }
    static const char *const kinds[] = {"prose", "noise", "files", "pairs", NULL};
    static const char *const units[] = {"sentence", "paragraph", "document", NULL};
    const json_t *f = json_object_get(o, "filler");
    struct experiment_filler *filler = &x->filler;
    filler->kind = (enum filler_kind)index_of(word_of(l, f, "kind"), kinds);
    filler->unit = (enum filler_unit)index_of(word_of(l, f, "unit"), units);
    filler->language = word_of(l, f, "language");
    filler->sentences = texts_of(l, f, "sentences", &filler->sentence_count);
    filler->wrapper = text_of(l, f, "wrapper");
    filler->shuffle = boolean_of(f, "shuffle");
    filler->may_match = boolean_of(f, "may_match");
    const json_t *paths = json_object_get(f, "paths");
    filler->path_count = (int)json_array_size(paths);
    filler->paths = arena_array(l->arena, (size_t)filler->path_count + 1, sizeof *filler->paths);
    for (int i = 0; i < filler->path_count; i++)
        filler->paths[i] = path_of(l, json_array_get(paths, (size_t)i));
}

static void build_variables(struct load *l, const json_t *map, struct experiment_constraint *c) {
    static const char *const kinds[] = {"digits", "letters", "choice", NULL};
    c->vars = arena_array(l->arena, json_object_size(map) + 1, sizeof *c->vars);
    const char *name;
    json_t *o;
    json_object_foreach((json_t *)map, name, o) {
        struct experiment_variable *v = &c->vars[c->var_count++];
        v->name = arena_strdup(l->arena, name);
        v->kind = (enum variable_kind)index_of(word_of(l, o, "kind"), kinds);
        v->count = (int)integer_of(o, "count", 0);
        v->choices = texts_of(l, o, "choices", &v->choice_count);
    }
}

static void build_constraints(struct load *l, const json_t *list) {
    static const char *const kinds[] = {"state", "format", "forbid", NULL};
    struct experiment *x = l->x;
    x->constraint_count = (int)json_array_size(list);
    x->constraints = arena_array(l->arena, (size_t)x->constraint_count + 1, sizeof *x->constraints);
    for (int i = 0; i < x->constraint_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        struct experiment_constraint *c = &x->constraints[i];
        c->id = word_of(l, o, "id");
        c->kind = (enum constraint_kind)index_of(word_of(l, o, "kind"), kinds);
        c->text = text_of(l, o, "text");
        build_variables(l, json_object_get(o, "vars"), c);
        c->value = text_of(l, o, "value");
        c->met = text_of(l, o, "met");
        c->violated = text_of(l, o, "violated");
        c->answered = text_of(l, o, "answered");
        c->ignore_case = boolean_of(o, "ignore_case");
        c->multiline = boolean_of(o, "multiline");
        c->dotall = boolean_of(o, "dotall");
        const json_t *examples = json_object_get(o, "examples");
        c->example_met = texts_of(l, examples, "met", &c->example_met_count);
        c->example_not = texts_of(l, examples, "not", &c->example_not_count);
        c->example_violated = texts_of(l, examples, "violated", &c->example_violated_count);
    }
}

// The constraint of that id, or -1 and a complaint at `path`.
static int constraint_named(struct load *l, const char *id, const char *path) {
    int index = experiment_constraint_index(l->x, id);
    if (index >= 0) return index;
    const char **ids = arena_array(l->arena, (size_t)l->x->constraint_count + 1, sizeof *ids);
    size_t count = 0;
    for (int i = 0; i < l->x->constraint_count; i++)
        if (l->x->constraints[i].id != NULL) ids[count++] = l->x->constraints[i].id;
    if (count < (size_t)l->x->constraint_count) return -1; // an id that is in error may be meant
    const char *near = str_nearest(id, ids, count);
    diagnose_at(l->d, l->root, path, "there is no constraint '%s'%s%s%s", id,
                near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
                near == NULL ? "" : "'?");
    return -1;
}

static void build_places(struct load *l, const json_t *o, struct experiment_placement *p) {
    const json_t *lists[] = {json_object_get(o, "depths"), json_object_get(o, "anchors")};
    size_t most = json_array_size(lists[0]) + json_array_size(lists[1]);
    p->places = arena_array(l->arena, most + 1, sizeof *p->places);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < json_array_size(lists[k]); i++)
            if (place_of(json_array_get(lists[k], i), &p->places[p->place_count])) p->place_count++;
}

static void build_placement(struct load *l, const json_t *o, int index) {
    struct experiment_placement *p = &l->x->placements[index];
    p->id = word_of(l, o, "id");
    const json_t *move = json_object_get(o, "move"), *others = json_object_get(o, "others");
    p->move = arena_array(l->arena, json_array_size(move) + 1, sizeof *p->move);
    for (size_t i = 0; i < json_array_size(move); i++) {
        const char *id = json_string_value(json_array_get(move, i));
        if (id == NULL) continue;
        int constraint =
            constraint_named(l, id, arena_printf(l->arena, "placements[%d].move[%zu]", index, i));
        if (constraint < 0) continue;
        // As one block in file order, whatever the order here.
        int at = p->move_count++;
        for (; at > 0 && p->move[at - 1] > constraint; at--) p->move[at] = p->move[at - 1];
        p->move[at] = constraint;
    }
    build_places(l, o, p);
    p->others = arena_array(l->arena, json_object_size(others) + 1, sizeof *p->others);
    const char *id;
    json_t *value;
    json_object_foreach((json_t *)others, id, value) {
        struct experiment_other other = {
            constraint_named(l, id, arena_printf(l->arena, "placements[%d].others.%s", index, id)),
            {0}};
        if (place_of(value, &other.place) && other.constraint >= 0)
            p->others[p->other_count++] = other;
    }
}

static int of_named(struct load *l, const json_t *o, const char *path) {
    const char *id = json_string_value(json_object_get(o, "of"));
    if (id == NULL || strcmp(id, "all") == 0) return -1;
    return constraint_named(l, id, arena_printf(l->arena, "%s.of", path));
}

static void build_where(struct load *l, const json_t *o, const char *path,
                        struct experiment_where *w) {
    static const char *const arms[] = {"placed", "absent", "short", NULL};
    const struct experiment *x = l->x;
    const char *model = json_string_value(json_object_get(o, "model"));
    const char *placement = json_string_value(json_object_get(o, "placement"));
    *w = (struct experiment_where){-1, -1, -1, false, {PLACE_AT_DEPTH, DEPTH_NONE}, ARM_PLACED};
    if (model != NULL && (w->model = experiment_model_index(x, model)) < 0)
        diagnose_at(l->d, l->root, arena_printf(l->arena, "%s.model", path),
                    "there is no model '%s'", model);
    if (placement != NULL && (w->placement = experiment_placement_index(x, placement)) < 0)
        diagnose_at(l->d, l->root, arena_printf(l->arena, "%s.placement", path),
                    "there is no placement '%s'", placement);
    w->length_tokens = (int)integer_of(o, "length", -1);
    w->has_place = place_of(json_object_get(o, "depth"), &w->place);
    w->arm = (enum arm)index_of(json_string_value(json_object_get(o, "arm")), arms);
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
    g->id = str_to_c(l->arena, buf_str(&name));
    buf_free(&name);
}

static void build_gates(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->gate_count = (int)json_array_size(list);
    x->gates = arena_array(l->arena, (size_t)x->gate_count + 1, sizeof *x->gates);
    for (int i = 0; i < x->gate_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i), *pool = json_object_get(o, "pool");
        struct experiment_gate *g = &x->gates[i];
        const char *path = arena_printf(l->arena, "gates[%d]", i);
        g->metric = word_of(l, o, "metric");
        g->of = of_named(l, o, path);
        g->has_at_least = json_object_get(o, "at_least") != NULL;
        g->has_at_most = json_object_get(o, "at_most") != NULL;
        g->at_least = (double)share_of(o, "at_least") / 1e6;
        g->at_most = (double)share_of(o, "at_most") / 1e6;
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
        g->id = word_of(l, o, "id");
        if (g->id == NULL) name_gate(l, g, o);
    }
}

static void build_lengths(struct load *l, const json_t *o) {
    const json_t *tokens = json_object_get(o, "tokens");
    l->x->lengths = arena_array(l->arena, json_array_size(tokens) + 1, sizeof *l->x->lengths);
    for (size_t i = 0; i < json_array_size(tokens); i++)
        l->x->lengths[l->x->length_count++] =
            (int)json_integer_value(json_array_get(tokens, i)); // 0 where it was no number
    l->x->length_tolerance_ppm = share_of(o, "tolerance");
}

void experiment_build(struct load *l, const json_t *resolved) {
    struct experiment *x = l->x;
    const json_t *o = json_object_get(resolved, "generation");
    x->name = word_of(l, resolved, "name");
    x->seed = (uint64_t)integer_of(resolved, "seed", 1);
    build_models(l, json_object_get(resolved, "models"));
    x->generation.max_tokens = (int)integer_of(o, "max_tokens", 0);
    x->generation.samples = (int)integer_of(o, "samples", 1);
    x->generation.temperature = decimal_of(o, "temperature", 0);
    x->generation.top_p = decimal_of(o, "top_p", 1);
    x->generation.stop = texts_of(l, o, "stop", &x->generation.stop_count);
    build_prompt(l, json_object_get(resolved, "prompt"));
    build_constraints(l, json_object_get(resolved, "constraints"));
    o = json_object_get(resolved, "cases");
    x->cases_path = path_of(l, json_object_get(o, "file"));
    x->cases_id = word_of(l, o, "id");
    o = json_object_get(resolved, "placements");
    x->placement_count = (int)json_array_size(o);
    x->placements = arena_array(l->arena, (size_t)x->placement_count + 1, sizeof *x->placements);
    for (int i = 0; i < x->placement_count; i++)
        build_placement(l, json_array_get(o, (size_t)i), i);
    build_lengths(l, json_object_get(resolved, "lengths"));
    x->repeats = (int)integer_of(resolved, "repeats", 0);
    o = json_object_get(resolved, "arms");
    static const char *const arms[] = {"placed", "absent", "short", NULL};
    for (size_t i = 0; i < json_array_size(o); i++)
        if (json_is_string(json_array_get(o, i)))
            x->arms[index_of(json_string_value(json_array_get(o, i)), arms)] = true;
    x->short_tokens = (int)integer_of(resolved, "short_tokens", 0);
    x->evidence = word_of(l, resolved, "evidence");
    o = json_object_get(resolved, "tolerate");
    x->tolerate_errors_ppm = share_of(o, "errors");
    x->tolerate_invalid_ppm = share_of(o, "invalid");
    x->tolerate_unscored_ppm = share_of(o, "unscored");
    o = json_object_get(resolved, "primary");
    x->primary = (struct experiment_primary){o != NULL, word_of(l, o, "metric"),
                                             of_named(l, o, "primary"), word_of(l, o, "contrast")};
    build_gates(l, json_object_get(resolved, "gates"));
    x->only = texts_of(l, resolved, "only", &x->only_count);
    x->limit = integer_of(resolved, "limit", -1);
}
