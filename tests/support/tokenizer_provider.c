#include "tests/support/tokenizer_provider.h"

#include "engine/chat.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

struct golden {
    struct provider provider; // first
    struct arena *arena;
    struct tokenizer *tokenizer;
    const struct chat_template *chat;
};

static int golden_render(struct provider *p, const struct provider_message *messages, size_t count,
                         struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                         struct err *e) {
    struct golden *g = (struct golden *)p;
    return chat_render(g->chat, g->tokenizer, messages, count, a, pieces, piece_count, e);
}

static int golden_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                           struct arena *a, struct provider_ids *out, struct err *e) {
    struct golden *g = (struct golden *)p;
    struct token_list list = {0};
    int result = chat_tokenize(g->tokenizer, pieces, count, &list, e);
    out->count = list.count;
    out->ids = arena_array(a, list.count + 1, sizeof *out->ids);
    if (list.count > 0) memcpy(out->ids, list.ids, list.count * sizeof *out->ids);
    token_list_free(&list);
    return result;
}

static struct str golden_bytes(struct provider *p, int32_t id) {
    return tokenizer_bytes(((struct golden *)p)->tokenizer, id);
}

struct provider *tokenizer_provider_open(const char *pre, const char *template) {
    static const struct provider_ops ops = {.kind = "golden",
                                            .render = golden_render,
                                            .tokenize = golden_tokenize,
                                            .id_bytes = golden_bytes};
    struct golden *g = calloc(1, sizeof *g);
    struct err e = {0};
    assert_non_null(g);
    g->arena = arena_create("golden");
    g->tokenizer = golden_tokenizer(g->arena, pre);
    ASSERT_OK(chat_find(golden_gguf(g->arena), template, &g->chat, &e), e);
    g->provider.ops = &ops;
    g->provider.can = (struct provider_capabilities){.exact_ids = true, .deterministic = true};
    return &g->provider;
}

void tokenizer_provider_close(struct provider *p) {
    struct golden *g = (struct golden *)p;
    tokenizer_close(g->tokenizer);
    arena_destroy(g->arena);
    free(g);
}

bool tokenizer_provider_control(const struct provider *p, int32_t id) {
    return tokenizer_is_control(((const struct golden *)p)->tokenizer, id);
}
