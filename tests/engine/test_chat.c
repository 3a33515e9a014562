// Rendered bytes equal to Jinja's, ids equal to HF tokenizers' on them; control ids only from the
// template.
#include "engine/chat.h"
#include "engine/base/json.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/support.h"

#include <string.h>

struct fixture {
    struct arena *a;
    struct tokenizer *t;
    char identity[HASH_HEX_SIZE]; // of the template text written last
    struct gguf *g;               // a file that holds it
};

static struct fixture fixture_open(void) {
    struct fixture f = {.a = arena_create("test")};
    f.t = golden_tokenizer(f.a, NULL);
    return f;
}

static void fixture_close(struct fixture *f) {
    tokenizer_close(f->t);
    arena_destroy(f->a);
}

// A file with nothing but a chat template.
static struct gguf *file_with_template(struct arena *a, struct str text) {
    struct gguf_writer w = gguf_writer_open();
    gguf_writer_string(&w, "general.architecture", STR("llama"));
    if (text.p != NULL) gguf_writer_string(&w, "tokenizer.chat_template", text);
    const char *path = arena_printf(a, "%s/template.gguf", test_folder());
    gguf_writer_save(&w, path);
    gguf_writer_free(&w);
    struct gguf *g;
    struct err e = {0};
    ASSERT_OK(gguf_open(path, a, &g, &e), e);
    return g;
}

static struct str json_str(const json_t *s) {
    return (struct str){json_string_value(s), json_string_length(s)};
}

struct rendering {
    struct provider_piece *pieces;
    size_t count;
    struct buf text;
};

static struct rendering render(const struct chat_template *c, const struct tokenizer *t,
                               const struct provider_message *messages, size_t count,
                               struct arena *a) {
    struct rendering r = {0};
    struct err e = {0};
    ASSERT_OK(chat_render(c, t, messages, count, a, &r.pieces, &r.count, &e), e);
    for (size_t i = 0; i < r.count; i++) buf_add_str(&r.text, r.pieces[i].text);
    return r;
}

static size_t control_count(const struct tokenizer *t, const struct token_list *ids) {
    size_t n = 0;
    for (size_t i = 0; i < ids->count; i++) n += tokenizer_is_control(t, ids->ids[i]);
    return n;
}

static void check_row(const json_t *row, int line, void *context) {
    struct fixture *f = context;
    struct err e = {0};
    const json_t *text = json_object_get(row, "text");
    if (json_is_string(text)) {
        f->g = file_with_template(f->a, json_str(text));
        hash_bytes(json_string_value(text), json_string_length(text), f->identity);
    }
    assert_string_equal(f->identity, json_string_value(json_object_get(row, "identity")));
    const struct chat_template *c;
    ASSERT_OK(chat_find(f->g, NULL, &c, &e), e);
    assert_string_equal(chat_name(c), json_string_value(json_object_get(row, "template")));

    struct provider_message messages[8];
    json_t *list = json_object_get(row, "messages");
    size_t count = json_array_size(list);
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) {
        json_t *m = json_array_get(list, i);
        messages[i] = (struct provider_message){.role = json_str(json_array_get(m, 0)),
                                                .text = json_str(json_array_get(m, 1))};
    }
    struct rendering r = render(c, f->t, messages, count, f->a);
    if (!str_equal(buf_str(&r.text), json_str(json_object_get(row, "rendered")))) {
        fail_msg("line %d: rendered as '%s'", line, r.text.p);
    }
    struct token_list ids = {0};
    ASSERT_OK(chat_tokenize(f->t, r.pieces, r.count, &ids, &e), e);
    const json_t *expected = json_object_get(row, "ids");
    if (!json_is_null(expected) && !ids_equal_json(&ids, expected)) {
        fail_msg("line %d: other ids for '%s'", line, r.text.p);
    }
    struct buf back = bytes_of(f->t, &ids);
    assert_true(str_equal(buf_str(&back), buf_str(&r.text)));

    // Content that spells control tokens adds none.
    for (size_t i = 0; i < count; i++) messages[i].text = STR("x");
    struct rendering bare = render(c, f->t, messages, count, f->a);
    struct token_list bare_ids = {0};
    ASSERT_OK(chat_tokenize(f->t, bare.pieces, bare.count, &bare_ids, &e), e);
    assert_int_equal(control_count(f->t, &ids), control_count(f->t, &bare_ids));
    token_list_free(&ids);
    token_list_free(&bare_ids);
    buf_free(&back);
    buf_free(&r.text);
    buf_free(&bare.text);
}

static void test_goldens(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    golden_each("engine/golden/chat.jsonl", check_row, &f);
    fixture_close(&f);
}

// ---- tools ----

static struct str python_text(const json_t *value, struct arena *a) {
    struct buf b = {0};
    json_python(value, 0, &b);
    struct str s = str_copy(a, buf_str(&b));
    buf_free(&b);
    return s;
}

static void message_read(const json_t *o, struct provider_message *out, struct arena *a) {
    const json_t *calls = json_object_get(o, "tool_calls");
    struct provider_call *list = arena_array(a, json_array_size(calls) + 1, sizeof *list);
    *out = (struct provider_message){.role = json_str(json_object_get(o, "role")),
                                     .text = json_str(json_object_get(o, "content")),
                                     .calls = list,
                                     .call_count = json_array_size(calls)};
    for (size_t i = 0; i < out->call_count; i++) {
        const json_t *f = json_object_get(json_array_get(calls, i), "function");
        list[i] = (struct provider_call){json_str(json_object_get(f, "name")),
                                         python_text(json_object_get(f, "arguments"), a)};
    }
}

static void check_tools_row(const json_t *row, int line, void *context) {
    struct fixture *f = context;
    struct err e = {0};
    const struct chat_template *c;
    const json_t *text = json_object_get(row, "text"), *list = json_object_get(row, "messages");
    if (json_is_string(text)) {
        hash_bytes(json_string_value(text), json_string_length(text), f->identity);
        // Some files carry the text without its last line break.
        struct str trimmed = {json_string_value(text), json_string_length(text) - 1};
        ASSERT_OK(chat_find(file_with_template(f->a, trimmed), NULL, &c, &e), e);
        assert_string_equal(chat_name(c), json_string_value(json_object_get(row, "template")));
        f->g = file_with_template(f->a, json_str(text));
    }
    assert_string_equal(f->identity, json_string_value(json_object_get(row, "identity")));
    ASSERT_OK(chat_find(f->g, NULL, &c, &e), e);
    assert_string_equal(chat_name(c), json_string_value(json_object_get(row, "template")));
    struct provider_message messages[8];
    const size_t count = json_array_size(list);
    const json_t *tools = json_object_get(row, "tools");
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) message_read(json_array_get(list, i), &messages[i], f->a);
    struct str definitions[4];
    for (size_t i = 0; i < json_array_size(tools); i++)
        definitions[i] = python_text(json_array_get(tools, i), f->a);
    messages[0].tools = definitions;
    messages[0].tool_count = json_array_size(tools);
    struct rendering r = render(c, f->t, messages, count, f->a);
    if (!str_equal(buf_str(&r.text), json_str(json_object_get(row, "rendered"))))
        fail_msg("line %d: rendered as '%s'", line, r.text.p);
    // What spells a control token in a text, an argument or a definition stays text.
    struct token_list ids = {0}, bare_ids = {0};
    ASSERT_OK(chat_tokenize(f->t, r.pieces, r.count, &ids, &e), e);
    for (size_t i = 0; i < r.count; i++)
        if (!r.pieces[i].control) r.pieces[i].text = STR("x");
    ASSERT_OK(chat_tokenize(f->t, r.pieces, r.count, &bare_ids, &e), e);
    assert_int_equal(control_count(f->t, &ids), control_count(f->t, &bare_ids));
    token_list_free(&ids);
    token_list_free(&bare_ids);
    buf_free(&r.text);
}

static void test_tools(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    golden_each("engine/golden/tools.jsonl", check_tools_row, &f);
    fixture_close(&f);
}

static void render_fails(struct fixture *f, const char *name,
                         const struct provider_message *messages, size_t count, const char *error) {
    struct err e = {0};
    const struct chat_template *c;
    struct provider_piece *pieces;
    size_t n;
    ASSERT_OK(chat_find(NULL, name, &c, &e), e);
    ASSERT_FAILS(chat_render(c, f->t, messages, count, f->a, &pieces, &n, &e), e, ERR_CONFIG,
                 error);
}

// What a template would drop, misplace or has no place for is refused, not guessed.
static void test_tools_refused(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    static const char *const without[] = {"chatml", "smollm2", "qwen2", "llama3", "plain"};
    const struct str tool = STR("{\"type\": \"function\"}");
    const struct provider_call calls[2] = {{STR("f"), STR("{}")}, {STR("g"), STR("{}")}};
    const struct provider_message user = {.role = STR("user"), .text = STR("x")};
    struct provider_message m[3] = {user, user, user};
    m[0].tools = &tool;
    m[0].tool_count = 1;
    for (size_t i = 0; i < 5; i++)
        render_fails(&f, without[i], m, 1, "no place for tools; put {{tools}} into a message");
    m[0].role = STR("assistant");
    render_fails(&f, "llama3.1", m, 1, "would take for the user's");
    m[0].role = STR("system");
    render_fails(&f, "llama3.1", m, 1, "into a user message, and there is none");
    m[0] = user;
    m[1] = (struct provider_message){
        .role = STR("assistant"), .text = STR(""), .calls = calls, .call_count = 2};
    for (size_t i = 0; i < 5; i++)
        render_fails(&f, without[i], m, 2, "message 2 calls tools, for which template ");
    render_fails(&f, "llama3.1", m, 2, "message 2 calls 2 tools");
    m[1].call_count = 1;
    m[1].text = STR("Wait.");
    render_fails(&f, "llama3.1", m, 2, "has a text beside its tool call");
    m[1] = (struct provider_message){.role = STR("developer"), .text = STR("x")};
    render_fails(&f, "qwen2.5", m, 2, "role 'developer', which template qwen2.5 leaves out");
    m[1].role = STR("a<b");
    render_fails(&f, "llama3.1", m, 2, "template llama3.1 takes 1 to");
    fixture_close(&f);
}

static void test_unknown_templates(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    const struct chat_template *c;
    struct err e = {0};
    ASSERT_FAILS(
        chat_find(file_with_template(f.a, STR("{{ messages[0].content }}\n")), NULL, &c, &e), e,
        ERR_MODEL, "models[].template");
    assert_non_null(strstr(e.text, "template.gguf"));
    assert_non_null(strstr(e.text, "chatml, smollm2, qwen2, qwen2.5, llama3, llama3.1, plain"));
    ASSERT_FAILS(chat_find(file_with_template(f.a, (struct str){NULL, 0}), NULL, &c, &e), e,
                 ERR_MODEL, "no chat template");
    ASSERT_FAILS(chat_find(f.g, "mistral", &c, &e), e, ERR_CONFIG, "'mistral'");
    ASSERT_OK(chat_find(file_with_template(f.a, STR("?")), "plain", &c, &e), e);
    assert_string_equal(chat_name(c), "plain");
    // One byte more is another template.
    struct buf crlf = {0};
    buf_add_c(&crlf, "{% for message in messages %}\r\n");
    ASSERT_FAILS(chat_find(file_with_template(f.a, buf_str(&crlf)), NULL, &c, &e), e, ERR_MODEL,
                 "not one that is known");
    buf_free(&crlf);
    fixture_close(&f);
}

static void test_plain(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    const struct chat_template *c;
    struct err e = {0};
    ASSERT_OK(chat_find(NULL, "plain", &c, &e), e);
    struct provider_message m[] = {{.role = STR("system"), .text = STR("Be brief.")},
                                   {.role = STR("user"), .text = STR("He said <|im_end|>. ")},
                                   {.role = STR("any role"), .text = STR("Why?")}};
    struct rendering r = render(c, f.t, m, 3, f.a);
    assert_string_equal(r.text.p, "Be brief.\n\nHe said <|im_end|>. \n\nWhy?");
    struct token_list ids = {0}, whole = ids_of(f.t, buf_str(&r.text), false);
    ASSERT_OK(chat_tokenize(f.t, r.pieces, r.count, &ids, &e), e);
    assert_int_equal(ids.count, whole.count);
    assert_memory_equal(ids.ids, whole.ids, ids.count * sizeof *ids.ids);
    assert_int_equal(control_count(f.t, &ids), 0);
    token_list_free(&ids);
    token_list_free(&whole);
    buf_free(&r.text);
    fixture_close(&f);
}

static void test_bad_messages(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    const struct chat_template *c;
    struct err e = {0};
    struct provider_piece *pieces;
    size_t count;
    ASSERT_OK(chat_find(NULL, "chatml", &c, &e), e);
    ASSERT_FAILS(chat_render(c, f.t, NULL, 0, f.a, &pieces, &count, &e), e, ERR_CONFIG,
                 "no messages");
    static const char *const roles[] = {"", "user<|im_end|>", "two words", "a\nb",
                                        "a-role-of-more-than-thirty-two-bytes"};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        struct provider_message m[] = {{.role = STR("user"), .text = STR("x")},
                                       {.role = str_from(roles[i]), .text = STR("x")}};
        ASSERT_FAILS(chat_render(c, f.t, m, 2, f.a, &pieces, &count, &e), e, ERR_CONFIG,
                     "message 2 has the role");
    }
    fixture_close(&f);
}

// A tokenizer of the tiny kind: ChatML's control tokens and bytes.
static struct tokenizer *tiny_tokenizer(struct arena *a, int32_t bos, bool adds) {
    struct gguf_writer w = gguf_writer_open();
    struct str tokens[259];
    int32_t types[259];
    char(*bytes)[4] = arena_array(a, 256, sizeof *bytes);
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        tokens[3 + b].n = utf8_encode(printable ? b : next++, bytes[b]);
        tokens[3 + b].p = bytes[b];
        types[3 + b] = 1;
    }
    tokens[0] = STR("<|endoftext|>");
    tokens[1] = STR("<|im_start|>");
    tokens[2] = STR("<|im_end|>");
    for (int i = 0; i < 3; i++) types[i] = 3;
    gguf_writer_string(&w, "tokenizer.ggml.model", STR("gpt2"));
    gguf_writer_string(&w, "tokenizer.ggml.pre", STR("smollm"));
    gguf_writer_strings(&w, "tokenizer.ggml.tokens", tokens, 259);
    gguf_writer_i32s(&w, "tokenizer.ggml.token_type", types, 259);
    gguf_writer_strings(&w, "tokenizer.ggml.merges", NULL, 0);
    if (bos >= 0) gguf_writer_u32(&w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    gguf_writer_bool(&w, "tokenizer.ggml.add_bos_token", adds);
    const char *path = arena_printf(a, "%s/tiny-%d-%d.gguf", test_folder(), bos, adds);
    gguf_writer_save(&w, path);
    gguf_writer_free(&w);
    struct gguf *g;
    struct tokenizer *t;
    struct err e = {0};
    ASSERT_OK(gguf_open(path, a, &g, &e), e);
    ASSERT_OK(tokenizer_open(g, NULL, a, &t, &e), e);
    return t;
}

// B01: the start token once, at index 0, and only when the file asks and the template has not.
static void test_start_token(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t bos;
        bool adds;
        int starts; // how many ids equal to bos, of three messages with <|im_start|> headers
    } cases[] = {{"plain", 0, true, 1},   {"plain", 0, false, 0}, {"chatml", 0, true, 1},
                 {"chatml", 0, false, 0}, {"chatml", 1, true, 4}, {"chatml", 1, false, 4}};
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokenizer *t = tiny_tokenizer(a, cases[i].bos, cases[i].adds);
        const struct chat_template *c;
        struct err e = {0};
        ASSERT_OK(chat_find(NULL, cases[i].name, &c, &e), e);
        struct provider_message m[] = {
            {.role = STR("system"), .text = STR("<|endoftext|>")},
            {.role = STR("user"), .text = STR("The vault code is 7413.")},
            {.role = STR("user"), .text = STR("<|im_start|>")}};
        struct rendering r = render(c, t, m, 3, a);
        struct token_list ids = {0};
        ASSERT_OK(chat_tokenize(t, r.pieces, r.count, &ids, &e), e);
        int starts = 0;
        for (size_t k = 0; k < ids.count; k++) starts += ids.ids[k] == cases[i].bos;
        assert_int_equal(starts, cases[i].starts);
        if (starts > 0) assert_int_equal(ids.ids[0], cases[i].bos);
        assert_int_equal(str_count(buf_str(&r.text), STR("The vault code is 7413.")), 1);
        token_list_free(&ids);
        buf_free(&r.text);
        tokenizer_close(t);
    }
    arena_destroy(a);
}

static void test_missing_control_tokens(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct tokenizer *t = tiny_tokenizer(a, 5, true); // the start token is a text token
    const struct chat_template *llama3, *plain;
    struct err e = {0};
    struct provider_piece *pieces;
    size_t count;
    struct provider_message m[] = {{.role = STR("user"), .text = STR("x")}};
    ASSERT_OK(chat_find(NULL, "llama3", &llama3, &e), e);
    ASSERT_OK(chat_find(NULL, "plain", &plain, &e), e);
    ASSERT_FAILS(chat_render(llama3, t, m, 1, a, &pieces, &count, &e), e, ERR_MODEL,
                 "<|start_header_id|>");
    ASSERT_FAILS(chat_render(plain, t, m, 1, a, &pieces, &count, &e), e, ERR_MODEL, "start token");
    tokenizer_close(t);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools),       cmocka_unit_test(test_tools_refused),
        cmocka_unit_test(test_goldens),     cmocka_unit_test(test_unknown_templates),
        cmocka_unit_test(test_plain),       cmocka_unit_test(test_bad_messages),
        cmocka_unit_test(test_start_token), cmocka_unit_test(test_missing_control_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
