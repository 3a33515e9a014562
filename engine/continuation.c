#include "engine/continuation.h"

#include <assert.h>
#include <string.h>

void continuation_start(struct continuation *r, const struct continuation_vocabulary *vocabulary,
                        const struct str *stop, int stop_count, int max_tokens, struct arena *a) {
    assert(max_tokens >= 1);
    *r = (struct continuation){.vocabulary = vocabulary,
                               .stop = stop,
                               .stop_count = stop_count,
                               .max_tokens = max_tokens,
                               .stop_id = -1};
    size_t most = (size_t)max_tokens;
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
    for (int i = 0; i < r->stop_count; i++) {
        size_t n = r->stop[i].n;
        assert(n > 0);
        size_t from = old >= n ? old - n + 1 : 0;
        size_t at = str_find((struct str){r->text, r->bytes}, r->stop[i], from);
        if (at < first) first = at;
    }
    return first;
}

void continuation_add(struct continuation *r, int32_t id) {
    assert(!r->ended);
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
    } else if (r->tokens == r->max_tokens) {
        r->ended = true;
        r->finish = FINISH_LENGTH;
    }
}
