#include "evals/summarize_words.h"

#include "evals/stats.h"

#include <string.h>

#define ANYWAY_ABOVE 0.05
#define UNDERSTOOD_FROM 0.5

static const char *rate_words(const struct summary_rate *r, struct arena *a) {
    return arena_printf(a, "%d of %d replies, 95 %% interval %.0f to %.0f %%", r->met, r->n,
                        100 * r->low, 100 * r->high);
}

// A reply that was cut or empty shows nothing of what a model understands.
static const char *unscored_words(const struct summary_rate *r, struct arena *a) {
    if (r->unscored == 0) return "";
    return arena_printf(a, " Of these replies %d %s unscored (cut, empty, ...), which may be why.",
                        r->unscored, r->unscored == 1 ? "is" : "are");
}

void summarize_remark(struct summary_table *table, struct arena *a, const char *text) {
    table->remarks =
        arena_more(a, (void *)table->remarks, (size_t)table->remark_count, sizeof *table->remarks);
    table->remarks[table->remark_count++] = text;
}

void summarize_remarks(const struct experiment *x, struct tally *t, int model,
                       const struct reach *reach, int constraint, struct arena *a,
                       struct summary_table *table) {
    struct tally_filter f = TALLY_EVERYTHING(ARM_ABSENT);
    f.model = model;
    struct summary_rate absent = tally_rate(t, &f, constraint);
    bool forbid = constraint >= 0 && x->constraints[constraint].kind == CONSTRAINT_FORBID;
    if (forbid && absent.n > 0 && absent.violated == 0)
        summarize_remark(table, a,
                         arena_printf(a,
                                      "No temptation: this constraint measures nothing here. "
                                      "Without it, none of %d replies violates it.",
                                      absent.n));
    else if (!forbid && absent.n > 0 && absent.low > ANYWAY_ABOVE)
        summarize_remark(table, a,
                         arena_printf(a,
                                      "The model says this anyway: without the constraint it is "
                                      "met in %s. Read the lift, not the rate.",
                                      rate_words(&absent, a)));
    if (table->brief.n > 0 && table->brief.rate < UNDERSTOOD_FROM)
        summarize_remark(
            table, a,
            arena_printf(
                a,
                "%s even when short: with %d tokens of filler it is met in "
                "%s. A low rate in long prompts then says little about "
                "length or place.%s",
                table->brief.high < UNDERSTOOD_FROM ? "Not understood" : "Perhaps not understood",
                x->short_tokens, rate_words(&table->brief, a), unscored_words(&table->brief, a)));
    if (table->brief.n == 0)
        summarize_remark(table, a,
                         arena_printf(a,
                                      "%s: nothing shows that the model understands this when the "
                                      "prompt is short.",
                                      x->arms[ARM_SHORT] ? "No answered trial in the short arm"
                                                         : "No short arm"));
    const char *out_of_sight = reach_remark(reach, t, model, constraint, a);
    if (out_of_sight != NULL) summarize_remark(table, a, out_of_sight);
}

static const char *filler_words(enum filler_kind kind) {
    switch (kind) {
    case FILLER_PROSE: return "generated prose";
    case FILLER_NOISE: return "repeated fixed sentences";
    case FILLER_FILES: return "the given files";
    case FILLER_CHAT: return "the given conversations";
    case FILLER_PAIRS: return "key-value lines";
    case FILLER_JSON_PAIRS: return "JSON lines of UUIDs";
    case FILLER_COMMON_WORDS: return "a list in which ten words are common";
    case FILLER_FREQUENT_WORDS: return "a list of words with the counts of Zipf's law";
    }
    return "";
}

static const char *wording_words(const struct experiment *x, struct arena *a) {
    int several = 0;
    for (int i = 0; i < x->constraint_count; i++) several += x->constraints[i].variant_count > 1;
    if (x->constraint_count == 1)
        return several == 0 ? "The constraint has one wording"
                            : "The constraint has several wordings";
    if (several == 0)
        return arena_printf(a, "Each of the %d constraints has one wording", x->constraint_count);
    return arena_printf(a, "Of the %d constraints %d ha%s more than one wording",
                        x->constraint_count, several, several == 1 ? "s" : "ve");
}

// The fewest and the most tokens that prompts of a length really have: they differ where a
// tolerance was needed.
static void real_lengths(const struct tally *t, int length, uint32_t *least, uint32_t *most) {
    *least = UINT32_MAX;
    *most = 0;
    for (int64_t i = 0; i < t->trial_count; i++) {
        const uint32_t tokens = t->trials[i].planned->prompt_tokens;
        if (t->trials[i].length != length) continue;
        if (tokens < *least) *least = tokens;
        if (tokens > *most) *most = tokens;
    }
}

static void add_lengths(struct buf *b, const struct tally *t) {
    for (int i = 0; i < t->length_count; i++) {
        uint32_t least, most;
        real_lengths(t, i, &least, &most);
        buf_printf(b, "%s%d",
                   i == 0                    ? ""
                   : i + 1 < t->length_count ? ", "
                                             : " and ",
                   t->lengths[i]);
        if (least < most) buf_printf(b, " (really %u to %u)", least, most);
    }
    buf_add_c(b, " tokens");
    if (t->x->measured_by != NULL)
        buf_printf(b, " as %s counts them, the same texts for every model,", t->x->measured_by);
}

static void add_places(struct buf *b, const struct tally *t) {
    int shown = 0;
    for (int i = 0; i < t->column_count; i++) {
        bool known = t->columns[i].of != NULL; // an order is no place
        for (int k = 0; k < i; k++) known |= place_equal(t->columns[k].place, t->columns[i].place);
        if (known) continue;
        char place[PLACE_TEXT_SIZE];
        place_text(t->columns[i].place, place);
        buf_printf(b, "%s%s", shown++ == 0 ? "" : ", ", place);
    }
}

const char *summarize_limits(const struct tally *t, bool evidence, struct arena *a) {
    const struct experiment *x = t->x;
    const struct experiment_generation *g = &x->generation;
    struct buf b = {0};
    buf_add_c(&b, "These numbers hold for what was tried: prompts of ");
    add_lengths(&b, t);
    buf_add_c(&b, " with constraints at ");
    add_places(&b, t);
    buf_printf(
        &b,
        "; nothing is known between or beyond them. %s, and all prompts share one kind of filler "
        "(%s) and one closing request. ",
        wording_words(x, a), filler_words(x->filler.kind));
    if (g->temperature == 0)
        buf_add_c(&b,
                  "Decoding is greedy, so the spread comes from the repeats' draws alone and not "
                  "from sampling. ");
    else
        buf_printf(&b,
                   "Replies are sampled at temperature %g; samples of one prompt are not repeats. ",
                   g->temperature);
    double detectable = stats_detectable(t->repeats, true);
    if (t->repeats < STATS_REPEATS_LEAST)
        buf_printf(&b, "%d repeat%s: too few to compare placements at all. ", t->repeats,
                   t->repeats == 1 ? "" : "s");
    else if (detectable <= 1)
        buf_printf(&b,
                   "With %d repeats, differences below about %.0f points can go unnoticed: \"no "
                   "difference shown\" does not mean that there is none. ",
                   t->repeats, 100 * detectable);
    buf_printf(&b,
               "A verdict tells whether the reply honours a constraint by the experiment's checks; "
               "it does not tell why, and %s not stand for other models, tasks or languages.",
               x->model_count == 1 ? "one model does" : "these models do");
    if (evidence)
        buf_add_c(&b, " Shares of attention are plain means, without intervals or tests: they tell "
                      "where a model looks, not what it makes of it.");
    return buf_take(&b, a).p;
}
