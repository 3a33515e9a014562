// `prompt` of resolved.json into the struct.
#include "evals/experiment_load.h"
#include "prompts/filler.h"

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
    static const char *const kinds[] = {"prose",        "noise",          "files",
                                        "pairs",        "chat",           "json_pairs",
                                        "common_words", "frequent_words", NULL};
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

void build_distractors(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->distractors = arena_array(l->arena, json_array_size(list) + 1, sizeof *x->distractors);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *like = load_word(l, o, "like");
        if (like == NULL) continue;
        const char *path = arena_printf(l->arena, "prompt.filler.distractors[%zu].like", i);
        struct experiment_distractor d = {.like = load_constraint(l, like, path)};
        if (d.like < 0) continue;
        const struct experiment_constraint *c = &x->constraints[d.like];
        const struct str *names = load_texts(l, o, "vary", &d.vary_count);
        const int given = d.vary_count;
        if (given == 0) d.vary_count = c->var_count;
        d.vary = arena_array(l->arena, (size_t)d.vary_count + 1, sizeof *d.vary);
        for (int k = 0; k < d.vary_count; k++)
            d.vary[k] = given > 0 ? str_to_c(l->arena, names[k]) : c->vars[k].name;
        d.per_1k_tokens = (int)load_integer(o, "per_1k_tokens", 1);
        x->distractors[x->distractor_count++] = d;
    }
}

// The answers that a filler of words has are variables as well, behind the experiment's own.
void build_answers(struct load *l) {
    struct experiment *x = l->x;
    const bool common = x->filler.kind == FILLER_COMMON_WORDS;
    if (!common && x->filler.kind != FILLER_FREQUENT_WORDS) return;
    const int count = common ? FILLER_COMMON_ANSWERS : FILLER_FREQUENT_ANSWERS;
    struct experiment_variable *vars =
        arena_array(l->arena, (size_t)(x->var_count + count), sizeof *vars);
    memcpy(vars, x->vars, (size_t)x->var_count * sizeof *vars);
    x->vars = vars;
    for (int i = 0; i < count; i++) {
        x->vars[x->var_count++] = (struct experiment_variable){
            .name = arena_printf(l->arena, "filler.%s_%d", common ? "common" : "frequent", i + 1),
            .kind = VARIABLE_FILLER,
            .least = -1,
            .most = -1};
    }
}
