// `placements` and `lengths` of resolved.json into the struct.
#include "evals/experiment_load.h"

#include <stdlib.h>
#include <string.h>

static void build_places(struct load *l, const json_t *o, struct experiment_placement *p) {
    const json_t *lists[] = {json_object_get(o, "depths"), json_object_get(o, "anchors")};
    size_t most = json_array_size(lists[0]) + json_array_size(lists[1]);
    p->places = arena_array(l->arena, most + 1, sizeof *p->places);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < json_array_size(lists[k]); i++)
            if (load_place(json_array_get(lists[k], i), &p->places[p->place_count]))
                p->place_count++;
}

// In file order, whatever the order here.
static void build_move(struct load *l, const json_t *list, const char *path,
                       struct experiment_placement *p) {
    p->move = arena_array(l->arena, json_array_size(list) + 1, sizeof *p->move);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (id == NULL) continue;
        int constraint = load_constraint(l, id, arena_printf(l->arena, "%s[%zu]", path, i));
        if (constraint < 0) continue;
        int at = p->move_count++;
        for (; at > 0 && p->move[at - 1] > constraint; at--) p->move[at] = p->move[at - 1];
        p->move[at] = constraint;
    }
}

static int by_place(const void *a, const void *b) {
    return place_compare(*(const struct place *)a, *(const struct place *)b);
}

// Every constraint that the row does not name.
static void build_rest(struct load *l, struct place place, struct experiment_placement *p) {
    bool *named = arena_array(l->arena, (size_t)l->x->constraint_count + 1, sizeof *named);
    for (int i = 0; i < p->move_count; i++) named[p->move[i]] = true;
    for (int i = 0; i < p->other_count; i++) named[p->others[i].constraint] = true;
    for (int i = 0; i < l->x->constraint_count; i++)
        if (!named[i]) p->others[p->other_count++] = (struct experiment_other){i, place};
}

static void build_placement(struct load *l, const json_t *o, int index) {
    struct experiment_placement *p = &l->x->placements[index];
    p->id = load_word(l, o, "id");
    const json_t *others = json_object_get(o, "others");
    const char *orders = load_word(l, o, "orders");
    p->scatter = json_object_get(o, "scatter") != NULL;
    p->one_order = orders != NULL && strcmp(orders, "one") == 0;
    build_move(l, json_object_get(o, p->scatter ? "scatter" : "move"),
               arena_printf(l->arena, "placements[%d].%s", index, p->scatter ? "scatter" : "move"),
               p);
    build_places(l, o, p);
    if (p->scatter && p->place_count > 0)
        qsort(p->places, (size_t)p->place_count, sizeof *p->places, by_place);
    size_t most = json_object_size(others) + (size_t)l->x->constraint_count;
    p->others = arena_array(l->arena, most + 1, sizeof *p->others);
    const char *id;
    json_t *value;
    json_object_foreach((json_t *)others, id, value) {
        struct experiment_other other = {
            load_constraint(l, id, arena_printf(l->arena, "placements[%d].others.%s", index, id)),
            {0}};
        if (load_place(value, &other.place) && other.constraint >= 0)
            p->others[p->other_count++] = other;
    }
    struct place rest;
    if (load_place(json_object_get(o, "rest"), &rest)) build_rest(l, rest, p);
}

void build_lengths(struct load *l, const json_t *o) {
    const json_t *tokens = json_object_get(o, "tokens");
    l->x->lengths = arena_array(l->arena, json_array_size(tokens) + 1, sizeof *l->x->lengths);
    for (size_t i = 0; i < json_array_size(tokens); i++)
        l->x->lengths[l->x->length_count++] =
            (int)json_integer_value(json_array_get(tokens, i)); // 0 where it was no number
    l->x->length_tolerance_ppm = load_share(o, "tolerance");
    const char *by = load_word(l, o, "measured_by");
    if (by == NULL || strcmp(by, "each") == 0) return;
    l->x->measured_by = by;
    if (experiment_model_index(l->x, by) < 0)
        diagnose_at(l->d, l->root, "lengths.measured_by", "there is no model '%s'", by);
}

void build_placements(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->placement_count = (int)json_array_size(list);
    x->placements = arena_array(l->arena, (size_t)x->placement_count + 1, sizeof *x->placements);
    for (int i = 0; i < x->placement_count; i++)
        build_placement(l, json_array_get(list, (size_t)i), i);
}
