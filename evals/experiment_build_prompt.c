// `prompt` of resolved.json into the struct.
#include "evals/experiment_load.h"

#include <string.h>

void build_prompt(struct load *l, const json_t *o) {
    struct experiment *x = l->x;
    const json_t *list = json_object_get(o, "messages");
    x->message_count = (int)json_array_size(list);
    x->messages = arena_array(l->arena, (size_t)x->message_count + 1, sizeof *x->messages);
    for (int i = 0; i < x->message_count; i++) {
        const json_t *m = json_array_get(list, (size_t)i);
        x->messages[i] =
            (struct experiment_message){load_text(l, m, "role"), load_text(l, m, "text")};
    }
    static const char *const kinds[] = {"prose", "noise", "files", "pairs", NULL};
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
