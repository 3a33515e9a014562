// What stands around the constraints of a prompt, for its line of the plan.
#include "evals/plan_internal.h"
#include "evals/salience.h"

#include <string.h>

struct surroundings {
    const struct experiment *x;
    const struct repeat_draw *d;
    size_t first_digit;  // in the stored filler
    const char ***words; // [constraint]: those that it shares with the messages
    int *word_count;
    bool *digits; // [constraint]: its text holds some
};

// All messages without the slot of the filler.
static struct str messages_text(const struct experiment *x, const struct repeat_draw *d,
                                struct arena *a) {
    struct buf b = {0};
    for (int i = 0; i < x->message_count; i++) {
        struct str text = d->messages[i].text;
        size_t slot = str_find(text, STR(PROMPT_SLOT), 0);
        if (slot == STR_NONE) slot = text.n;
        buf_add_str(&b, str_slice(text, 0, slot));
        buf_add_char(&b, '\n');
        if (slot < text.n) buf_add_str(&b, str_slice(text, slot + strlen(PROMPT_SLOT), text.n));
        buf_add_char(&b, '\n');
    }
    return buf_take(&b, a);
}

// Found in `a`: of what that takes only the words belong in the plan's arena.
static int shared_words(struct str text, struct str question, struct arena *plan_arena,
                        struct arena *a, const char ***words) {
    const char **found;
    int count = salience_shared_words(text, question, a, &found);
    if (count == 0) return 0;
    *words = arena_array(plan_arena, (size_t)count, sizeof **words);
    for (int i = 0; i < count; i++) (*words)[i] = arena_strdup(plan_arena, found[i]);
    return count;
}

const struct surroundings *surroundings_find(const struct experiment *x,
                                             const struct repeat_draw *d, struct str filler,
                                             struct arena *plan_arena, struct arena *a) {
    size_t n = (size_t)x->constraint_count + 1;
    struct surroundings *s = arena_alloc(a, sizeof *s);
    s->x = x;
    s->d = d;
    s->first_digit = salience_first_digit(filler);
    s->words = arena_array(a, n, sizeof *s->words);
    s->word_count = arena_array(a, n, sizeof *s->word_count);
    s->digits = arena_array(a, n, sizeof *s->digits);
    struct str question = messages_text(x, d, a);
    for (int i = 0; i < x->constraint_count; i++) {
        struct str text = d->texts[i];
        s->digits[i] = salience_first_digit(text) < text.n;
        if (x->constraints[i].in_prompt) continue; // a rule in the messages repeats itself
        s->word_count[i] = shared_words(text, question, plan_arena, a, &s->words[i]);
    }
    return s;
}

int draft_surroundings(const struct surroundings *s, struct filler *f, struct draft *out,
                       struct err *e) {
    int count = distractors_within(f, out->filler_bytes, e);
    if (count < 0) return -1;
    out->t.distractors = s->d->distractors;
    out->t.distractor_count = count;
    for (int i = 0; i < out->t.span_count; i++) {
        struct record_span *span = &out->t.spans[i];
        int c = experiment_constraint_index(s->x, span->constraint);
        span->question_words = s->words[c];
        span->question_word_count = s->word_count[c];
        span->only_digits = s->digits[c] && s->first_digit >= out->filler_bytes;
    }
    return 0;
}
