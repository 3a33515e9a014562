// Pairs: "quality-thing-thing: thing" lines. The words are seeded, the keys unique within a stream.
#include "prompts/filler_impl.h"

static const char *const qualities[] = {
    "airy",   "ample",   "brisk",  "broad",  "calm",   "clever", "coarse", "crisp",
    "deep",   "dense",   "eager",  "early",  "faint",  "fancy",  "fine",   "firm",
    "fresh",  "grand",   "hardy",  "hidden", "humble", "keen",   "late",   "light",
    "lively", "lone",    "loose",  "mellow", "mild",   "misty",  "neat",   "noble",
    "open",   "patient", "polite", "proud",  "quick",  "rapid",  "rare",   "ripe",
    "round",  "sharp",   "silent", "sleepy", "slim",   "solid",  "sunny",  "swift",
};

static const char *const things[] = {
    "acorn",   "anchor",  "anvil",  "arrow",   "badge",  "bamboo", "banner",  "barley",  "beacon",
    "blossom", "bonnet",  "branch", "bridge",  "bubble", "button", "cabin",   "candle",  "canyon",
    "cedar",   "cellar",  "clover", "cobweb",  "copper", "coral",  "cradle",  "crystal", "desert",
    "dolphin", "ember",   "falcon", "feather", "fiddle", "flint",  "forest",  "goblet",  "gravel",
    "hammer",  "harbor",  "hazel",  "heron",   "island", "ivory",  "jacket",  "kernel",  "ladle",
    "lagoon",  "lemon",   "lizard", "magnet",  "maple",  "marble", "meadow",  "mitten",  "nectar",
    "needle",  "nutmeg",  "oyster", "parcel",  "pepper", "petal",  "pigeon",  "pillar",  "pocket",
    "quartz",  "rabbit",  "raven",  "ripple",  "saddle", "sandal", "sparrow", "spiral",  "spruce",
    "temple",  "thistle", "timber", "tunnel",  "turnip", "velvet", "walnut",  "willow",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
// Half of all keys: beyond that drawing an unused one would take ever longer.
#define PAIRS_MOST (COUNT(qualities) * COUNT(things) * COUNT(things) / 2)

static int pairs_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)e;
    struct seen *seen = f->state;
    if (seen->count >= PAIRS_MOST) {
        *end = true;
        return 0;
    }
    const char *key;
    do
        key = arena_printf(f->arena, "%s-%s-%s", qualities[rng_below(&f->rng, COUNT(qualities))],
                           things[rng_below(&f->rng, COUNT(things))],
                           things[rng_below(&f->rng, COUNT(things))]);
    while (!seen_add(seen, str_from(key), f->arena));
    out->text =
        str_from(arena_printf(f->arena, "%s: %s", key, things[rng_below(&f->rng, COUNT(things))]));
    return 0;
}

struct filler *filler_pairs_open(struct rng rng, struct arena *a) {
    struct filler *f = filler_create(rng, a, arena_alloc(a, sizeof(struct seen)), pairs_next);
    f->tail = STR("\n");
    return f;
}
