// Turns from files take the place of the messages that name them, so that resolved.json holds the
// whole conversation.
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
}
