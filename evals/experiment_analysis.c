// The primary contrast, the gates, and --only: what looks at cells that must exist.
#include "evals/contrast.h"
#include "evals/experiment_internal.h"
#include "evals/experiment_scalar.h"

#include <stdlib.h>
#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

// -1 as placement: any row.
static bool place_exists(const struct experiment *x, int placement, struct place place) {
    for (int i = 0; i < x->placement_count; i++) {
        if (placement >= 0 && placement != i) continue;
        for (int k = 0; k < x->placements[i].place_count; k++)
            if (place_equal(x->placements[i].places[k], place)) return true;
        if (place.anchor == PLACE_ORDER && place.depth <= placement_orders(&x->placements[i]))
            return true;
    }
    return false;
}

// Does a trial's key have it? Keys of scattered rows have orders.
static bool place_keyed(const struct experiment *x, struct place place) {
    for (int i = 0; i < x->placement_count; i++)
        if (x->placements[i].scatter == (place.anchor == PLACE_ORDER) && place_exists(x, i, place))
            return true;
    return false;
}

static bool moves_over(const struct experiment *x, int placement,
                       const struct contrast_kind *kind) {
    for (int i = 0; i < kind->count; i++)
        if (!place_exists(x, placement, place_at(kind->depths[i]))) return false;
    return true;
}

static void check_primary(struct load *l) {
    const struct experiment *x = l->x;
    if (!x->primary.given || x->primary.contrast == NULL || x->placement_count == 0 ||
        diagnosed(l->d, "placements"))
        return;
    const struct contrast_kind *kind = contrast_find(x->primary.contrast);
    if (kind == NULL) return; // the table of fields has said so
    for (int k = 0; k < x->placement_count; k++)
        if (placement_moves(&x->placements[k], x->primary.of) && moves_over(x, k, kind) &&
            !(x->placements[k].scatter && (x->primary.of < 0 || x->placements[k].one_order)))
            return;
    struct buf depths = {0};
    for (int i = 0; i < kind->count; i++) {
        char text[PLACE_TEXT_SIZE];
        place_text(place_at(kind->depths[i]), text);
        buf_printf(&depths, "%s%s", i == 0 ? "" : ", ", text);
    }
    WRONG("primary.contrast", "no placement moves %s over all depths that %s compares (%s)",
          x->primary.of < 0 ? "a constraint" : x->constraints[x->primary.of].id, kind->name,
          depths.p);
    buf_free(&depths);
}

static bool length_exists(const struct experiment *x, int length) {
    for (int i = 0; i < x->length_count; i++)
        if (x->lengths[i] == length) return true;
    return false;
}

static void check_where(struct load *l, const struct experiment_gate *g, const char *path) {
    const struct experiment *x = l->x;
    const struct experiment_where *w = &g->where;
    if (!x->arms[w->arm])
        WRONG(AT("%s.where.arm", path), "the experiment has no arm '%s'", arm_name(w->arm));
    if (w->length_tokens >= 0 && !length_exists(x, w->length_tokens) && !diagnosed(l->d, "lengths"))
        WRONG(AT("%s.where.length", path), "%d is none of lengths.tokens", w->length_tokens);
    if (w->arm != ARM_PLACED && (w->has_place || w->placement >= 0))
        WRONG(AT("%s.where.%s", path, w->has_place ? "depth" : "placement"),
              "the arm '%s' has no placements", arm_name(w->arm));
    if (w->arm == ARM_SHORT && w->length_tokens >= 0)
        WRONG(AT("%s.where.length", path), "the arm 'short' has no lengths");
    char text[PLACE_TEXT_SIZE];
    place_text(w->place, text);
    if (w->has_place && w->arm == ARM_PLACED && !place_exists(x, w->placement, w->place) &&
        !diagnosed(l->d, "placements"))
        WRONG(AT("%s.where.depth", path), "no placement moves a constraint to %s", text);
    if ((g->pool_model && w->model >= 0) || (g->pool_length && w->length_tokens >= 0) ||
        (g->pool_placement && w->placement >= 0) || (g->pool_depth && w->has_place))
        WRONG(AT("%s.pool", path), "what `where` fixes to one value cannot be pooled");
}

static bool is_metric(const struct experiment_gate *g, const char *metric) {
    return strcmp(g->metric, metric) == 0;
}

// Those that need other trials beside the selected ones.
static void check_places(struct load *l, const struct experiment_gate *g, const char *path) {
    bool gap = is_metric(g, "middle_gap");
    if (!gap && !is_metric(g, "lift")) return;
    if (g->where.arm != ARM_PLACED)
        WRONG(AT("%s.where.arm", path), "%s looks at the arm 'placed'", g->metric);
    if (gap && (g->where.has_place || g->pool_depth))
        WRONG(AT("%s.%s", path, g->pool_depth ? "pool" : "where.depth"),
              "middle_gap has its own depths: start, middle and end");
    if (!gap && !l->x->arms[ARM_ABSENT])
        WRONG(path, "lift is placed minus absent, and `arms` has no 'absent'");
}

static void check_baseline(struct load *l, const struct experiment_gate *g, const char *path) {
    bool changed = is_metric(g, "changed_replies"), against = changed || is_metric(g, "regression");
    if (against && g->baseline == NULL)
        WRONG(path, "%s needs a baseline: a file of `lacuna baseline RUN -o FILE`", g->metric);
    if (!against && (g->baseline != NULL || g->allow_count > 0))
        WRONG(AT("%s.%s", path, g->baseline != NULL ? "baseline" : "allow"),
              "%s looks at this run alone; regression and changed_replies have a baseline",
              g->metric);
    if (changed &&
        (g->of >= 0 || g->pool_model || g->pool_length || g->pool_placement || g->pool_depth))
        WRONG(AT("%s.%s", path, g->of >= 0 ? "of" : "pool"),
              "changed_replies counts all replies that `where` names; leave this out");
    if (changed && (g->has_at_least || g->at_most > 0))
        WRONG(path, "changed_replies is exact: at_most: 0%%");
}

static void check_metric(struct load *l, const struct experiment_gate *g, const char *path) {
    check_places(l, g, path);
    check_baseline(l, g, path);
    if ((is_metric(g, "middle_gap") || is_metric(g, "regression")) && g->has_at_least)
        WRONG(AT("%s.at_least", path), "%s is bounded from above: at_most", g->metric);
}

static void check_gates(struct load *l) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->gate_count; i++) {
        const struct experiment_gate *g = &x->gates[i];
        const char *path = AT("gates[%d]", i);
        if (g->metric == NULL) continue;
        if (!g->has_at_least && !g->has_at_most)
            WRONG(path, "needs at_least or at_most: the bound that it judges");
        if (g->has_at_least && g->has_at_most && g->at_least > g->at_most)
            WRONG(path, "at_least is above at_most, so nothing can pass");
        for (int k = 0; k < i; k++)
            if (strcmp(g->id, x->gates[k].id) == 0)
                WRONG(path, "gates[%d] has the same id '%s'; ids must differ", k, g->id);
        check_where(l, g, path);
        check_metric(l, g, path);
    }
}

void experiment_check_analysis(struct load *l) {
    check_primary(l);
    check_gates(l);
}

enum only_field {
    ONLY_MODEL,
    ONLY_ARM,
    ONLY_LENGTH,
    ONLY_PLACEMENT,
    ONLY_DEPTH,
    ONLY_VARIANT,
    ONLY_REPEAT,
    ONLY_SAMPLE,
    ONLY_CASE,
    ONLY_FIELDS
};
static const char *const only_names[ONLY_FIELDS] = {
    "model", "arm", "length", "placement", "depth", "variant", "repeat", "sample", "case"};

static int only_value(const struct load *l, enum only_field field, struct str value,
                      struct str *out, struct err *e) {
    const struct experiment *x = l->x;
    struct arena *a = l->arena;
    const char *text = str_to_c(a, value);
    const char *name = only_names[field];
    int64_t number;
    struct place place;
    *out = str_from(text);
    switch (field) {
    case ONLY_MODEL:
        if (experiment_model_index(x, text) >= 0) return 0;
        FAIL(e, ERR_CONFIG, "--only: there is no model '%s'", text);
    case ONLY_PLACEMENT:
        if (experiment_placement_index(x, text) >= 0) return 0;
        FAIL(e, ERR_CONFIG, "--only: there is no placement '%s'", text);
    case ONLY_ARM:
        for (int i = 0; i < 3; i++)
            if (strcmp(arm_name((enum arm)i), text) == 0 && x->arms[i]) return 0;
        FAIL(e, ERR_CONFIG, "--only: the experiment has no arm '%s'", text);
    case ONLY_DEPTH:
        if (scalar_place(value, &place) != 0 || !place_keyed(x, place))
            FAIL(e, ERR_CONFIG, "--only: no placement moves a constraint to depth '%s'", text);
        char spelled[PLACE_TEXT_SIZE];
        place_text(place, spelled);
        *out = str_from(arena_strdup(a, spelled));
        return 0;
    case ONLY_VARIANT:
        for (int i = 0; i < x->placement_count; i++)
            if (scalar_integer(value, &number) == 0 && number > 0 &&
                number <= experiment_crossed(x, &x->placements[i]))
                return 0;
        FAIL(e, ERR_CONFIG, "--only: no row crosses a wording '%s'", text);
    case ONLY_CASE:
        for (int i = 0; i < l->case_count && i < x->repeats; i++)
            if (strcmp(l->cases[i].id, text) == 0) return 0;
        FAIL(e, ERR_CONFIG, "--only: %s '%s'",
             x->cases_path == NULL ? "the experiment has no cases, so no" : "there is no case",
             text);
    case ONLY_LENGTH:
        if (scalar_integer(value, &number) == 0 && number > 0 && number <= INT32_MAX &&
            length_exists(x, (int)number))
            return 0;
        FAIL(e, ERR_CONFIG, "--only: '%s' is none of lengths.tokens", text);
    default: {
        const int most = field == ONLY_REPEAT ? x->repeats : x->generation.samples;
        if (scalar_integer(value, &number) == 0 && number >= 0 && number < most) return 0;
        FAIL(e, ERR_CONFIG, "--only: expected %s=0 to %d, found '%s'", name, most - 1, text);
    }
    }
}

static int by_text(const void *a, const void *b) {
    const struct str *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static int only_item(const struct load *l, struct str item, struct str *out, struct err *e) {
    struct arena *a = l->arena;
    size_t equals = str_find(item, STR("="), 0);
    if (equals == STR_NONE)
        FAIL(e, ERR_CONFIG,
             "--only: expected FIELD=VALUE, as in 'length=8000,depth=middle', found '" STR_FMT "'",
             STR_ARG(item));
    const char *name = str_to_c(a, str_trim(str_slice(item, 0, equals)));
    for (int f = 0; f < ONLY_FIELDS; f++) {
        if (strcmp(name, only_names[f]) != 0) continue;
        struct str value;
        TRY(only_value(l, (enum only_field)f, str_trim(str_slice(item, equals + 1, item.n)), &value,
                       e));
        *out = str_from(arena_printf(a, "%s=" STR_FMT, name, STR_ARG(value)));
        return 0;
    }
    const char *near = str_nearest(name, only_names, ONLY_FIELDS);
    FAIL(e, ERR_CONFIG,
         "--only: unknown field '%s'%s%s%s; there are model, arm, length, placement, depth, "
         "variant, repeat, sample, case",
         name, near == NULL ? "" : ", did you mean '", near == NULL ? "" : near,
         near == NULL ? "" : "'?");
}

int experiment_only(const struct load *l, const char *text, struct str **items, int *count,
                    struct err *e) {
    struct str s = str_from(text);
    *count = 0;
    *items = arena_array(l->arena, str_count(s, STR(",")) + 1, sizeof **items);
    for (size_t at = 0; at <= s.n;) {
        size_t comma = str_find(s, STR(","), at);
        if (comma == STR_NONE) comma = s.n;
        struct str item = str_trim(str_slice(s, at, comma));
        TRY(only_item(l, item, &(*items)[*count], e));
        ++*count;
        at = comma + 1;
    }
    // Fixed order, once each: the same selection is the same request however it was typed.
    qsort(*items, (size_t)*count, sizeof **items, by_text);
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (kept == 0 || !str_equal((*items)[kept - 1], (*items)[i]))
            (*items)[kept++] = (*items)[i];
    *count = kept;
    return 0;
}
