#include "engine/chat_impl.h"

#include "engine/base/hash.h"

#include <assert.h>
#include <string.h>

#define TEMPLATE_KEY "tokenizer.chat_template"
#define NAMES "chatml, smollm2, qwen2, qwen2.5, llama3, llama3.1, plain"
#define ROLE_BYTES_MAX 32

// A turn is written as `open` role `between` text `close`.
struct chat_template {
    const char *name;
    const char *open, *between, *close;
    const char *default_system; // spoken when the first message is not the system's, or NULL
    const char *separator;      // plain: between messages, which have no roles
    bool writes_bos;            // the template itself begins with the start token
    bool trims;                 // white space around each text is dropped
    const char *needs[3];       // control tokens that the vocabulary must have
    // A template with a place for tools renders its conversations itself.
    int (*render)(const struct provider_message *messages, size_t count, struct chat_pieces *p,
                  struct err *e);
};

#define CHATML                                                                                     \
    .open = "<|im_start|>", .between = "\n", .close = "<|im_end|>\n",                              \
    .needs = {"<|im_start|>", "<|im_end|>"}

static const struct chat_template templates[] = {
    {.name = "chatml", CHATML},
    {.name = "smollm2",
     .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     CHATML},
    {.name = "qwen2", .default_system = "You are a helpful assistant.", CHATML},
    {.name = "llama3",
     .open = "<|start_header_id|>",
     .between = "<|end_header_id|>\n\n",
     .close = "<|eot_id|>",
     .writes_bos = true,
     .trims = true,
     .needs = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    {.name = "qwen2.5", .render = chat_qwen25, CHATML},
    {.name = "llama3.1",
     .open = "<|start_header_id|>",
     .writes_bos = true,
     .needs = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     .render = chat_llama31},
    {.name = "plain", .separator = "\n\n"},
};
#define TEMPLATE_COUNT (sizeof templates / sizeof templates[0])

// SHA-256 of template texts (tests/oracle/chat_templates.py, tool_templates.py), with and without
// the line break at their end. Templates that write the date of the day or other things that no
// message says are left out on purpose; Llama 3.1's date is a fixed one.
static const struct {
    const char *sha256, *name;
} identities[] = {
    {"153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3", "chatml"},
    {"fcf7a096fe99a48fd9ad2b250bf9237e96e8f48bffec1c7ea4d3f225176cd40e", "chatml"},
    {"58c1a1f04baa7adaeaba1f90267c3d57d9396f0c1f0129bdde9e76d3c6784af7", "chatml"},
    {"d7b5b8c7b58f7a6bf868aa46a5f73ee976d7292f40fcb9c3e7a1defd8d235cfb", "chatml"},
    {"8c0d16dff6538b0c244cec6954dcd9492831bb13dcf1cd5afd2693c91a857a3b", "chatml"},
    {"1eca4a136b0ee4b7ce51bf09c5366f71d4345b9358f4dc1a6fc161912975b450", "chatml"},
    {"872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788", "smollm2"},
    {"de9cde7d1b0ca0cc87459a6673e0d12fb89c070bdb24e4a30b6e4d187b226221", "smollm2"},
    {"793202280c0910ab26bc6eb57c8212c2417324c6d8c4efd0d10d59092ab3e3eb", "qwen2"},
    {"f0206845c9ebc3abb4735d44f286eb81ce99238ad2accc710c6fc60e6cb8ccc8", "qwen2"},
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", "llama3"},
    {"4f46ecd43418f216df8c26936c60e5d04bcc81db47db5d86fbe889f64212dd4c", "llama3"},
    {"47d5a7b4840c2ff2dfa0828b2465a654bef3a6cdfe032e5e105f395e4ceee812", "llama3"},
    {"25d9364ce09288ed874ade392dfd082b81d3ea3b4d887f008fdcfd8427c7186b", "llama3"},
    {"cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f", "qwen2.5"},
    {"55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a", "qwen2.5"},
    {"e10ca381b1ccc5cf9db52e371f3b6651576caee0a630b452e2816b2d404d4b65", "llama3.1"},
    {"93c0e9aa3629bbd77e68dbc0f5621f6e6b23aa8d74b932595cdb8d64684526d7", "llama3.1"},
};

static const struct chat_template *template_named(const char *name) {
    for (size_t i = 0; i < TEMPLATE_COUNT; i++) {
        if (strcmp(templates[i].name, name) == 0) return &templates[i];
    }
    return NULL;
}

int chat_find(const struct gguf *g, const char *name, const struct chat_template **out,
              struct err *e) {
    if (name != NULL) {
        *out = template_named(name);
        if (*out == NULL) {
            FAIL(e, ERR_CONFIG, "models[].template is '%.80s'; it may be one of %s", name, NAMES);
        }
        return 0;
    }
    struct str text = {NULL, 0};
    bool present = false;
    TRY(gguf_get_string(g, TEMPLATE_KEY, &text, &present, e));
    if (!present) {
        FAIL(e, ERR_MODEL,
             "%s: the file has no chat template (%s); choose one in the experiment with "
             "models[].template: one of %s",
             g->path, TEMPLATE_KEY, NAMES);
    }
    char sha256[HASH_HEX_SIZE];
    hash_bytes(text.p, text.n, sha256);
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        if (strcmp(identities[i].sha256, sha256) != 0) continue;
        *out = template_named(identities[i].name);
        return 0;
    }
    FAIL(e, ERR_MODEL,
         "%s: the file's chat template (SHA-256 %s, %zu bytes) is not one that is known, and "
         "templates are not interpreted; choose one in the experiment with models[].template: one "
         "of %s",
         g->path, sha256, text.n, NAMES);
}

const char *chat_name(const struct chat_template *t) {
    return t->name;
}

// White space as Python's str.strip sees it, which the reference renders with: Unicode's
// White_Space and the four information separators.
static bool is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

struct str chat_trim(struct str s) {
    size_t begin = 0, end = 0;
    bool any = false;
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        size_t n = utf8_decode(s, at, &c);
        if (!is_space(c)) {
            if (!any) begin = at;
            any = true;
            end = at + n;
        }
        at += n;
    }
    return str_slice(s, begin, end);
}

static int role_check(const struct chat_template *t, struct str role, size_t index, struct err *e) {
    bool good = role.n > 0 && role.n <= ROLE_BYTES_MAX;
    for (size_t i = 0; good && i < role.n; i++) {
        char c = role.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    }
    if (good) return 0;
    int shown = role.n > 60 ? 60 : (int)role.n;
    FAIL(e, ERR_CONFIG,
         "message %zu has the role '%.*s'; template %s takes 1 to %d letters, digits, '_' and '-', "
         "usually system, user or assistant",
         index + 1, shown, role.p, t->name, ROLE_BYTES_MAX);
}

static int tokens_check(const struct chat_template *t, const struct tokenizer *tokenizer,
                        struct err *e) {
    for (size_t i = 0; i < sizeof t->needs / sizeof t->needs[0] && t->needs[i] != NULL; i++) {
        if (tokenizer_is_control(tokenizer, tokenizer_find(tokenizer, str_from(t->needs[i])))) {
            continue;
        }
        FAIL(e, ERR_MODEL,
             "template %s needs the control token %s, which the model's vocabulary lacks; choose "
             "another one with models[].template: one of %s",
             t->name, t->needs[i], NAMES);
    }
    return 0;
}

void chat_piece(struct chat_pieces *p, struct str text, bool control) {
    if (text.n == 0) return;
    p->items = arena_more(p->arena, p->items, p->count, sizeof *p->items);
    p->items[p->count++] = (struct provider_piece){text, control};
}

void chat_control(struct chat_pieces *p, const char *text) {
    chat_piece(p, str_from(text), true);
}

// The start token, as a control piece that stands for exactly this id.
static int bos_add(const struct tokenizer *tokenizer, struct chat_pieces *p, struct err *e) {
    int32_t bos = tokenizer_bos(tokenizer);
    struct str text = tokenizer_bytes(tokenizer, bos);
    if (!tokenizer_is_control(tokenizer, bos) || tokenizer_find(tokenizer, text) != bos) {
        FAIL(
            e, ERR_MODEL,
            "the prompt needs a start token, but tokenizer.ggml.bos_token_id is %d, which is not a "
            "control token",
            bos);
    }
    chat_piece(p, text, true);
    return 0;
}

static struct str header(const struct chat_template *t, struct str role, struct arena *a) {
    return str_from(arena_printf(a, "%s" STR_FMT "%s", t->open, STR_ARG(role), t->between));
}

static int turns_add(const struct chat_template *t, const struct provider_message *messages,
                     size_t count, struct arena *a, struct chat_pieces *p, struct err *e) {
    if (t->default_system != NULL && !str_equal_c(messages[0].role, "system")) {
        chat_piece(p, header(t, STR("system"), a), true);
        chat_piece(p, str_from(t->default_system), true);
        chat_piece(p, str_from(t->close), true);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(role_check(t, messages[i].role, i, e));
        chat_piece(p, header(t, messages[i].role, a), true);
        chat_piece(p, t->trims ? chat_trim(messages[i].text) : messages[i].text, false);
        chat_piece(p, str_from(t->close), true);
    }
    chat_piece(p, header(t, STR("assistant"), a), true);
    return 0;
}

static int tools_check(const struct chat_template *t, const struct provider_message *messages,
                       size_t count, struct err *e) {
    if (t->render != NULL) return 0;
    if (messages[0].tool_count > 0)
        FAIL(e, ERR_CONFIG,
             "template %s has no place for tools; put {{tools}} into a message to give them as "
             "text, or choose one that has (qwen2.5, llama3.1) with models[].template",
             t->name);
    for (size_t i = 0; i < count; i++)
        if (messages[i].call_count > 0)
            FAIL(
                e, ERR_CONFIG,
                "message %zu calls tools, for which template %s has no place; qwen2.5 and llama3.1 "
                "have one",
                i + 1, t->name);
    return 0;
}

int chat_render(const struct chat_template *t, const struct tokenizer *tokenizer,
                const struct provider_message *messages, size_t count, struct arena *a,
                struct provider_piece **pieces, size_t *piece_count, struct err *e) {
    if (count == 0) FAIL(e, ERR_CONFIG, "the prompt has no messages");
    TRY(tokens_check(t, tokenizer, e));
    TRY(tools_check(t, messages, count, e));
    struct chat_pieces p = {.arena = a};
    // Most templates that write no start token themselves begin with the role's; some files name
    // that very token as their start token.
    struct str bos = tokenizer_bytes(tokenizer, tokenizer_bos(tokenizer));
    bool begins_so = t->open != NULL && bos.n > 0 && str_starts(str_from(t->open), bos);
    if (t->writes_bos || (tokenizer_adds_bos(tokenizer) && !begins_so)) {
        TRY(bos_add(tokenizer, &p, e));
    }
    if (t->render != NULL) {
        for (size_t i = 0; i < count; i++) TRY(role_check(t, messages[i].role, i, e));
        TRY(t->render(messages, count, &p, e));
    } else if (t->separator == NULL) {
        TRY(turns_add(t, messages, count, a, &p, e));
    } else {
        for (size_t i = 0; i < count; i++) {
            if (i > 0) chat_piece(&p, str_from(t->separator), true);
            chat_piece(&p, messages[i].text, false);
        }
    }
    *pieces = p.items;
    *piece_count = p.count;
    return 0;
}

static int run_flush(const struct tokenizer *tokenizer, struct buf *run, struct token_list *out,
                     struct err *e) {
    if (run->n == 0) return 0;
    TRY(tokenizer_encode(tokenizer, buf_str(run), false, out, e));
    buf_clear(run);
    return 0;
}

static int pieces_encode(const struct tokenizer *tokenizer, const struct provider_piece *pieces,
                         size_t count, struct buf *run, struct token_list *out, struct err *e) {
    for (size_t i = 0; i < count; i++) {
        struct str text = pieces[i].text;
        size_t at = 0, begin, end;
        int32_t id;
        while (pieces[i].control &&
               tokenizer_find_control(tokenizer, text, at, &begin, &end, &id)) {
            buf_add_str(run, str_slice(text, at, begin));
            TRY(run_flush(tokenizer, run, out, e));
            token_list_add(out, id);
            at = end;
        }
        buf_add_str(run, str_slice(text, at, text.n));
    }
    return run_flush(tokenizer, run, out, e);
}

int chat_tokenize(const struct tokenizer *tokenizer, const struct provider_piece *pieces,
                  size_t count, struct token_list *out, struct err *e) {
    struct buf run = {0};
    size_t before = out->count;
    int rc = pieces_encode(tokenizer, pieces, count, &run, out, e);
    if (rc != 0) out->count = before;
    buf_free(&run);
    return rc;
}
