// The templates of Qwen2.5 and Llama 3.1: tool definitions, tool calls and tool results. What they
// do was taken from rendering their texts with Jinja (tests/oracle/make_tools_goldens.py).
#include "engine/chat_impl.h"

static int fail_role(const char *template, size_t index, struct str role, const char *why,
                     struct err *e) {
    FAIL(e, ERR_CONFIG, "message %zu has the role '%.*s', which template %s %s", index + 1,
         role.n > 60 ? 60 : (int)role.n, role.p, template, why);
}

static bool is_role(const struct provider_message *m, const char *role) {
    return str_equal_c(m->role, role);
}

// ---- Qwen2.5 ----

#define QWEN25_SYSTEM "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

static void qwen_tools(const struct provider_message *first, struct chat_pieces *p) {
    chat_control(p, "\n\n# Tools\n\nYou may call one or more functions to assist with the user "
                    "query.\n\nYou are provided with function signatures within <tools></tools> "
                    "XML tags:\n<tools>");
    for (size_t i = 0; i < first->tool_count; i++) {
        chat_control(p, "\n");
        chat_piece(p, first->tools[i], false);
    }
    chat_control(p, "\n</tools>\n\nFor each function call, return a json object with function name "
                    "and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\""
                    ": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>");
}

static void qwen_calls(const struct provider_message *m, struct chat_pieces *p) {
    chat_control(p, "<|im_start|>assistant");
    if (m->text.n > 0) {
        chat_control(p, "\n");
        chat_piece(p, m->text, false);
    }
    for (size_t i = 0; i < m->call_count; i++) {
        chat_control(p, "\n<tool_call>\n{\"name\": \"");
        chat_piece(p, m->calls[i].name, false);
        chat_control(p, "\", \"arguments\": ");
        chat_piece(p, m->calls[i].arguments, false);
        chat_control(p, "}\n</tool_call>");
    }
    chat_control(p, "<|im_end|>\n");
}

// Results that follow each other share one turn of the user's.
static void qwen_result(const struct provider_message *messages, size_t count, size_t i,
                        struct chat_pieces *p) {
    if (i == 0 || !is_role(&messages[i - 1], "tool")) chat_control(p, "<|im_start|>user");
    chat_control(p, "\n<tool_response>\n");
    chat_piece(p, messages[i].text, false);
    chat_control(p, "\n</tool_response>");
    if (i + 1 == count || !is_role(&messages[i + 1], "tool")) chat_control(p, "<|im_end|>\n");
}

int chat_qwen25(const struct provider_message *messages, size_t count, struct chat_pieces *p,
                struct err *e) {
    const bool system = is_role(&messages[0], "system");
    chat_control(p, "<|im_start|>system\n");
    if (system)
        chat_piece(p, messages[0].text, false);
    else
        chat_control(p, QWEN25_SYSTEM);
    if (messages[0].tool_count > 0) qwen_tools(&messages[0], p);
    chat_control(p, "<|im_end|>\n");
    for (size_t i = system ? 1 : 0; i < count; i++) {
        const struct provider_message *m = &messages[i];
        if (m->call_count > 0) {
            qwen_calls(m, p);
        } else if (is_role(m, "tool")) {
            qwen_result(messages, count, i, p);
        } else if (is_role(m, "user") || is_role(m, "system") || is_role(m, "assistant")) {
            chat_control(p, "<|im_start|>");
            chat_piece(p, m->role, true);
            chat_control(p, "\n");
            chat_piece(p, m->text, false);
            chat_control(p, "<|im_end|>\n");
        } else {
            return fail_role("qwen2.5", i, m->role, "leaves out", e);
        }
    }
    chat_control(p, "<|im_start|>assistant\n");
    return 0;
}

// ---- Llama 3.1 ----

static void llama_header(struct str role, struct chat_pieces *p) {
    chat_control(p, "<|start_header_id|>");
    chat_piece(p, role, true);
    chat_control(p, "<|end_header_id|>\n\n");
}

// The same JSON over several lines.
static int llama_tool(struct str tool, struct chat_pieces *p, struct err *e) {
    json_t *value;
    TRY(json_parse(tool, "tool", &value, e));
    struct buf text = {0};
    json_python(value, 4, &text);
    chat_piece(p, str_copy(p->arena, buf_str(&text)), false);
    buf_free(&text);
    json_decref(value);
    return 0;
}

// Tools stand in the first user message, which must be the first after the system's.
static int llama_tools(const struct provider_message *first, const struct provider_message *user,
                       size_t index, struct chat_pieces *p, struct err *e) {
    if (!is_role(user, "user"))
        return fail_role("llama3.1", index, user->role,
                         "would take for the user's, where it puts the tools", e);
    llama_header(STR("user"), p);
    chat_control(p, "Given the following functions, please respond with a JSON for a function call "
                    "with its proper arguments that best answers the given prompt.\n\nRespond in "
                    "the format {\"name\": function name, \"parameters\": dictionary of argument "
                    "name and its value}.Do not use variables.\n\n");
    for (size_t i = 0; i < first->tool_count; i++) {
        TRY(llama_tool(first->tools[i], p, e));
        chat_control(p, "\n\n");
    }
    chat_piece(p, chat_trim(user->text), false);
    chat_control(p, "<|eot_id|>");
    return 0;
}

static int llama_call(const struct provider_message *m, size_t index, struct chat_pieces *p,
                      struct err *e) {
    if (m->call_count != 1)
        FAIL(e, ERR_CONFIG, "message %zu calls %zu tools; template llama3.1 takes one call a turn",
             index + 1, m->call_count);
    if (m->text.n > 0)
        FAIL(e, ERR_CONFIG,
             "message %zu has a text beside its tool call, which template llama3.1 leaves out",
             index + 1);
    llama_header(STR("assistant"), p);
    chat_control(p, "{\"name\": \"");
    chat_piece(p, m->calls[0].name, false);
    chat_control(p, "\", \"parameters\": ");
    chat_piece(p, m->calls[0].arguments, false);
    chat_control(p, "}<|eot_id|>");
    return 0;
}

// A result is written as a JSON string.
static void llama_result(const struct provider_message *m, struct chat_pieces *p) {
    json_t *value = json_text(m->text);
    struct buf text = {0};
    json_python(value, 0, &text);
    llama_header(STR("ipython"), p);
    chat_piece(p, str_copy(p->arena, buf_str(&text)), false);
    chat_control(p, "<|eot_id|>");
    buf_free(&text);
    json_decref(value);
}

int chat_llama31(const struct provider_message *messages, size_t count, struct chat_pieces *p,
                 struct err *e) {
    const bool tools = messages[0].tool_count > 0;
    size_t i = is_role(&messages[0], "system") ? 1 : 0;
    llama_header(STR("system"), p);
    if (tools) chat_control(p, "Environment: ipython\n");
    chat_control(p, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    if (i == 1) chat_piece(p, chat_trim(messages[0].text), false);
    chat_control(p, "<|eot_id|>");
    if (tools && i == count)
        FAIL(e, ERR_CONFIG, "template llama3.1 puts tools into a user message, and there is none");
    if (tools) {
        TRY(llama_tools(&messages[0], &messages[i], i, p, e));
        i++;
    }
    for (; i < count; i++) {
        const struct provider_message *m = &messages[i];
        if (m->call_count > 0) {
            TRY(llama_call(m, i, p, e));
        } else if (is_role(m, "tool") || is_role(m, "ipython")) {
            llama_result(m, p);
        } else {
            llama_header(m->role, p);
            chat_piece(p, chat_trim(m->text), false);
            chat_control(p, "<|eot_id|>");
        }
    }
    llama_header(STR("assistant"), p);
    return 0;
}
