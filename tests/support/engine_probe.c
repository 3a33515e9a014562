#include "tests/support/engine_probe.h"

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

struct probe probe_open(const char *path, const struct session_options *o) {
    struct probe p = {.arena = arena_create("test")};
    struct err e = {0};
    ASSERT_OK(model_open(path, p.arena, &p.model, &e), e);
    ASSERT_OK(session_open(p.model, o, &p.session, &e), e);
    return p;
}

void probe_close(struct probe *p) {
    session_close(p->session);
    model_close(p->model);
    arena_destroy(p->arena);
}

const char *probe_model(const char *name, const struct tiny_model_options *o) {
    static char paths[24][512];
    static size_t used;
    assert_true(used < sizeof paths / sizeof *paths);
    char *path = paths[used++];
    snprintf(path, sizeof paths[0], "%s/%s.gguf", test_folder(), name);
    tiny_model_write(path, o);
    return path;
}

void probe_ids(uint64_t seed, uint32_t V, int32_t *ids, uint32_t count) {
    struct rng r = rng_open(seed, "test", "ids");
    for (uint32_t i = 0; i < count; i++) ids[i] = (int32_t)(3 + rng_below(&r, V - 3));
}

struct kv_sequence *probe_sequence(struct probe *p) {
    struct kv_sequence *s = NULL;
    struct err e = {0};
    ASSERT_OK(kv_sequence_open(session_kv(p->session), &s, &e), e);
    return s;
}

struct hashing {
    const struct probe_part *parts;
    size_t logits_bytes;
};

static int hash_row(void *context, struct session *s, const struct session_row *row,
                    struct err *e) {
    (void)e;
    const struct hashing *h = context;
    uint8_t digest[32];
    hash_raw(session_row_logits(s, row), h->logits_bytes, digest);
    memcpy(&h->parts[row->item].hashes[row->index], digest, sizeof(uint64_t));
    return 0;
}

static enum session_logits logits_for(const uint64_t *hashes) {
    return hashes != NULL ? SESSION_ALL : SESSION_NONE;
}

int probe_feed_parts(struct probe *p, const struct probe_part *parts, uint32_t count,
                     struct err *e) {
    struct session_item items[PROBE_PARTS];
    assert_true(count <= PROBE_PARTS);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct session_item){.sequence = parts[i].sequence,
                                         .ids = parts[i].ids,
                                         .count = parts[i].count,
                                         .logits = logits_for(parts[i].hashes)};
    struct hashing h = {parts, p->model->config.V * sizeof(float)};
    struct session_sink sink = {hash_row, &h};
    return session_forward(p->session, items, count, &sink, e);
}

void probe_feed_watched(struct probe *p, struct kv_sequence *s, const int32_t *ids, uint32_t count,
                        const struct session_watch *watch, uint64_t *hashes) {
    struct err e = {0};
    struct probe_part part = {s, ids, count, hashes};
    struct session_item item = {
        .sequence = s, .ids = ids, .count = count, .logits = logits_for(hashes), .watch = watch};
    struct hashing h = {&part, p->model->config.V * sizeof(float)};
    struct session_sink sink = {hash_row, &h};
    ASSERT_OK(session_forward(p->session, &item, 1, &sink, &e), e);
}

void probe_feed(struct probe *p, struct kv_sequence *s, const int32_t *ids, uint32_t count,
                uint64_t *hashes) {
    probe_feed_watched(p, s, ids, count, NULL, hashes);
}

uint32_t probe_differences(const uint64_t *a, const uint64_t *b, uint32_t n) {
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; i++) different += a[i] != b[i];
    return different;
}
