#include "evals/experiment.h"

#include "engine/base/file.h"
#include "evals/experiment_fields.h"
#include "evals/experiment_internal.h"
#include "evals/experiment_yaml.h"

#include <string.h>

const char *arm_name(enum arm a) {
    static const char *const names[] = {"placed", "absent", "short"};
    return names[a];
}

int placement_orders(const struct experiment_placement *row) {
    return row->scatter ? row->move_count * (row->move_count % 2 == 0 ? 1 : 2) : 0;
}

// The first order of a Williams design is 0, 1, n-1, 2, n-2, ...: its neighbours differ by every
// number once, or for odd n by every number once together with the same order read backwards. The
// other orders add a number to all members, modulo n.
int placement_order(const struct experiment_placement *row, int order, int member) {
    const int n = row->move_count;
    const bool backwards = order >= n;
    for (int place = 0; place < n; place++) {
        int step = place % 2 == 1 ? (place + 1) / 2 : n - place / 2;
        if ((step + order) % n == member) return backwards ? n - 1 - place : place;
    }
    return -1; // no such member
}

int experiment_crossed(const struct experiment *x, const struct experiment_placement *row) {
    int most = 0;
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        if (c->cross_variants && c->variant_count > most && !placement_leaves_out(row, i))
            most = c->variant_count;
    }
    return most;
}

bool placement_moves(const struct experiment_placement *row, int constraint) {
    for (int i = 0; i < row->move_count; i++)
        if (constraint < 0 || row->move[i] == constraint) return true;
    return false;
}

bool placement_leaves_out(const struct experiment_placement *row, int constraint) {
    for (int i = 0; i < row->other_count; i++)
        if (row->others[i].constraint == constraint)
            return row->others[i].place.anchor == PLACE_ABSENT;
    return false;
}

int experiment_constraint_index(const struct experiment *x, const char *id) {
    for (int i = 0; i < x->constraint_count; i++)
        if (x->constraints[i].id != NULL && strcmp(x->constraints[i].id, id) == 0) return i;
    return -1;
}

const char *experiment_constraint_id(const struct experiment *x, int constraint) {
    return constraint < 0 ? "all" : x->constraints[constraint].id;
}

const struct experiment_variable *experiment_variable_find(const struct experiment_constraint *c,
                                                           struct str name) {
    for (int i = 0; i < c->var_count; i++)
        if (str_equal_c(name, c->vars[i].name)) return &c->vars[i];
    for (int i = 0; i < c->shared_count; i++)
        if (str_equal_c(name, c->shared[i].name)) return &c->shared[i];
    return NULL;
}

int experiment_reply_tokens(const struct experiment *x, int model) {
    return x->generation.max_tokens + x->models[model].reasoning_tokens;
}

int experiment_model_index(const struct experiment *x, const char *id) {
    for (int i = 0; i < x->model_count; i++)
        if (x->models[i].id != NULL && strcmp(x->models[i].id, id) == 0) return i;
    return -1;
}

int experiment_placement_index(const struct experiment *x, const char *id) {
    for (int i = 0; id != NULL && i < x->placement_count; i++)
        if (x->placements[i].id != NULL && strcmp(x->placements[i].id, id) == 0) return i;
    return -1;
}

// "path.to[0].key=value": the value is YAML, so that a list can be given too.
static void apply_set(struct node **root, const char *text, struct diagnostics *d) {
    const char *origin = arena_printf(d->arena, "--set %s", text);
    const struct mark mark = {origin, 1, 1};
    const char *equals = strchr(text, '='), *why;
    if (equals == NULL || equals[1] == '\0') {
        diagnose(d, mark, "", "expected KEY=VALUE, as in generation.max_tokens=8");
        return;
    }
    struct node *value = yaml_read(str_from(equals + 1), origin, d);
    const char *path = arena_memdup(d->arena, text, (size_t)(equals - text));
    if (value != NULL && node_set(root, path, value, d->arena, &why) != 0)
        diagnose(d, mark, "", "%s", why);
}

// The same key set twice would leave one of the two without effect.
static void refuse_set_twice(const struct experiment_overrides *overrides, int at,
                             struct diagnostics *d) {
    const char *text = overrides->set[at];
    struct str key = {text, strcspn(text, "=")};
    for (int i = 0; i < at; i++) {
        struct str other = {overrides->set[i], strcspn(overrides->set[i], "=")};
        if (!str_equal(key, other)) continue;
        const struct mark mark = {arena_printf(d->arena, "--set %s", text), 1, 1};
        diagnose(d, mark, "", "this key is set twice (--set %s)", overrides->set[i]);
    }
}

static struct load load_begin(struct diagnostics *d, const struct node *root, const char *path,
                              const char *folder) {
    struct arena *a = d->arena;
    struct load l = {.arena = a, .d = d, .root = root, .x = arena_alloc(a, sizeof *l.x)};
    l.x->path = arena_strdup(a, path);
    l.x->folder = arena_strdup(a, folder);
    return l;
}

// Reads the cases that the file names; repeats default to their number.
static void load_cases(struct load *l, json_t *resolved) {
    const json_t *o = json_object_get(resolved, "cases");
    const char *file = json_string_value(json_object_get(o, "file"));
    const char *id = json_string_value(json_object_get(o, "id"));
    struct case_table *cases = arena_alloc(l->arena, sizeof *cases);
    struct err e = {0};
    if (file == NULL || id == NULL) return;
    if (cases_load(path_resolve(l->arena, l->x->folder, file), id, l->arena, cases, &e) != 0) {
        diagnose_at(l->d, l->root, "cases.file", "%s", e.text);
        return;
    }
    l->columns = cases->columns;
    l->column_count = cases->column_count;
    l->cases = cases->rows;
    l->case_count = cases->row_count;
    if (node_get(l->root, "repeats") == NULL)
        json_put(resolved, "repeats", json_integer(cases->row_count));
}

static int apply_selection(struct load *l, json_t *resolved,
                           const struct experiment_overrides *overrides, struct err *e) {
    struct experiment *x = l->x;
    if (overrides == NULL) return 0;
    if (overrides->only != NULL) {
        TRY(experiment_only(l, overrides->only, &x->only, &x->only_count, e));
        json_t *list = json_object_get(resolved, "only");
        for (int i = 0; i < x->only_count; i++) json_array_append_new(list, json_text(x->only[i]));
    }
    if (overrides->limit == 0 || overrides->limit < -1 || overrides->limit > INT32_MAX)
        FAIL(e, ERR_CONFIG, "--limit: expected a number from 1 on, found %lld",
             (long long)overrides->limit);
    x->limit = overrides->limit;
    json_put(resolved, "limit", json_integer(x->limit));
    return 0;
}

int experiment_read(struct str source, const char *path,
                    const struct experiment_overrides *overrides, struct arena *a,
                    struct experiment **out, struct err *e) {
    struct diagnostics d = {.arena = a, .file = path};
    struct node *root = yaml_read(source, NULL, &d);
    if (root == NULL) return diagnostics_fail(&d, e);
    for (int i = 0; overrides != NULL && i < overrides->set_count; i++) {
        refuse_set_twice(overrides, i, &d);
        apply_set(&root, overrides->set[i], &d);
    }

    struct load l = load_begin(&d, root, path, path_folder(a, path));
    json_t *resolved = fields_resolve(root, l.x->folder, false, &d);
    load_cases(&l, resolved);
    experiment_messages(&l, resolved);
    experiment_build(&l, resolved);
    l.x->evidence_asked = node_get(root, "evidence") != NULL;
    experiment_check(&l);
    if (diagnostics_fail(&d, e) != 0 || apply_selection(&l, resolved, overrides, e) != 0) {
        json_decref(resolved);
        return -1;
    }
    diagnostics_warnings(&d, &l.x->warnings, &l.x->warning_count);
    l.x->source = source;
    l.x->resolved = resolved;
    *out = l.x;
    return 0;
}

int experiment_load(const char *path, const struct experiment_overrides *overrides, struct arena *a,
                    struct experiment **out, struct err *e) {
    struct str source;
    if (file_read(path, (size_t)64 << 20, a, &source, e) != 0) {
        if (e != NULL) e->code = ERR_CONFIG; // whatever the reason, it is about the experiment file
        return -1;
    }
    return experiment_read(source, path, overrides, a, out, e);
}

int experiment_from_json(json_t *resolved, const char *path, const char *folder, struct arena *a,
                         struct experiment **out, struct err *e) {
    struct diagnostics d = {.arena = a, .file = path};
    const struct node *root = node_from_json(resolved, a);
    struct load l = load_begin(&d, root, path, folder);
    json_t *again = fields_resolve(root, folder, true, &d);
    experiment_build(&l, again);
    if (!l.x->without_texts) experiment_check(&l);
    if (diagnostics_fail(&d, e) != 0) {
        json_decref(again);
        return -1;
    }
    l.x->resolved = again;
    *out = l.x;
    return 0;
}

void experiment_close(struct experiment *x) {
    if (x == NULL) return;
    json_decref(x->resolved);
    x->resolved = NULL;
}
