// The cells of an experiment: their order, keys, selection, and where constraints stand in them.
#include "evals/plan_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// A row at one place: once, or with each of the crossed wordings.
static int wordings_each(const struct experiment *x, struct cell c,
                         int (*visit)(void *, const struct cell *, struct err *), void *context,
                         struct err *e) {
    const int crossed = experiment_crossed(x, &x->placements[c.placement]);
    if (crossed == 0) return visit(context, &c, e);
    for (c.variant = 0; c.variant < crossed; c.variant++) TRY(visit(context, &c, e));
    return 0;
}

int cell_variant(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                 int constraint) {
    return c->variant >= 0 && x->constraints[constraint].cross_variants ? c->variant
                                                                        : d->variant[constraint];
}

static int placed_each(const struct experiment *x, struct cell c,
                       int (*visit)(void *, const struct cell *, struct err *), void *context,
                       struct err *e) {
    for (c.placement = 0; c.placement < x->placement_count; c.placement++) {
        const struct experiment_placement *p = &x->placements[c.placement];
        for (int i = 0; i < placement_orders(p); i++) {
            c.place = place_of_order(i);
            TRY(wordings_each(x, c, visit, context, e));
        }
        for (int i = 0; i < p->place_count && !p->scatter; i++) {
            c.place = p->places[i];
            TRY(wordings_each(x, c, visit, context, e));
        }
    }
    return 0;
}

int cells_each(const struct experiment *x,
               int (*visit)(void *context, const struct cell *c, struct err *e), void *context,
               struct err *e) {
    for (int model = 0; model < x->model_count; model++) {
        struct cell c = {.model = model, .length = -1, .placement = -1, .variant = -1};
        for (int i = 0; i < x->length_count; i++) {
            c.length = x->lengths[i];
            c.arm = ARM_PLACED;
            if (x->arms[ARM_PLACED]) TRY(placed_each(x, c, visit, context, e));
            c.arm = ARM_ABSENT;
            if (x->arms[ARM_ABSENT]) TRY(visit(context, &c, e));
        }
        c.arm = ARM_SHORT;
        c.length = -1;
        if (x->arms[ARM_SHORT]) TRY(visit(context, &c, e));
    }
    return 0;
}

// ---- places ----

static enum prompt_anchor anchor_of(enum place_anchor anchor) {
    switch (anchor) {
    case PLACE_IN_SYSTEM: return PROMPT_IN_SYSTEM;
    case PLACE_BEFORE_FILLER: return PROMPT_BEFORE_FILLER;
    case PLACE_AFTER_FILLER: return PROMPT_AFTER_FILLER;
    case PLACE_FIRST_USER: return PROMPT_FIRST_USER;
    case PLACE_LAST_USER: return PROMPT_LAST_USER;
    case PLACE_IN_PLACE: return PROMPT_IN_PLACE;
    default: return PROMPT_AT_DEPTH;
    }
}

static void insert_add(const struct experiment *x, const struct cell *c,
                       const struct repeat_draw *d, int constraint, struct place place,
                       struct prompt_insert *inserts, int *constraints, size_t *count) {
    const int variant = cell_variant(x, c, d, constraint);
    for (int i = 0; i <= place.more_count && place.anchor != PLACE_ABSENT; i++) {
        struct place_spot spot = place_spot(&place, i);
        constraints[*count] = constraint;
        inserts[(*count)++] = (struct prompt_insert){.id = x->constraints[constraint].id,
                                                     .text = d->wordings[constraint][variant],
                                                     .anchor = anchor_of(spot.anchor),
                                                     .depth = spot.depth};
    }
}

static bool names_constraint(const struct experiment_placement *p, int constraint) {
    if (placement_moves(p, constraint)) return true;
    for (int i = 0; i < p->other_count; i++)
        if (p->others[i].constraint == constraint) return true;
    return false;
}

bool cell_in_repeat(const struct experiment *x, const struct cell *c, const struct repeat_draw *d) {
    if (c->placement < 0 || !x->placements[c->placement].one_order) return true;
    return d->index % placement_orders(&x->placements[c->placement]) == c->place.depth - 1;
}

// Where the moved constraint number `member` stands in this cell.
static struct place member_place(const struct experiment_placement *p, const struct cell *c,
                                 int member) {
    return p->scatter ? p->places[placement_order(p, c->place.depth - 1, member)] : c->place;
}

// File order, but a moved block stays together where its first constraint stands. A rule of the
// user's own prompt that the row does not name stays where it is.
static void placed_inserts(const struct experiment *x, const struct cell *c,
                           const struct repeat_draw *d, struct prompt_insert *inserts,
                           int *constraints, size_t *count) {
    const struct experiment_placement *p = &x->placements[c->placement];
    for (int i = 0; i < x->constraint_count; i++) {
        for (int k = 0; k < p->move_count; k++)
            if (p->scatter ? p->move[k] == i : p->move[0] == i)
                insert_add(x, c, d, p->move[k], member_place(p, c, k), inserts, constraints, count);
        for (int k = 0; k < p->other_count; k++)
            if (p->others[k].constraint == i)
                insert_add(x, c, d, i, p->others[k].place, inserts, constraints, count);
        if (x->constraints[i].in_prompt && !names_constraint(p, i))
            insert_add(x, c, d, i, (struct place){.anchor = PLACE_IN_PLACE}, inserts, constraints,
                       count);
    }
}

void cell_inserts(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                  struct prompt_insert *inserts, int *constraints, size_t *count) {
    *count = 0;
    if (c->arm == ARM_PLACED) placed_inserts(x, c, d, inserts, constraints, count);
    if (c->arm != ARM_SHORT) return;
    for (int i = 0; i < x->constraint_count; i++) {
        int64_t parts = x->constraint_count + 1;
        struct place place = place_at((int32_t)((i + 1) * (int64_t)DEPTH_MOST / parts));
        insert_add(x, c, d, i, place, inserts, constraints, count);
    }
}

// ---- selection ----

static bool item_matches(const struct experiment *x, const struct cell *c,
                         const struct repeat_draw *d, int sample, struct str field,
                         struct str value) {
    char text[PLACE_TEXT_SIZE];
    if (str_equal_c(field, "model")) return str_equal_c(value, x->models[c->model].id);
    if (str_equal_c(field, "arm")) return str_equal_c(value, arm_name(c->arm));
    if (str_equal_c(field, "case")) return d->case_id != NULL && str_equal_c(value, d->case_id);
    if (str_equal_c(field, "placement"))
        return c->placement >= 0 && str_equal_c(value, x->placements[c->placement].id);
    if (str_equal_c(field, "depth")) {
        if (c->placement < 0) return false;
        place_text(c->place, text);
        return str_equal_c(value, text);
    }
    int number = -1;
    if (str_equal_c(field, "length")) number = c->length;
    if (str_equal_c(field, "repeat")) number = d->index;
    if (str_equal_c(field, "sample")) {
        if (sample < 0) return true;
        number = sample;
    }
    if (str_equal_c(field, "variant") && c->variant >= 0) number = c->variant + 1;
    if (number < 0) return false;
    snprintf(text, sizeof text, "%d", number);
    return str_equal_c(value, text);
}

// Values of one field are alternatives; different fields must all match. A field that a trial does
// not have (the depth of an absent arm) does not match.
bool cell_selected(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                   int sample) {
    for (int i = 0; i < x->only_count; i++) {
        size_t at = str_find(x->only[i], STR("="), 0);
        assert(at != STR_NONE);
        struct str field = str_slice(x->only[i], 0, at);
        bool any = false;
        for (int k = 0; k < x->only_count && !any; k++) {
            struct str item = x->only[k];
            if (str_starts(item, str_slice(x->only[i], 0, at + 1)))
                any = item_matches(x, c, d, sample, field, str_slice(item, at + 1, item.n));
        }
        if (!any) return false;
    }
    return true;
}

// ---- names ----

const char *cell_key(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                     int sample, struct arena *a) {
    struct buf b = {0};
    char place[PLACE_TEXT_SIZE];
    buf_printf(&b, "%s/%s/", x->models[c->model].id, arm_name(c->arm));
    if (c->length >= 0)
        buf_printf(&b, "%d/", c->length);
    else
        buf_add_c(&b, "-/");
    if (c->placement >= 0) {
        place_text(c->place, place);
        buf_printf(&b, "%s@%s", x->placements[c->placement].id, place);
        if (c->variant >= 0) buf_printf(&b, "~%d", c->variant + 1);
        buf_add_char(&b, '/');
    } else {
        buf_add_c(&b, "-/");
    }
    if (d->case_id != NULL)
        buf_add_c(&b, d->case_id);
    else
        buf_printf(&b, "%d", d->index);
    buf_printf(&b, "/%d", sample);
    return buf_take(&b, a).p;
}

const char *cell_words(const struct experiment *x, const struct cell *c,
                       const struct repeat_draw *d, struct arena *a) {
    struct buf b = {0};
    char place[PLACE_TEXT_SIZE];
    buf_printf(&b, "model %s, %s arm", x->models[c->model].id, arm_name(c->arm));
    if (c->length >= 0) buf_printf(&b, ", length %d", c->length);
    if (c->placement >= 0) {
        place_text(c->place, place);
        buf_printf(&b, ", %s@%s", x->placements[c->placement].id, place);
        if (c->variant >= 0) buf_printf(&b, ", wording %d", c->variant + 1);
    }
    buf_printf(&b, ", %s", d->scope);
    return buf_take(&b, a).p;
}
