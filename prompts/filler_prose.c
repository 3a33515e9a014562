// Prose: sentences drawn from a language's patterns and word lists.
#include "prompts/filler_impl.h"
#include "prompts/prose.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

const struct prose *prose_find(const char *language) {
    static const struct prose *const all[] = {&prose_en, &prose_zh, &prose_ar};
    size_t n = strcspn(language, "-_");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->language) == n && strncmp(all[i]->language, language, n) == 0)
            return all[i];
    return NULL;
}

bool filler_language_written(const char *language) {
    return prose_find(language) != NULL;
}

static const char *word_draw(struct rng *r, const struct prose_list *list) {
    return list->words[rng_below(r, list->count)];
}

// The words of the sentence being drawn, so that the second of a sort differs from the first.
struct drawn {
    const char *last[PROSE_SLOTS];
};

static const char *slot_draw(struct rng *r, const struct prose *p, int slot, struct drawn *d) {
    const char *word = word_draw(r, &p->lists[slot]);
    while (word == d->last[slot]) word = word_draw(r, &p->lists[slot]);
    d->last[slot] = word;
    return word;
}

// The slot that stands at pattern[i], or -1. In a language of Latin letters a slot has no letter
// beside it, and the article is written "a " before a slot.
static int slot_at(const struct prose *p, const char *pattern, size_t i) {
    const unsigned char c = (unsigned char)pattern[i];
    if (!isalpha(c)) return -1;
    if (p->latin) {
        if ((i > 0 && isalpha((unsigned char)pattern[i - 1])) ||
            isalpha((unsigned char)pattern[i + 1]))
            return -1;
        if (c == 'a' && pattern[i + 1] == ' ') return -1;
    }
    const char *at = strchr(PROSE_SLOT_LETTERS, toupper(c));
    return at != NULL ? (int)(at - PROSE_SLOT_LETTERS) : -1;
}

static void sentence_draw(struct rng *r, const struct prose *p, struct buf *out) {
    const char *pattern = word_draw(r, &p->patterns);
    struct drawn d = {0};
    buf_clear(out);
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        int slot = slot_at(p, pattern, i);
        if (slot >= 0)
            buf_add_c(out, slot_draw(r, p, slot, &d));
        else
            buf_add_char(out, pattern[i]);
    }
    if (p->latin) out->p[0] = (char)toupper((unsigned char)out->p[0]);
}

struct prose_state {
    const struct prose *prose;
    struct seen seen;
};

static int prose_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)end;
    (void)e;
    struct prose_state *state = f->state;
    struct buf sentence = {0};
    struct str s;
    do {
        sentence_draw(&f->rng, state->prose, &sentence);
        s = buf_str(&sentence);
    } while (s.n + f->lead.n > FILLER_PROSE_UNIT_BYTES || !seen_add(&state->seen, s, f->arena));
    out->text = str_copy(f->arena, s);
    buf_free(&sentence);
    return 0;
}

struct filler *filler_prose_open(const char *language, struct rng rng, struct arena *a) {
    struct prose_state *state = arena_alloc(a, sizeof *state);
    state->prose = prose_find(language);
    assert(state->prose != NULL);
    struct filler *f = filler_create(rng, a, state, prose_next);
    f->lead = filler_language_spaced(language) ? STR(" ") : STR("");
    return f;
}
