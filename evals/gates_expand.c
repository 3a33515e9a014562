// Which judgements a gate makes, and their words.
#include "evals/gates_internal.h"

#include <string.h>

static const struct metric {
    const char *word, *text;
    bool difference;
} metrics[] = {{"met_rate", "met rate", false},
               {"violated_rate", "violated rate", false},
               {"lift", "lift over the absent arm", true},
               {"middle_gap", "middle gap", true},
               {"regression", "drop against the baseline", true},
               {"changed_replies", "changed replies", false}};

enum gate_metric gate_metric_of(const struct experiment_gate *g) {
    int m = 0; // the loader knows the same words
    while (m < GATE_CHANGED_REPLIES && strcmp(metrics[m].word, g->metric) != 0) m++;
    return (enum gate_metric)m;
}

bool gate_is_difference(enum gate_metric m) {
    return metrics[m].difference;
}

bool gate_passes(const struct experiment_gate *g, double low, double high) {
    return (!g->has_at_least || low >= g->at_least) && (!g->has_at_most || high <= g->at_most);
}

static void list_add(struct judged_list *l, struct judged j) {
    l->p = arena_more(l->arena, l->p, (size_t)l->count, sizeof *l->p);
    l->p[l->count++] = j;
}

static void add_word(struct buf *b, const char *key, const char *value) {
    buf_printf(b, "%s%s=%s", b->n > 0 ? ", " : "", key, value);
}

// "order: met rate at least 0.6 where depth=middle, pooled over length".
static const char *gate_text(const struct experiment *x, const struct experiment_gate *g,
                             const char *where, struct arena *a) {
    struct buf b = {0};
    const char *what = g->of < 0 ? "all constraints" : x->constraints[g->of].id;
    enum gate_metric m = gate_metric_of(g);
    if (m != GATE_CHANGED_REPLIES) buf_printf(&b, "%s: ", what);
    buf_add_c(&b, metrics[m].text);
    if (g->has_at_least) buf_printf(&b, " at least %g", g->at_least);
    if (g->has_at_least && g->has_at_most) buf_add_c(&b, " and");
    if (g->has_at_most) buf_printf(&b, " at most %g", g->at_most);
    if (where[0] != '\0') buf_printf(&b, " where %s", where);
    if (g->baseline != NULL) buf_printf(&b, ", baseline %s", g->baseline_name);
    const bool pooled[] = {g->pool_model, g->pool_length, g->pool_placement, g->pool_depth};
    static const char *const names[] = {"model", "length", "placement", "depth"};
    const char *joint = ", pooled over ";
    for (int i = 0; i < 4; i++) {
        if (!pooled[i]) continue;
        buf_printf(&b, "%s%s", joint, names[i]);
        joint = " and ";
    }
    return buf_take(&b, a).p;
}

// Words for the values that were filled in for open dimensions (`open`) and for all of them
// (`where`).
static void describe(const struct tally *t, const struct experiment_gate *g, struct judged *j,
                     struct arena *a) {
    const struct experiment *x = t->x;
    struct buf where = {0}, open = {0};
    const struct tally_filter *f = &j->filter;
    if (f->arm != ARM_PLACED) add_word(&where, "arm", arm_name(f->arm));
    if (f->model != TALLY_ANY && x->model_count > 1) {
        add_word(&where, "model", x->models[f->model].id);
        if (g->where.model < 0) add_word(&open, "model", x->models[f->model].id);
    }
    if (f->length != TALLY_ANY) {
        const char *length = arena_printf(a, "%d", t->lengths[f->length]);
        add_word(&where, "length", length);
        if (g->where.length_tokens < 0) add_word(&open, "length", length);
    }
    if (f->placement != TALLY_ANY && x->placement_count > 1) {
        add_word(&where, "placement", x->placements[f->placement].id);
        if (g->where.placement < 0) add_word(&open, "placement", x->placements[f->placement].id);
    }
    if (f->has_place) {
        char place[PLACE_TEXT_SIZE];
        place_text(f->place, place);
        add_word(&where, "depth", place);
        if (!g->where.has_place) add_word(&open, "depth", place);
    }
    j->text = gate_text(x, g, where.n > 0 ? where.p : "", a);
    j->id = open.n > 0 ? arena_printf(a, "%s[%s]", g->id, open.p) : g->id;
    buf_free(&where);
    buf_free(&open);
}

// The different places, in columns' order; returns how many there are.
static int different_places(const struct tally *t, struct place *places) {
    int count = 0;
    for (int i = 0; i < t->column_count; i++) {
        bool known = false;
        for (int k = 0; k < count; k++) known |= place_equal(places[k], t->columns[i].place);
        if (!known) places[count++] = t->columns[i].place;
    }
    return count;
}

// Changed replies are counted together; the middle gap has its depths.
static bool is_open(const struct experiment_gate *g, bool fixed, bool pooled) {
    return !fixed && !pooled && gate_metric_of(g) != GATE_CHANGED_REPLIES;
}

static void expand_places(struct tally *t, const struct experiment_gate *g, struct tally_filter f,
                          struct judged_list *out) {
    struct place *places = arena_array(out->arena, (size_t)t->column_count + 1, sizeof *places);
    bool gap = gate_metric_of(g) == GATE_MIDDLE_GAP, placed = f.arm == ARM_PLACED;
    bool each_row = placed && is_open(g, g->where.placement >= 0, g->pool_placement);
    bool each_place = placed && !gap && is_open(g, g->where.has_place, g->pool_depth);
    int rows = each_row ? t->x->placement_count : 1;
    int place_count = each_place ? different_places(t, places) : 1;
    for (int row = 0; row < rows; row++) {
        for (int k = 0; k < place_count; k++) {
            struct judged j = {g, f, NULL, NULL};
            if (each_row) j.filter.placement = row;
            if (each_place) {
                j.filter.has_place = true;
                j.filter.place = places[k];
            }
            if (tally_planned(t, &j.filter, g->of).n == 0) continue;
            if (gap && each_row && !gate_has_gap(t, row, g->of)) continue;
            describe(t, g, &j, out->arena);
            list_add(out, j);
        }
    }
}

struct judged_list gates_expand(struct tally *t, struct arena *a) {
    struct judged_list out = {.arena = a};
    for (int i = 0; i < t->x->gate_count; i++) {
        const struct experiment_gate *g = &t->x->gates[i];
        struct tally_filter f = TALLY_EVERYTHING(g->where.arm);
        f.placement = g->where.placement < 0 ? TALLY_ANY : g->where.placement;
        f.has_place = g->where.has_place;
        f.place = g->where.place;
        bool each_model = is_open(g, g->where.model >= 0, g->pool_model);
        bool has_length = g->where.arm != ARM_SHORT;
        bool each_length = has_length && is_open(g, g->where.length_tokens >= 0, g->pool_length);
        int models = each_model ? t->x->model_count : 1, before = out.count;
        int lengths = each_length ? t->length_count : 1;
        for (int m = 0; m < models; m++) {
            for (int l = 0; l < lengths; l++) {
                f.model = each_model ? m : g->where.model < 0 ? TALLY_ANY : g->where.model;
                f.length = each_length ? l : TALLY_ANY;
                bool planned = g->where.length_tokens < 0;
                for (int k = 0; k < t->length_count && !planned; k++) {
                    planned = t->lengths[k] == g->where.length_tokens;
                    if (planned) f.length = k;
                }
                if (planned) expand_places(t, g, f, &out);
            }
        }
        if (out.count == before) { // nothing of it is planned: one judgement that says so
            struct judged none = {g, TALLY_EVERYTHING(g->where.arm), g->id,
                                  gate_text(t->x, g, "", a)};
            none.filter.model = t->x->model_count; // selects nothing
            list_add(&out, none);
        }
    }
    return out;
}
