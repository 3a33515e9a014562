#include "evals/summarize_attention.h"

#include <string.h>

enum { COLUMNS = 10 };

// A head, and how often it was the strongest.
struct vote {
    int layer, head, n;
    int64_t share_sum;
};

// Sums over trials, in parts per million.
struct attended {
    int n, replied; // replied: with rows of their own (record.h)
    int64_t prompt_tokens, reply_tokens, prompt, reply;
    int verdict_n[2]; // replied and not met, and met
    int64_t verdict_reply[2];
    struct vote *votes;
    int vote_count;
};

// Sums over trials and lengths for every head, of a moved constraint at one place.
struct head_sums {
    int n, layers, heads;
    int64_t tokens, *shares; // [layers][heads]
};

struct gathering {
    const struct tally *t;
    struct arena *arena;
    struct attended *cells;  // [model][constraint][length][column]
    struct attended *brief;  // [model][constraint]: the short arm
    struct head_sums *heads; // [model][constraint][column]
};

static size_t pair_of(const struct tally *t, int model, int constraint) {
    return (size_t)model * (size_t)t->x->constraint_count + (size_t)constraint;
}

static struct attended *cell_of(const struct gathering *g, int model, int constraint, int length,
                                int column) {
    const struct tally *t = g->t;
    size_t at = pair_of(t, model, constraint) * (size_t)t->length_count + (size_t)length;
    return &g->cells[at * (size_t)t->column_count + (size_t)column];
}

static struct head_sums *heads_of(const struct gathering *g, int model, int constraint,
                                  int column) {
    return &g->heads[pair_of(g->t, model, constraint) * (size_t)g->t->column_count +
                     (size_t)column];
}

// ---- gathering ---------------------------------------------------------------------------------

static void add_vote(struct attended *to, const struct vote *v, struct arena *a) {
    int i = 0;
    while (i < to->vote_count && (to->votes[i].layer != v->layer || to->votes[i].head != v->head))
        i++;
    if (i == to->vote_count) {
        to->votes = arena_more(a, to->votes, (size_t)to->vote_count, sizeof *to->votes);
        to->votes[to->vote_count++] = (struct vote){v->layer, v->head, 0, 0};
    }
    to->votes[i].n += v->n;
    to->votes[i].share_sum += v->share_sum;
}

static void add_attended(struct attended *to, const struct attended *from, struct arena *a) {
    to->n += from->n;
    to->replied += from->replied;
    to->prompt_tokens += from->prompt_tokens;
    to->reply_tokens += from->reply_tokens;
    to->prompt += from->prompt;
    to->reply += from->reply;
    for (int met = 0; met < 2; met++) {
        to->verdict_n[met] += from->verdict_n[met];
        to->verdict_reply[met] += from->verdict_reply[met];
    }
    for (int i = 0; i < from->vote_count; i++) add_vote(to, &from->votes[i], a);
}

static void add_trial(struct attended *to, const struct record_attention *from, bool met,
                      struct arena *a) {
    bool replied = from->mean.of[ROWS_REPLY] != RECORD_NO_SHARE;
    to->n++;
    to->prompt_tokens += from->prompt_tokens;
    to->prompt += from->mean.of[ROWS_PROMPT];
    if (from->strongest_count > 0) {
        const struct record_head *h = &from->strongest[0];
        int32_t share = h->shares.of[replied ? ROWS_REPLY : ROWS_PROMPT];
        add_vote(to, &(struct vote){h->layer, h->head, 1, share}, a);
    }
    if (!replied) return;
    to->replied++;
    to->reply_tokens += from->reply_tokens;
    to->reply += from->mean.of[ROWS_REPLY];
    to->verdict_n[met]++;
    to->verdict_reply[met] += from->mean.of[ROWS_REPLY];
}

// Of replies; a model's size is one, so a line that says another is left out.
static void add_heads(struct head_sums *to, const struct record_evidence *v,
                      const struct record_attention *from, struct arena *a) {
    if (from->all == NULL || from->mean.of[ROWS_REPLY] == RECORD_NO_SHARE) return;
    if (to->n == 0) {
        to->layers = v->layers;
        to->heads = v->heads;
        to->shares = arena_array(a, (size_t)v->layers * (size_t)v->heads, sizeof *to->shares);
    }
    if (to->layers != v->layers || to->heads != v->heads) return;
    to->n++;
    to->tokens += from->reply_tokens;
    for (int i = 0; i < v->layers * v->heads; i++) to->shares[i] += from->all[i].of[ROWS_REPLY];
}

static void gather_trial(struct gathering *g, const struct tally_trial *trial,
                         const struct record_evidence *v) {
    const struct tally *t = g->t;
    for (int i = 0; i < v->attention_count; i++) {
        const struct record_attention *from = &v->attention[i];
        int c = experiment_constraint_index(t->x, from->constraint);
        if (c < 0) continue;
        bool met = tally_holds(t, trial, c) && tally_verdict(t, trial, c) == VERDICT_MET;
        if (trial->arm == ARM_SHORT)
            add_trial(&g->brief[pair_of(t, trial->model, c)], from, met, g->arena);
        int column = tally_column(t, trial, c);
        if (trial->arm != ARM_PLACED || column < 0 || trial->length < 0) continue;
        add_trial(cell_of(g, trial->model, c, trial->length, column), from, met, g->arena);
        if (placement_moves(&t->x->placements[t->columns[column].placement], c))
            add_heads(heads_of(g, trial->model, c, column), v, from, g->arena);
    }
}

// A trial's place in the plan is its place in the tally.
static int gather(const struct record *r, struct gathering *g, struct err *e) {
    const struct tally *t = g->t;
    size_t pairs = (size_t)t->x->model_count * (size_t)t->x->constraint_count;
    size_t columns = pairs * (size_t)t->column_count + 1;
    g->cells = arena_array(g->arena, columns * ((size_t)t->length_count + 1), sizeof *g->cells);
    g->brief = arena_array(g->arena, pairs + 1, sizeof *g->brief);
    g->heads = arena_array(g->arena, columns, sizeof *g->heads);
    struct arena *scratch = arena_create("evidence");
    int result = 0;
    for (int64_t i = 0; i < t->trial_count && result == 0; i++) {
        const struct record_evidence *v;
        arena_reset(scratch);
        result = record_get_evidence(r, i, scratch, &v, e);
        if (result == 0 && v != NULL && t->trials[i].verdicts != NULL)
            gather_trial(g, &t->trials[i], v);
    }
    arena_destroy(scratch);
    return result;
}

// ---- the tables --------------------------------------------------------------------------------

static double percent(int64_t sum, int n) {
    return (double)sum / n / 1e4;
}

// "2.9 % (1.5x)": a share of the attention, and how many times the share of the tokens that is.
static const char *share_words(struct arena *a, int64_t sum, int64_t tokens, int n) {
    if (n == 0) return "-";
    if (tokens == 0) return arena_printf(a, "%.2f %%", percent(sum, n));
    return arena_printf(a, "%.2f %% (%.1fx)", percent(sum, n), (double)sum / (double)tokens);
}

static const char *verdict_words(struct arena *a, const struct attended *c) {
    const char *words[2];
    for (int met = 0; met < 2; met++)
        words[met] =
            c->verdict_n[met] == 0
                ? "-"
                : arena_printf(a, "%.2f %%", percent(c->verdict_reply[met], c->verdict_n[met]));
    return arena_printf(a, "%s / %s", words[1], words[0]);
}

// The head that was the strongest in most trials; of several the first layer and head.
static const char *strongest_words(struct arena *a, const struct attended *c) {
    const struct vote *best = NULL;
    for (int i = 0; i < c->vote_count; i++) {
        const struct vote *v = &c->votes[i];
        bool before = best != NULL &&
                      (v->layer < best->layer || (v->layer == best->layer && v->head < best->head));
        if (best == NULL || v->n > best->n || (v->n == best->n && before)) best = v;
    }
    if (best == NULL) return "-";
    return arena_printf(a, "L%dH%d %.0f %% (%d/%d)", best->layer, best->head,
                        percent(best->share_sum, best->n), best->n, c->n);
}

static void add_row(struct grids *l, struct summary_grid *grid, const char *constraint,
                    const char *length, const char *place, const char *window,
                    const struct attended *c, const struct summary_rate *used) {
    struct arena *a = l->arena;
    const char *cells[COLUMNS] = {
        constraint,
        length,
        place,
        window,
        arena_printf(a, "%.2f %%", percent(c->prompt_tokens, c->n)),
        share_words(a, c->prompt, c->prompt_tokens, c->n),
        share_words(a, c->reply, c->reply_tokens, c->replied),
        strongest_words(a, c),
        grids_fraction(l, used->met, used->n),
        verdict_words(a, c),
    };
    grids_row(l, grid, cells);
}

static const struct summary_table *table_of(const struct summary *s, const char *model,
                                            const char *constraint) {
    for (int i = 0; i < s->table_count; i++)
        if (strcmp(s->tables[i].model, model) == 0 &&
            strcmp(s->tables[i].constraint, constraint) == 0)
            return &s->tables[i];
    return NULL;
}

static const char *window_word(const struct summary_cell *c) {
    return c->in_window != NULL ? c->in_window : "yes";
}

// Of one length in one placement row?
static bool side_by_side(const struct gathering *g, const struct summary_cell *a,
                         const struct summary_cell *b) {
    return a->length == b->length &&
           g->t->columns[a->column].placement == g->t->columns[b->column].placement;
}

// A constraint that stays while others move: all places of the row at one length are one line,
// which the first of them gives.
static void add_staying(const struct gathering *g, const struct summary *s, int model,
                        int constraint, const struct summary_table *table, int first,
                        struct grids *l, struct summary_grid *grid) {
    const struct summary_cell *begin = &table->cells[first];
    struct attended sum = {0};
    struct summary_rate used = {0};
    const char *window = window_word(begin);
    for (int i = 0; i < table->cell_count; i++) {
        const struct summary_cell *cell = &table->cells[i];
        if (!side_by_side(g, begin, cell)) continue;
        if (i < first) return;
        add_attended(&sum, cell_of(g, model, constraint, cell->length, cell->column), l->arena);
        used.met += cell->rate.met;
        used.n += cell->rate.n;
        if (strcmp(window, window_word(cell)) != 0) window = "differs";
    }
    if (sum.n == 0) return;
    add_row(l, grid, table->constraint, arena_printf(l->arena, "%d", s->lengths[begin->length]),
            s->places[begin->column].placement, window, &sum, &used);
}

static void add_rows(const struct gathering *g, const struct summary *s, int model, int constraint,
                     struct grids *l, struct summary_grid *grid) {
    const struct experiment *x = g->t->x;
    const char *id = x->constraints[constraint].id;
    const struct summary_table *table = table_of(s, x->models[model].id, id);
    if (table == NULL) return;
    for (int i = 0; i < table->cell_count; i++) {
        const struct summary_cell *cell = &table->cells[i];
        const struct summary_place *place = &s->places[cell->column];
        const struct attended *c = cell_of(g, model, constraint, cell->length, cell->column);
        if (!placement_moves(&x->placements[g->t->columns[cell->column].placement], constraint)) {
            add_staying(g, s, model, constraint, table, i, l, grid);
            continue;
        }
        if (c->n == 0) continue;
        add_row(l, grid, id, arena_printf(l->arena, "%d", s->lengths[cell->length]),
                arena_printf(l->arena, "%s@%s", place->placement, place->place), window_word(cell),
                c, &cell->rate);
    }
    const struct attended *brief = &g->brief[pair_of(g->t, model, constraint)];
    if (brief->n > 0) add_row(l, grid, id, "-", "short arm", "yes", brief, &table->brief);
}

// A constraint over all cells of the rows that move it.
static void say(const struct gathering *g, int model, int constraint, struct grids *l,
                struct summary_grid *grid) {
    const struct tally *t = g->t;
    struct attended sum = {0};
    for (int length = 0; length < t->length_count; length++)
        for (int column = 0; column < t->column_count; column++)
            if (placement_moves(&t->x->placements[t->columns[column].placement], constraint))
                add_attended(&sum, cell_of(g, model, constraint, length, column), l->arena);
    if (sum.replied == 0) return;
    const char *met = "", *id = t->x->constraints[constraint].id;
    if (sum.verdict_n[0] > 0 && sum.verdict_n[1] > 0)
        met = arena_printf(l->arena,
                           " (%.2f %% in the %d that met it, %.2f %% in the %d that did not)",
                           percent(sum.verdict_reply[1], sum.verdict_n[1]), sum.verdict_n[1],
                           percent(sum.verdict_reply[0], sum.verdict_n[0]), sum.verdict_n[0]);
    grids_say(l, grid,
              arena_printf(l->arena,
                           "Of the attention of %d replies %.2f %% falls on %s%s, which is %.2f %% "
                           "of the tokens in view: evidence, not cause.",
                           sum.replied, percent(sum.reply, sum.replied), id, met,
                           percent(sum.reply_tokens, sum.replied)));
}

static void add_grid(const struct gathering *g, const struct summary *s, int model,
                     struct grids *l) {
    static const char *const heads[COLUMNS] = {
        "constraint",
        "length",
        "place",
        "in the window",
        "share of tokens",
        "attended at the prompt's end",
        "attended in the reply",
        "strongest head in the reply",
        "used (met)",
        "attended in the reply where met / not met",
    };
    const struct experiment *x = g->t->x;
    struct summary_grid *grid = grids_add(
        l, arena_printf(l->arena, "In the window, attended, used: %s", x->models[model].id),
        "Three ways to see a constraint. In the window: the prompt was delivered and no sliding "
        "window hides it. Attended: the share of attention on the constraint's tokens, a mean over "
        "all heads of all layers and over trials, and in brackets how many times its share of the "
        "tokens that is; at the prompt's end by the last prompt token, in the reply by each token "
        "that chooses the next. Used: the verdict. Attention is evidence and not cause: a head may "
        "look at a text and make nothing of it, and what was read once is carried on by other "
        "tokens. A reply that says a value looks at it while it does, so a larger share where it "
        "is "
        "met explains nothing by itself. Most heads rest on the first tokens and the nearest ones "
        "whatever they say, so a place alone changes the share. Strongest head: the one that is "
        "first in most trials, its mean share there, and in how many (L6H1: layer 6, head 1, from "
        "0). A constraint that stays while others move has one line for all their places.",
        heads, COLUMNS);
    for (int c = 0; c < x->constraint_count; c++) add_rows(g, s, model, c, l, grid);
    for (int c = 0; c < x->constraint_count; c++) say(g, model, c, l, grid);
}

static bool was_watched(const struct gathering *g, int model) {
    const struct tally *t = g->t;
    size_t constraints = (size_t)t->x->constraint_count;
    size_t cells = constraints * (size_t)t->length_count * (size_t)t->column_count;
    for (size_t i = 0; i < cells; i++)
        if (g->cells[(size_t)model * cells + i].n > 0) return true;
    for (size_t i = 0; i < constraints; i++)
        if (g->brief[(size_t)model * constraints + i].n > 0) return true;
    return false;
}

// ---- heads -------------------------------------------------------------------------------------

// Its maps stand in the order of the columns.
static void take_heads(const struct gathering *g, int model, int constraint, int placement,
                       struct summary *s) {
    const struct tally *t = g->t;
    struct arena *a = g->arena;
    struct summary_heads h = {.model = t->x->models[model].id,
                              .constraint = t->x->constraints[constraint].id,
                              .placement = t->x->placements[placement].id};
    h.maps = arena_array(a, (size_t)t->column_count + 1, sizeof *h.maps);
    for (int column = 0; column < t->column_count; column++) {
        const struct head_sums *from = heads_of(g, model, constraint, column);
        if (t->columns[column].placement != placement || from->n == 0) continue;
        struct summary_head_map *map = &h.maps[h.map_count++];
        size_t count = (size_t)from->layers * (size_t)from->heads;
        *map = (struct summary_head_map){.place = s->places[column].place,
                                         .n = from->n,
                                         .tokens = percent(from->tokens, from->n) / 100,
                                         .shares = arena_array(a, count, sizeof *map->shares)};
        h.layers = from->layers;
        h.heads = from->heads;
        for (size_t i = 0; i < count; i++) map->shares[i] = percent(from->shares[i], from->n) / 100;
    }
    if (h.map_count == 0) return;
    s->heads = arena_more(a, s->heads, (size_t)s->heads_count, sizeof *s->heads);
    s->heads[s->heads_count++] = h;
}

int summarize_attention(const struct record *r, const struct tally *t, struct arena *a,
                        struct summary *s, struct grids *out, struct err *e) {
    const struct experiment *x = t->x;
    struct gathering g = {.t = t, .arena = a};
    if (r->evidence == NULL) return 0;
    TRY(gather(r, &g, e));
    for (int model = 0; model < x->model_count; model++) {
        if (was_watched(&g, model)) add_grid(&g, s, model, out);
        for (int c = 0; c < x->constraint_count; c++)
            for (int row = 0; row < x->placement_count; row++) take_heads(&g, model, c, row, s);
    }
    return 0;
}
