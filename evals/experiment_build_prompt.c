// `prompt` of resolved.json into the struct.
#include "evals/experiment_load.h"

#include <string.h>

static void build_calls(struct load *l, const json_t *list, struct experiment_message *to) {
    to->call_count = (int)json_array_size(list);
    to->calls = arena_array(l->arena, (size_t)to->call_count + 1, sizeof *to->calls);
    for (int i = 0; i < to->call_count; i++) {
        const json_t *call = json_array_get(list, (size_t)i);
        to->calls[i] =
            (struct provider_call){load_text(l, call, "name"), load_text(l, call, "arguments")};
    }
}

void build_prompt(struct load *l, const json_t *o) {
    struct experiment *x = l->x;
    const json_t *list = json_object_get(o, "messages");
    x->message_count = (int)json_array_size(list);
    x->messages = arena_array(l->arena, (size_t)x->message_count + 1, sizeof *x->messages);
    for (int i = 0; i < x->message_count; i++) {
        const json_t *m = json_array_get(list, (size_t)i);
        struct experiment_message *to = &x->messages[i];
        *to = (struct experiment_message){.role = load_text(l, m, "role"),
                                          .text = load_text(l, m, "text")};
        to->path = l->origins != NULL ? l->origins[i].path
                                      : arena_printf(l->arena, "prompt.messages[%d]", i);
        to->origin = l->origins != NULL ? l->origins[i].line : "";
        build_calls(l, json_object_get(m, "tool_calls"), to);
    }
    x->tools = load_texts(l, o, "tools", &x->tool_count);
    static const char *const kinds[] = {"prose", "noise", "files", "pairs", "chat", NULL};
    static const char *const units[] = {"sentence", "paragraph", "document", NULL};
    const json_t *f = json_object_get(o, "filler");
    struct experiment_filler *filler = &x->filler;
    filler->kind = (enum filler_kind)load_index(load_word(l, f, "kind"), kinds);
    filler->unit = (enum filler_unit)load_index(load_word(l, f, "unit"), units);
    filler->language = load_word(l, f, "language");
    filler->sentences = load_texts(l, f, "sentences", &filler->sentence_count);
    filler->wrapper = load_text(l, f, "wrapper");
    filler->shuffle = load_boolean(f, "shuffle");
    filler->may_match = load_boolean(f, "may_match");
    const json_t *paths = json_object_get(f, "paths");
    filler->path_count = (int)json_array_size(paths);
    filler->paths = arena_array(l->arena, (size_t)filler->path_count + 1, sizeof *filler->paths);
    for (int i = 0; i < filler->path_count; i++)
        filler->paths[i] = load_path(l, json_array_get(paths, (size_t)i));
}
