// What the tests of prompts share: a made-up provider, a filler and what is put into it.
#ifndef LACUNA_TESTS_PROMPT_KIT_H
#define LACUNA_TESTS_PROMPT_KIT_H

#include "engine/base/file.h"
#include "prompts/prompt.h"
#include "tests/support/fake_provider.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

// What one test builds prompts with.
struct kit {
    struct provider *p;
    struct prompt_builder *b;
    struct arena *a;
    struct prompt_request r;
    struct provider_message messages[3];
    struct prompt_insert inserts[4];
};

static inline void kit_open(struct kit *k, const struct fake_options *options, const char *user) {
    struct err e = {0};
    *k = (struct kit){0};
    k->p = fake_provider_open(options);
    k->b = prompt_builder_open(k->p);
    k->a = arena_create("kit");
    k->messages[0] = (struct provider_message){.role = STR("system"),
                                               .text = STR("You are a careful assistant.")};
    k->messages[1] = (struct provider_message){.role = STR("user"), .text = str_from(user)};
    k->r = (struct prompt_request){.messages = k->messages,
                                   .message_count = 2,
                                   .closing_rng = rng_open(7, "repeat 0", "closing"),
                                   .spaced = true,
                                   .inserts = k->inserts};
    ASSERT_OK(closing_find("en", &k->r.closing, &e), e);
}

static inline void kit_close(struct kit *k) {
    prompt_builder_close(k->b);
    fake_provider_close(k->p);
    arena_destroy(k->a);
}

static inline void kit_filler(struct kit *k, struct filler *f) {
    k->r.units = units_open(prompt_builder_counter(k->b), f, k->a);
}

static inline void kit_prose(struct kit *k, int repeat) {
    char scope[32];
    snprintf(scope, sizeof scope, "repeat %d", repeat);
    kit_filler(k, filler_prose_open("en", rng_open(7, scope, "filler"), k->a));
}

static inline void kit_files(struct kit *k, const char *text, enum filler_split split) {
    struct err e = {0};
    struct filler_texts *t;
    const char *path = path_join(k->a, test_folder(), "filler.txt");
    ASSERT_OK(file_write_atomic(path, str_from(text), &e), e);
    ASSERT_OK(filler_texts_load(&path, 1, split, STR(""), k->a, &t, &e), e);
    struct rng none = rng_open(0, "", "");
    kit_filler(k, filler_files_open(t, false, k->r.spaced, none, k->a));
}

static inline void kit_insert(struct kit *k, const char *text, enum prompt_anchor anchor,
                              int32_t depth) {
    size_t i = k->r.insert_count++;
    k->inserts[i] = (struct prompt_insert){.id = arena_printf(k->a, "c%zu", i),
                                           .text = str_from(text),
                                           .anchor = anchor,
                                           .depth = depth};
}

static inline struct prompt build(struct kit *k, int length) {
    struct err e = {0};
    struct prompt x;
    k->r.length = length;
    if (prompt_build(k->b, &k->r, k->a, &x, &e) != 0)
        fail_msg("length %d: %s (%s:%d)", length, e.text, e.file, e.line);
    return x;
}

#endif
