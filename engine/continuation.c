#include "engine/continuation.h"

#include <assert.h>
#include <string.h>

void continuation_start(struct continuation *r, const struct continuation_vocabulary *vocabulary,
                        const struct provider_generation *generation, struct arena *a) {
    assert(generation->max_tokens >= 1 && generation->reasoning_tokens < generation->max_tokens);
    *r = (struct continuation){.vocabulary = vocabulary, .generation = generation, .stop_id = -1};
    reasoning_start(&r->meter, generation->reasoning);
    size_t most = (size_t)generation->max_tokens;
    r->ids = arena_array(a, most, sizeof *r->ids);
    r->starts = arena_array(a, most, sizeof *r->starts);
    r->text = arena_array(a, most, vocabulary->longest_bytes);
}

static bool is_stop(const struct continuation_vocabulary *v, int32_t id) {
    for (size_t i = 0; i < v->stop_count; i++)
        if (v->stops[i] == id) return true;
    return false;
}

// The first byte of the earliest stop string that ends behind byte `old`, or STR_NONE.
static size_t find_stop(const struct continuation *r, size_t old) {
    size_t first = STR_NONE;
    const struct str *stop = r->generation->stop;
    for (int i = 0; i < r->generation->stop_count; i++) {
        size_t n = stop[i].n;
        assert(n > 0);
        size_t from = old >= n ? old - n + 1 : 0;
        size_t at = str_find((struct str){r->text, r->bytes}, stop[i], from);
        if (at < first) first = at;
    }
    return first;
}

// The first token that begins at this byte or behind it.
static size_t token_at(const struct continuation *r, size_t byte) {
    size_t i = r->count;
    while (i > 0 && r->starts[i - 1] >= byte) i--;
    return i;
}

// Keeps count of the reasoning's tokens.
static void follow_reasoning(struct continuation *r) {
    struct reasoning_meter *m = &r->meter;
    while (reasoning_follow(m, (struct str){r->text, r->bytes}))
        if (m->inside)
            r->block_first = token_at(r, m->begin);
        else
            r->thought += token_at(r, m->at) - r->block_first;
}

// Which budget is used up, if one is.
static bool is_used_up(const struct continuation *r, enum provider_finish *finish) {
    const struct provider_generation *g = r->generation;
    const bool inside = r->meter.inside;
    const size_t thought = r->thought + (inside ? r->count - r->block_first : 0);
    const size_t most = (size_t)g->reasoning_tokens;
    *finish = FINISH_LENGTH;
    if (most == 0) return r->tokens == g->max_tokens;
    if (!inside && r->count - thought >= (size_t)g->max_tokens - most) return true;
    *finish = FINISH_REASONING;
    return inside ? thought >= most : thought > most;
}

void continuation_add(struct continuation *r, int32_t id) {
    assert(!r->ended && r->tokens < r->generation->max_tokens);
    if (is_stop(r->vocabulary, id)) {
        r->ended = true;
        r->finish = FINISH_STOP;
        r->stop_id = id;
        return;
    }
    struct str bytes = r->vocabulary->bytes(r->vocabulary->context, id);
    assert(bytes.n <= r->vocabulary->longest_bytes);
    size_t old = r->bytes;
    r->ids[r->count] = id;
    r->starts[r->count] = old;
    r->count++;
    r->tokens++;
    if (bytes.n > 0) memcpy(r->text + old, bytes.p, bytes.n);
    r->bytes += bytes.n;
    size_t cut = find_stop(r, old);
    if (cut != STR_NONE) {
        r->bytes = cut;
        while (r->count > 0 && r->starts[r->count - 1] >= cut) r->count--;
        r->ended = true;
        r->finish = FINISH_STOP_STRING;
        return;
    }
    follow_reasoning(r);
    r->ended = is_used_up(r, &r->finish);
}

size_t continuation_reasoning_tokens(const struct continuation *r) {
    const struct str text = {r->text, r->bytes};
    size_t at = 0, i = 0, tokens = 0;
    struct reasoning_block block;
    if (r->generation->reasoning == NULL) return 0;
    while (reasoning_next(r->generation->reasoning, text, &at, &block)) {
        while (i < r->count && r->starts[i] < block.begin) i++;
        for (; i < r->count && r->starts[i] < block.end; i++) tokens++;
    }
    return tokens;
}
