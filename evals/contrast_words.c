#include "evals/contrast_words.h"

#include "evals/stats.h"
#include "reports/layout.h"

#include <math.h>
#include <string.h>

const char *contrast_scope(const struct tally *t, int first_length, int last_length,
                           struct arena *a) {
    return last_length - first_length == 1 ? arena_printf(a, "length %d", t->lengths[first_length])
                                           : "all lengths";
}

const char *contrast_what(const struct summary_contrast *c) {
    return strcmp(c->constraint, "all") == 0 ? "the whole set of constraints" : c->constraint;
}

void contrast_take_interval(struct summary_contrast *c, struct stats_interval i) {
    c->has_interval = !c->underpowered;
    if (!c->has_interval) return;
    c->low = i.low;
    c->high = i.high;
}

static const char *unscored_words(const char *between, double apart, double effect,
                                  struct arena *a) {
    if (apart <= CONTRAST_UNSCORED_APART) return "";
    return arena_printf(a,
                        " Shares of unscored replies differ by %.1f points between the %s "
                        "compared; %s.",
                        100 * apart, between,
                        fabs(effect) > apart
                            ? "that may be a part of it"
                            : "that alone may make such a difference, or hide one");
}

static void write_sentence(struct contrast_draft *d, const char *between, struct arena *a) {
    struct summary_contrast *c = &d->contrast;
    const char *seen = d->seen;
    const char *kind = c->primary ? "" : "Exploratory: ";
    const char *unscored = unscored_words(between, d->apart, c->effect, a);
    if (c->underpowered) {
        c->sentence = arena_printf(a,
                                   "%sUnderpowered: %d repeat%s, too few for a conclusion (10 at "
                                   "least). Seen: %s.%s",
                                   kind, c->repeats, c->repeats == 1 ? "" : "s", seen, unscored);
        return;
    }
    // Exact test and interval are two approximations; a difference is only what both show.
    bool tested = c->p_holm <= 0.05, apart_from_0 = c->low > 0 || c->high < 0;
    const char *answer = tested && apart_from_0 ? "Difference shown: "
                         : tested ? "No difference shown: the test alone would show one, but the "
                                    "interval holds 0. Seen: "
                                  : "No difference shown: ";
    char p[16], holm[16];
    layout_p(c->p, p);
    layout_p(c->p_holm, holm);
    const char *corrected =
        c->p_holm != c->p ? arena_printf(a, ", after Holm's correction %s", holm) : "";
    c->sentence = arena_printf(a,
                               "%s%s%s (95 %% interval of the difference %.1f to %.1f, %s%s, %d "
                               "repeats).%s",
                               kind, answer, seen, 100 * c->low, 100 * c->high, p, corrected,
                               c->repeats, unscored);
}

// ---- families ----

void contrast_add(struct contrast_list *l, const struct contrast_draft *d) {
    l->p = arena_more(l->arena, l->p, (size_t)l->count, sizeof *l->p);
    l->p[l->count++] = *d;
}

void contrast_correct(struct contrast_list *l, bool primary, const char *between) {
    double *p = arena_array(l->arena, (size_t)l->count + 1, sizeof *p);
    double *adjusted = arena_array(l->arena, (size_t)l->count + 1, sizeof *adjusted);
    int count = 0;
    for (int i = 0; i < l->count; i++)
        if (l->p[i].contrast.primary == primary && l->p[i].contrast.defined)
            p[count++] = l->p[i].contrast.p;
    stats_holm(p, count, adjusted);
    count = 0;
    for (int i = 0; i < l->count; i++) {
        struct contrast_draft *d = &l->p[i];
        if (d->contrast.primary != primary || !d->contrast.defined) continue;
        d->contrast.p_holm = adjusted[count++];
        write_sentence(d, between, l->arena);
    }
}

int contrast_finish(const struct contrast_list *l, struct summary_contrast **out) {
    *out = arena_array(l->arena, (size_t)l->count + 1, sizeof **out);
    for (int i = 0; i < l->count; i++) (*out)[i] = l->p[i].contrast;
    return l->count;
}
