// JSON pairs: one line a pair, "UUID": "UUID", as in the key-value retrieval of Liu et al., "Lost
// in the Middle: How Language Models Use Long Contexts", TACL 2024.
#include "prompts/filler_impl.h"

static int json_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)end;
    (void)e;
    char key[RNG_UUID_SIZE], value[RNG_UUID_SIZE];
    rng_uuid(&f->rng, key);
    rng_uuid(&f->rng, value);
    out->text = str_from(arena_printf(f->arena, "\"%s\": \"%s\",", key, value));
    return 0;
}

struct filler *filler_json_open(struct rng rng, struct arena *a) {
    struct filler *f = filler_create(rng, a, NULL, json_next);
    f->tail = STR("\n");
    // The closing unit is a pair as well, so that the object stays one.
    f->closing = (struct filler_frame){STR("\"note\": \""), STR("\",")};
    return f;
}
