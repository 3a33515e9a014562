// Turns and tools from files take the place of the keys that name the files, so that resolved.json
// holds the whole conversation.
#include "engine/base/file.h"
#include "evals/experiment_load.h"
#include "prompts/turns.h"

#include <string.h>

static json_t *turn_json(const struct provider_message *m) {
    json_t *o = json_object();
    json_put(o, "role", json_text(m->role));
    json_put(o, "text", json_text(m->text));
    if (m->call_count == 0) return o;
    json_t *calls = json_array();
    for (size_t i = 0; i < m->call_count; i++) {
        json_t *call = json_object();
        json_put(call, "name", json_text(m->calls[i].name));
        json_put(call, "arguments", json_text(m->calls[i].arguments));
        json_array_append_new(calls, call);
    }
    json_put(o, "tool_calls", calls);
    return o;
}

static void add_message(struct load *l, json_t *all, json_t *message, const char *path,
                        const char *line) {
    l->origins = arena_more(l->arena, l->origins, json_array_size(all), sizeof *l->origins);
    l->origins[json_array_size(all)] = (struct message_origin){path, line};
    json_array_append_new(all, message);
}

static void add_turns(struct load *l, json_t *all, const char *file, const char *path) {
    struct turn *turns;
    size_t count;
    struct err e = {0};
    const char *full = path_resolve(l->arena, l->x->folder, file);
    path = arena_printf(l->arena, "%s.file", path);
    if (turns_load(full, l->arena, &turns, &count, &e) != 0) {
        diagnose_at(l->d, l->root, path, "%s", e.text);
        return;
    }
    for (size_t i = 0; i < count; i++)
        add_message(l, all, turn_json(&turns[i].m), path,
                    arena_printf(l->arena, "%s:%d: ", file, turns[i].line));
}

// ---- tools ----

#define TOOLS_BYTES_MOST ((size_t)4 << 20)

// What is wrong with a definition, or NULL.
static const char *tool_fault(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    const char *type = json_string_value(json_object_get(tool, "type"));
    const char *name = json_string_value(json_object_get(function, "name"));
    if (json_is_object(tool) && function == NULL && json_object_get(tool, "name") != NULL)
        return "is a bare function; write {\"type\": \"function\", \"function\": {...}}";
    if (type == NULL || strcmp(type, "function") != 0) return "is not of \"type\": \"function\"";
    if (!json_is_object(function)) return "has no \"function\"";
    return name == NULL || name[0] == '\0' ? "has no \"name\" in its function" : NULL;
}

static const char *tool_name(const json_t *tool) {
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static int tools_check(const json_t *list, const char *path, struct err *e) {
    if (json_array_size(list) == 0)
        FAIL(e, ERR_CONFIG, "%s: not a list of function definitions, or an empty one", path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *tool = json_array_get(list, i);
        const char *fault = tool_fault(tool);
        if (fault != NULL) FAIL(e, ERR_CONFIG, "%s: [%zu] %s", path, i, fault);
        for (size_t k = 0; k < i; k++)
            if (strcmp(tool_name(tool), tool_name(json_array_get(list, k))) == 0)
                FAIL(e, ERR_CONFIG, "%s: [%zu] '%s' is [%zu] already; names must differ", path, i,
                     tool_name(tool), k);
    }
    return 0;
}

static void add_tools(struct load *l, json_t *prompt) {
    const char *file = json_string_value(json_object_get(prompt, "tools_file"));
    struct err e = {0};
    json_t *list = NULL, *tools = json_array();
    const char *path = path_resolve(l->arena, l->x->folder, file);
    if (json_read_file(path, TOOLS_BYTES_MOST, &list, &e) != 0 || tools_check(list, path, &e) != 0)
        diagnose_at(l->d, l->root, "prompt.tools_file", "%s", e.text);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct buf text = {0};
        json_python(json_array_get(list, i), 0, &text);
        json_array_append_new(tools, json_text(buf_str(&text)));
        buf_free(&text);
    }
    json_decref(list);
    json_object_del(prompt, "tools_file");
    json_put(prompt, "tools", tools);
}

void experiment_messages(struct load *l, json_t *resolved) {
    json_t *prompt = json_object_get(resolved, "prompt");
    const json_t *given = json_object_get(prompt, "messages");
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(given); i++) {
        json_t *message = json_array_get(given, i);
        const char *file = json_string_value(json_object_get(message, "file"));
        const char *path = arena_printf(l->arena, "prompt.messages[%zu]", i);
        if (file != NULL)
            add_turns(l, all, file, path);
        else
            add_message(l, all, json_incref(message), path, "");
    }
    if (json_array_size(given) > 0)
        json_put(prompt, "messages", all);
    else
        json_decref(all);
    if (json_object_get(prompt, "tools_file") != NULL) add_tools(l, prompt);
}
