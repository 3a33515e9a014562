// resolved.json into struct experiment. Everything may be missing here: the table has then
// complained, and the rest is still built so that all errors of a file come in one go.
#include "evals/experiment_load.h"
#include "evals/experiment_scalar.h"

#include <string.h>

// In millionths.
static int64_t load_price(const json_t *price, const char *key) {
    const char *text = json_string_value(json_object_get(price, key));
    int64_t value;
    return text != NULL && scalar_decimal(str_from(text), 6, &value) == 0 ? value : 0;
}

// What counts is one of the words `usage` and `tokenize`, or else a file.
static void build_endpoint(struct load *l, const json_t *o, struct provider_endpoint *out) {
    const char *count = json_string_value(json_object_get(o, "count"));
    *out = (struct provider_endpoint){
        .url = load_word(l, o, "endpoint"),
        .name = load_word(l, o, "name"),
        .api = load_word(l, o, "api"),
        .max_tokens_key = load_word(l, o, "max_tokens_key"),
        .body = load_word(l, o, "body"),
        .key_variable = load_word(l, o, "api_key_env"),
        .ca_file = load_path(l, json_object_get(o, "ca_file")),
        .in_flight = (int)load_integer(o, "in_flight", 1),
        .attempts = (int)load_integer(o, "attempts", 1),
        .stream = load_boolean(o, "stream"),
        .reply_seconds = (int)load_integer(o, "reply_seconds", 1),
        .stall_seconds = (int)load_integer(o, "stall_seconds", 1),
        .shortfall_ppm = json_object_get(o, "shortfall") ? load_share(o, "shortfall") : -1,
    };
    out->count_there = count != NULL && strcmp(count, "tokenize") == 0;
    if (count != NULL && strcmp(count, "usage") != 0 && !out->count_there)
        out->count_file = load_path(l, json_object_get(o, "count"));
}

static void build_models(struct load *l, const json_t *list) {
    struct experiment *x = l->x;
    x->model_count = (int)json_array_size(list);
    x->models = arena_array(l->arena, (size_t)x->model_count + 1, sizeof *x->models);
    for (int i = 0; i < x->model_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        x->models[i] = (struct experiment_model){
            .id = load_word(l, o, "id"),
            .path = load_path(l, json_object_get(o, "path")),
            .fixture = load_path(l, json_object_get(o, "fixture")),
            .simulated = load_path(l, json_object_get(o, "simulated")),
            .backend = load_word(l, o, "backend"),
            .numerics = load_word(l, o, "numerics"),
            .weights = load_word(l, o, "weights"),
            .chat_template = load_word(l, o, "template"),
            .pre_tokenizer = load_word(l, o, "pre_tokenizer"),
            .context_tokens = (uint32_t)load_integer(o, "context_tokens", 0),
            .beyond_trained = load_boolean(o, "beyond_trained"),
        };
        const json_t *reasoning = json_object_get(o, "reasoning");
        x->models[i].thinks = reasoning != NULL;
        x->models[i].reasoning =
            (struct reasoning_tags){.open = load_text(l, reasoning, "open"),
                                    .close = load_text(l, reasoning, "close"),
                                    .opened = load_boolean(reasoning, "opened_by_prompt")};
        x->models[i].reasoning_tokens = (int)load_integer(reasoning, "max_tokens", 0);
        build_endpoint(l, o, &x->models[i].endpoint);
        x->models[i].repeat_check = (int)load_integer(o, "repeat_check", 0);
        const json_t *price = json_object_get(o, "price");
        x->models[i].priced = price != NULL;
        x->models[i].price_input = load_price(price, "input_per_mtok");
        x->models[i].price_output = load_price(price, "output_per_mtok");
    }
}

static bool drops(struct load *l, const json_t *retain, const char *what) {
    const char *word = load_word(l, retain, what);
    return word != NULL && strcmp(word, "none") == 0;
}

void experiment_build(struct load *l, const json_t *resolved) {
    struct experiment *x = l->x;
    const json_t *o = json_object_get(resolved, "generation");
    x->name = load_word(l, resolved, "name");
    x->seed = (uint64_t)load_integer(resolved, "seed", 1);
    build_models(l, json_object_get(resolved, "models"));
    x->generation.max_tokens = (int)load_integer(o, "max_tokens", 0);
    x->generation.samples = (int)load_integer(o, "samples", 1);
    x->generation.temperature = load_decimal(o, "temperature", 0);
    x->generation.top_p = load_decimal(o, "top_p", 1);
    x->generation.stop = load_texts(l, o, "stop", &x->generation.stop_count);
    build_prompt(l, json_object_get(resolved, "prompt"));
    x->vars = build_variables(l, json_object_get(resolved, "vars"), &x->var_count);
    build_answers(l);
    build_constraints(l, json_object_get(resolved, "constraints"));
    o = json_object_get(json_object_get(resolved, "prompt"), "filler");
    build_distractors(l, json_object_get(o, "distractors"));
    o = json_object_get(resolved, "cases");
    x->cases_path = load_path(l, json_object_get(o, "file"));
    x->cases_id = load_word(l, o, "id");
    build_placements(l, json_object_get(resolved, "placements"));
    build_lengths(l, json_object_get(resolved, "lengths"));
    x->repeats = (int)load_integer(resolved, "repeats", 0);
    o = json_object_get(resolved, "arms");
    static const char *const arms[] = {"placed", "absent", "short", NULL};
    for (size_t i = 0; i < json_array_size(o); i++)
        if (json_is_string(json_array_get(o, i)))
            x->arms[load_index(json_string_value(json_array_get(o, i)), arms)] = true;
    x->short_tokens = (int)load_integer(resolved, "short_tokens", 0);
    x->evidence = load_word(l, resolved, "evidence");
    o = json_object_get(resolved, "retain");
    x->drops_prompts = drops(l, o, "prompts");
    x->drops_replies = drops(l, o, "replies");
    x->without_texts = load_boolean(resolved, "without_texts");
    x->effective_level = (double)load_share(resolved, "effective_level") / 1e6;
    o = json_object_get(resolved, "tolerate");
    x->tolerate_errors_ppm = load_share(o, "errors");
    x->tolerate_invalid_ppm = load_share(o, "invalid");
    x->tolerate_unscored_ppm = load_share(o, "unscored");
    build_primary(l, json_object_get(resolved, "primary"));
    build_gates(l, json_object_get(resolved, "gates"));
    x->only = load_texts(l, resolved, "only", &x->only_count);
    x->limit = load_integer(resolved, "limit", -1);
}
