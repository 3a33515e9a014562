// Noise: a few fixed sentences over and over. Every pass over them has an order of its own, drawn
// from the repeat's stream, so that repeats differ even without a constraint in them.
#include "prompts/filler_impl.h"
#include "prompts/prose.h"

#include <assert.h>
#include <string.h>

struct noise {
    const struct str *sentences;
    uint32_t count, at; // at == count: the pass is over
    uint32_t *order;
};

static void pass_draw(struct noise *n, struct rng *r) {
    uint32_t last = n->order[n->count - 1];
    for (uint32_t i = 0; i < n->count; i++) n->order[i] = i;
    rng_shuffle(r, n->order, n->count);
    // The same sentence twice in a row only when there is no other.
    if (n->at > 0 && n->count > 1 && n->order[0] == last) {
        n->order[0] = n->order[1];
        n->order[1] = last;
    }
    n->at = 0;
}

static int noise_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)end;
    (void)e;
    struct noise *n = f->state;
    if (n->at == n->count || f->count == 0) pass_draw(n, &f->rng);
    out->text = str_trim(n->sentences[n->order[n->at++]]);
    return 0;
}

// The built-in sentences of a language.
static const struct str *built_in(const char *language, size_t *count, struct arena *a) {
    const struct prose *p = prose_find(language);
    assert(p != NULL);
    *count = p->noise.count;
    struct str *list = arena_array(a, *count, sizeof *list);
    for (size_t i = 0; i < *count; i++) list[i] = str_from(p->noise.words[i]);
    return list;
}

struct filler *filler_noise_open(const struct str *sentences, size_t count, const char *language,
                                 struct rng rng, struct arena *a) {
    struct noise *n = arena_alloc(a, sizeof *n);
    n->sentences = count > 0 ? sentences : built_in(language, &count, a);
    n->count = (uint32_t)count;
    n->order = arena_array(a, n->count, sizeof *n->order);
    struct filler *f = filler_create(rng, a, n, noise_next);
    f->lead = filler_language_spaced(language) ? STR(" ") : STR("");
    return f;
}
