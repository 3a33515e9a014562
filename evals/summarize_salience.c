#include "evals/summarize_salience.h"

#include "evals/summarize_words.h"

#include <string.h>

enum { WORDS_MOST = 12 };

struct salience {
    int prompts, only_digits, with_words, distracted;
    int64_t distractors;
    const char *words[WORDS_MOST];
    int word_count;
};

static void add_words(struct salience *s, const struct record_span *span) {
    s->with_words += span->question_word_count > 0;
    for (int i = 0; i < span->question_word_count; i++) {
        bool known = s->word_count == WORDS_MOST;
        for (int k = 0; k < s->word_count && !known; k++)
            known = strcmp(s->words[k], span->question_words[i]) == 0;
        if (!known) s->words[s->word_count++] = span->question_words[i];
    }
}

static void look_at(struct salience *s, const struct record_trial *t, const char *id) {
    int distractors = 0;
    for (int i = 0; i < t->distractor_count; i++)
        distractors += strcmp(t->distractors[i].constraint, id) == 0;
    const struct record_span *span = NULL; // it may stand at several places, all alike
    for (int i = 0; i < t->span_count && span == NULL; i++)
        if (strcmp(t->spans[i].constraint, id) == 0) span = &t->spans[i];
    if (span == NULL) return;
    s->prompts++;
    s->only_digits += span->only_digits;
    s->distracted += distractors > 0;
    s->distractors += distractors;
    add_words(s, span);
}

static const char *share(int n, int of, struct arena *a) {
    return n == of ? "all" : arena_printf(a, "%d of %d", n, of);
}

void summarize_salience(const struct tally *t, int model, int constraint, struct arena *a,
                        struct summary_table *table) {
    struct salience s = {0};
    const char *id = t->x->constraints[constraint].id;
    for (int64_t i = 0; i < t->trial_count; i++)
        if (t->trials[i].arm == ARM_PLACED && t->trials[i].model == model)
            look_at(&s, t->trials[i].planned, id);
    if (s.only_digits > 0)
        summarize_remark(
            table, a,
            arena_printf(a,
                         "Salient: in %s placed prompts the filler holds no digits but the "
                         "constraint does.",
                         share(s.only_digits, s.prompts, a)));
    struct buf words = {0};
    for (int i = 0; i < s.word_count; i++)
        buf_printf(&words, "%s%s", i > 0 ? ", " : "", s.words[i]);
    if (s.word_count > 0)
        summarize_remark(
            table, a,
            arena_printf(a,
                         "Salient: the question repeats words of the constraint (%s%s), in %s "
                         "placed prompts.",
                         words.p, s.word_count == WORDS_MOST ? ", ..." : "",
                         share(s.with_words, s.prompts, a)));
    buf_free(&words);
    if (s.distracted > 0)
        summarize_remark(
            table, a,
            arena_printf(a,
                         "Distractors: %s placed prompts hold sentences of its shape with other "
                         "values, %.1f on average.",
                         share(s.distracted, s.prompts, a), (double)s.distractors / s.prompts));
}
