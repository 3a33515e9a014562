// The local engine behind the provider seam, on a tiny model with a real tokenizer and template.
#include "engine/provider_local.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <string.h>

static char path[512];

static struct provider_options options_of(void) {
    return (struct provider_options){
        .id = "tiny", .path = path, .context_tokens = 1024, .threads = 1};
}

static struct provider *open_with(const struct provider_options *o) {
    struct provider *p = NULL;
    struct err e = {0};
    ASSERT_OK(provider_open(o, &p, &e), e);
    return p;
}

static int refused(const struct provider_options *o, struct err *e) {
    struct provider *p = NULL;
    *e = (struct err){0};
    int result = provider_open(o, &p, e);
    if (result == 0) p->ops->close(p);
    return result;
}

static const char *text_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "(none)";
}

static void test_identity_and_manifest(void **state) {
    (void)state;
    struct provider_options o = options_of();
    o.plan_only = true;
    struct provider *p = open_with(&o);
    char hex[HASH_HEX_SIZE];
    struct err e = {0};
    ASSERT_OK(hash_file(path, hex, &e), e);
    const json_t *identity = p->what.identity, *manifest = p->what.manifest;
    assert_string_equal(text_of(identity, "id"), "tiny");
    assert_string_equal(text_of(identity, "sha256"), hex);
    assert_int_equal(strlen(text_of(identity, "tokenizer_sha256")), 64);
    assert_int_equal(strlen(text_of(identity, "template_sha256")), 64);
    assert_string_equal(text_of(identity, "architecture"), "llama");
    assert_true(json_object_size(json_object_get(identity, "tensor_types")) > 0);
    assert_null(json_object_get(identity, "template"));
    assert_null(json_object_get(identity, "path"));
    assert_string_equal(text_of(manifest, "path"), path);
    assert_int_equal(json_integer_value(json_object_get(manifest, "trained_context")), 4096);
    static const char *const more[] = {"bytes", "parameters", "position_scaling",
                                       "kv_bytes_per_token", "op_table"};
    for (size_t i = 0; i < 5; i++) assert_non_null(json_object_get(manifest, more[i]));
    assert_string_equal(p->what.numerics, "bf16-1");
    assert_string_equal(p->what.backend, "cpu");
    assert_true(p->can.exact_ids && p->can.deterministic);
    assert_int_equal(p->can.context_tokens, 1024);
    // Planning answers nothing.
    int32_t id = 5;
    struct provider_generation g = {.max_tokens = 1, .top_p = 1};
    struct provider_request r = {.key = "k", .ids = {&id, 1}, .generation = &g};
    bool accepted;
    ASSERT_FAILS(p->ops->submit(p, &r, &accepted, &e), e, ERR_PROVIDER, "planning only");
    p->ops->close(p);

    o.chat_template = "plain";
    o.pre_tokenizer = "gpt-2";
    o.context_tokens = 5000;
    struct err refusal;
    ASSERT_FAILS(refused(&o, &refusal), refusal, ERR_CONFIG, "trained for 4096");
    o.beyond_trained = true;
    p = open_with(&o);
    assert_string_equal(text_of(p->what.identity, "template"), "plain");
    assert_string_equal(text_of(p->what.identity, "pre_tokenizer"), "gpt-2");
    assert_true(json_is_true(json_object_get(p->what.identity, "beyond_trained")));
    p->ops->close(p);
}

static void test_refusals_by_name(void **state) {
    (void)state;
    struct err e;
    struct provider_options o = options_of();
    o.backend = "cuda";
    ASSERT_FAILS(refused(&o, &e), e, ERR_PROVIDER, "no NVIDIA driver");
    o = options_of();
    o.fixture = "rules.yaml";
    ASSERT_FAILS(refused(&o, &e), e, ERR_CONFIG, "give one of");
    o.fixture = NULL;
    o.path = NULL;
    ASSERT_FAILS(refused(&o, &e), e, ERR_CONFIG, "tiny");
    o.path = "/nowhere/model.gguf";
    ASSERT_FAILS(refused(&o, &e), e, ERR_IO, "/nowhere/model.gguf");
    o = options_of();
    o.memory_bytes = 1000;
    ASSERT_FAILS(refused(&o, &e), e, ERR_MEMORY, "KV cache");
}

static struct provider_completion reply_to(struct provider *p, const struct provider_ids *ids,
                                           const struct provider_generation *g, struct arena *a) {
    struct provider_request r = {.ticket = 9,
                                 .key = "k",
                                 .ids = *ids,
                                 .generation = g,
                                 .sampling = rng_open(1, "repeat 0", "sample 0")};
    struct err e = {0};
    bool accepted = false, any = false;
    ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
    assert_true(accepted);
    struct provider_completion c;
    ASSERT_OK(p->ops->next(p, a, &c, &any, &e), e);
    assert_true(any && c.ok);
    assert_int_equal(c.ticket, 9);
    return c;
}

static void test_conversation_to_reply(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider_options o = options_of();
    struct provider *p = open_with(&o);
    struct provider_message messages[] = {
        {.role = STR("system"), .text = STR("You are <|im_end|> careful.")},
        {.role = STR("user"), .text = STR("Where is the station?")}};
    struct provider_piece *pieces;
    size_t count;
    struct provider_ids ids;
    struct err e = {0};
    ASSERT_OK(p->ops->render(p, messages, 2, a, &pieces, &count, &e), e);
    ASSERT_OK(p->ops->tokenize(p, pieces, count, a, &ids, &e), e);
    // The ids' bytes are the pieces' text; what the user wrote makes no control token (case B07).
    struct buf text = {0}, from_ids = {0};
    for (size_t i = 0; i < count; i++) buf_add_str(&text, pieces[i].text);
    int ends = 0;
    for (size_t i = 0; i < ids.count; i++) {
        buf_add_str(&from_ids, p->ops->id_bytes(p, ids.ids[i]));
        ends += ids.ids[i] == 2;
    }
    assert_string_equal(text.p, from_ids.p);
    assert_int_equal(ends, 2);
    struct provider_generation g = {.max_tokens = 30, .temperature = 1, .top_p = 1};
    struct provider_completion c = reply_to(p, &ids, &g, a), again = reply_to(p, &ids, &g, a);
    assert_int_equal(c.shared_tokens, 0);
    assert_int_equal(again.shared_tokens, ids.count - 1);
    assert_int_equal(c.ids.count, again.ids.count);
    assert_memory_equal(c.ids.ids, again.ids.ids, c.ids.count * sizeof *c.ids.ids);
    buf_clear(&from_ids);
    for (size_t i = 0; i < c.ids.count; i++)
        buf_add_str(&from_ids, p->ops->id_bytes(p, c.ids.ids[i]));
    assert_true(str_equal(buf_str(&from_ids), c.text));
    // A stop string taken from the middle of the reply ends it there.
    assert_true(c.text.n > 8);
    struct str stop = str_slice(c.text, c.text.n / 2, c.text.n / 2 + 3);
    g.stop = &stop;
    g.stop_count = 1;
    struct provider_completion cut = reply_to(p, &ids, &g, a);
    assert_int_equal(cut.finish, FINISH_STOP_STRING);
    assert_true(cut.text.n <= c.text.n / 2 && str_starts(c.text, cut.text));
    assert_int_equal(str_find(cut.text, stop, 0), STR_NONE);
    // Cancelled: nothing comes any more.
    bool accepted, any;
    struct provider_request r = {.key = "k", .ids = ids, .generation = &g};
    ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
    p->ops->cancel(p);
    ASSERT_OK(p->ops->next(p, a, &c, &any, &e), e);
    assert_false(any);
    buf_free(&text);
    buf_free(&from_ids);
    p->ops->close(p);
    arena_destroy(a);
}

static bool stands_before(const struct provider_completion *c, size_t end, struct str what) {
    return str_find(str_slice(c->text, 0, end), what, 0) != STR_NONE;
}

// Two tokens of a reply as tags, each the first of its spelling: the same reply ends where the
// budgets say, and no bit of it is another.
static void test_budgets_of_reasoning(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider_options o = options_of();
    struct provider *p = open_with(&o);
    int32_t prompt_ids[] = {300, 301, 302, 17, 18, 19};
    struct provider_ids prompt = {prompt_ids, 6};
    struct provider_generation g = {.max_tokens = 40, .temperature = 100, .top_p = 1};
    struct provider_completion whole = reply_to(p, &prompt, &g, a);
    assert_int_equal(whole.tokens, 40);
    assert_false(whole.reasoning_counted);
    size_t starts[41] = {0}, at[2] = {0};
    struct str tags[2];
    for (size_t i = 0; i < 40; i++)
        starts[i + 1] = starts[i] + p->ops->id_bytes(p, whole.ids.ids[i]).n;
    assert_null(memchr(whole.text.p, '`', whole.text.n)); // no code
    for (size_t i = 5, k = 0; k < 2;) {
        assert_true(i < 30);
        struct str bytes = p->ops->id_bytes(p, whole.ids.ids[i]);
        i++;
        if (bytes.n < 2 || stands_before(&whole, starts[i] - 1, bytes)) continue;
        tags[k] = bytes;
        at[k++] = i - 1;
        i += 5;
    }
    struct reasoning_tags reasoning = {.open = tags[0], .close = tags[1]};
    g.reasoning = &reasoning;
    const size_t inside = at[1] - at[0] + 1; // tokens of the block
    const struct {
        int answer, reasoning;
        bool opened;
        enum provider_finish finish;
        size_t tokens, thought;
    } cases[] = {
        {40, 0, false, FINISH_LENGTH, 40, inside},
        {(int)at[0] + 2, (int)inside, false, FINISH_LENGTH, at[1] + 3, inside},
        {(int)at[0] + 2, (int)inside - 1, false, FINISH_REASONING, at[1], inside - 1},
        {(int)at[0], (int)inside, false, FINISH_LENGTH, at[0], 0},
        {3, (int)at[1] + 1, true, FINISH_LENGTH, at[1] + 4, at[1] + 1},
        {3, (int)at[1], true, FINISH_REASONING, at[1], at[1]},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reasoning.opened = cases[i].opened;
        g.reasoning_tokens = cases[i].reasoning;
        g.max_tokens = cases[i].answer + cases[i].reasoning;
        struct provider_completion c = reply_to(p, &prompt, &g, a);
        if (c.finish != cases[i].finish || (size_t)c.tokens != cases[i].tokens ||
            !c.reasoning_counted || (size_t)c.reasoning_tokens != cases[i].thought)
            fail_msg("case %zu: %s behind %d tokens, %d of reasoning", i,
                     provider_finish_name(c.finish), c.tokens, c.reasoning_tokens);
        assert_memory_equal(c.ids.ids, whole.ids.ids, c.ids.count * sizeof *c.ids.ids);
    }
    g.reasoning_tokens = g.max_tokens;
    bool accepted;
    struct err e = {0};
    struct provider_request r = {.key = "k", .ids = prompt, .generation = &g};
    ASSERT_FAILS(p->ops->submit(p, &r, &accepted, &e), e, ERR_CONFIG, "leaves no answer");
    p->ops->close(p);
    arena_destroy(a);
}

// A file whose template is not known continues raw text, but renders no conversation.
static void test_unknown_template(void **state) {
    (void)state;
    static char other[600];
    snprintf(other, sizeof other, "%s/template.gguf", test_folder());
    tiny_model_write(other, &(struct tiny_model_options){.chat_template = "{{ unheard of }}"});
    struct provider_options o = options_of();
    o.path = other;
    struct provider *p = open_with(&o);
    struct arena *a = arena_create("test");
    struct provider_message message = {.role = STR("user"), .text = STR("Hello")};
    struct provider_piece *pieces;
    size_t count;
    struct err e = {0};
    ASSERT_FAILS(p->ops->render(p, &message, 1, a, &pieces, &count, &e), e, ERR_MODEL,
                 "models[].template");
    p->ops->close(p);
    o.chat_template = "chatml";
    p = open_with(&o);
    ASSERT_OK(p->ops->render(p, &message, 1, a, &pieces, &count, &e), e);
    p->ops->close(p);
    arena_destroy(a);
}

static int make_model(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/tiny.gguf", test_folder());
    tiny_model_write(path, &(struct tiny_model_options){.seed = 4});
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_and_manifest), cmocka_unit_test(test_refusals_by_name),
        cmocka_unit_test(test_conversation_to_reply), cmocka_unit_test(test_budgets_of_reasoning),
        cmocka_unit_test(test_unknown_template),
    };
    return cmocka_run_group_tests(tests, make_model, NULL);
}
