// Noise: a few fixed sentences over and over. Every pass over them has an order of its own, drawn
// from the repeat's stream, so that repeats differ even without a constraint in them.
#include "prompts/filler_impl.h"

#include <string.h>

static const struct str built_in[] = {
    {"The grass is green.", 19},
    {"The sky is wide.", 16},
    {"The sun is warm.", 16},
    {"The river is long.", 18},
    {"Here we go.", 11},
    {"There and back again.", 21},
    {"The wind is light.", 18},
    {"The road is dry.", 16},
    {"The leaves are still.", 21},
    {"The water is calm.", 18},
    {"The hills are far away.", 23},
    {"The birds are quiet.", 20},
    {"The stones are smooth.", 22},
    {"The night is clear.", 19},
    {"The bread is fresh.", 19},
    {"The room is tidy.", 17},
};

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

struct filler *filler_noise_open(const struct str *sentences, size_t count, bool spaced,
                                 struct rng rng, struct arena *a) {
    struct noise *n = arena_alloc(a, sizeof *n);
    bool own = count > 0;
    n->sentences = own ? sentences : built_in;
    n->count = (uint32_t)(own ? count : sizeof built_in / sizeof built_in[0]);
    n->order = arena_array(a, n->count, sizeof *n->order);
    struct filler *f = filler_create(rng, a, n, noise_next);
    f->lead = spaced ? STR(" ") : STR("");
    return f;
}
