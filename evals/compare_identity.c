// What two runs do not share, by the names that --allow takes.
#include "evals/compare_internal.h"

#include <string.h>

const char *const compare_fields[] = {"model",      "tokenizer", "template", "numerics", "backend",
                                      "generation", "checks",    "prompts",  NULL};

static bool are_partners(const struct compare_options *o, const char *before, const char *now) {
    if (o->model_before == NULL) return strcmp(before, now) == 0;
    return strcmp(before, o->model_before) == 0 && strcmp(now, o->model_now) == 0;
}

int *compare_models(const struct baseline *before, const struct baseline *now,
                    const struct compare_options *options, struct arena *a) {
    int *partner = arena_array(a, (size_t)now->model_count + 1, sizeof *partner);
    for (int i = 0; i < now->model_count; i++) {
        partner[i] = -1;
        for (int k = 0; k < before->model_count; k++)
            if (are_partners(options, before->models[k], now->models[i])) partner[i] = k;
    }
    if (options->model_before == NULL && now->model_count == 1 && before->model_count == 1)
        partner[0] = 0;
    return partner;
}

struct listing {
    struct comparison *c;
    const struct compare_options *options;
    struct arena *arena;
};

static void add_field(struct listing *l, const char *field, const char *where, const char *before,
                      const char *after) {
    struct comparison *c = l->c;
    struct comparison_field f = {field, where, before, after, true, false};
    for (int i = 0; compare_fields[i] != NULL; i++)
        if (strcmp(compare_fields[i], field) == 0) f.harmless = false;
    for (int i = 0; i < l->options->allow_count; i++)
        f.allowed |= strcmp(l->options->allow[i], field) == 0;
    c->fields = arena_more(l->arena, c->fields, (size_t)c->field_count, sizeof *c->fields);
    c->fields[c->field_count++] = f;
}

// A value in words: hashes by their first 12 digits.
static const char *value_words(const json_t *value, struct arena *a) {
    if (value == NULL) return "nothing";
    const char *text = json_string_value(value);
    if (text != NULL && hash_is_hex(str_from(text))) return arena_printf(a, "%.12s", text);
    if (text != NULL) return arena_strdup(a, text);
    struct buf b = {0};
    json_compact(value, &b);
    return buf_take(&b, a).p;
}

static void compare_values(struct listing *l, const char *field, const char *where,
                           const char *label, const json_t *before, const json_t *after) {
    if (before == after) return;
    if (before != NULL && after != NULL && json_equal(before, after)) return;
    add_field(
        l, field, where,
        arena_printf(l->arena, "%s%s%s", label, label[0] ? " " : "", value_words(before, l->arena)),
        value_words(after, l->arena));
}

// Every key of either object.
static void compare_objects(struct listing *l, const char *where, const json_t *before,
                            const json_t *after, const char *(*field_of)(const char *key)) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)before, key, value) compare_values(
        l, field_of(key), where, arena_strdup(l->arena, key), value, json_object_get(after, key));
    json_object_foreach((json_t *)(uintptr_t)after, key,
                        value) if (json_object_get(before, key) == NULL)
        compare_values(l, field_of(key), where, arena_strdup(l->arena, key), NULL, value);
}

static const char *model_field(const char *key) {
    static const char *const own[][2] = {
        {"tokenizer_sha256", "tokenizer"}, {"pre_tokenizer", "tokenizer"},
        {"template_sha256", "template"},   {"template", "template"},
        {"numerics", "numerics"},          {"backend", "backend"},
        {"reasoning", "generation"}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i][0], key) == 0) return own[i][1];
    return "model";
}

static const char *generation_field(const char *key) {
    (void)key;
    return "generation";
}

static void compare_all_models(struct listing *l, const int *models) {
    const struct comparison *c = l->c;
    const json_t *before = json_object_get(c->before->identity, "models");
    const json_t *after = json_object_get(c->now->identity, "models");
    for (int i = 0; i < c->now->model_count; i++) {
        if (models[i] < 0) continue; // its trials have no partners, which the plans tell
        compare_objects(l, arena_printf(l->arena, "model %s", c->now->models[i]),
                        json_array_get(before, (size_t)models[i]), json_array_get(after, (size_t)i),
                        model_field);
    }
}

static void compare_prompts(struct listing *l) {
    const struct comparison *c = l->c;
    int64_t other = 0;
    for (int64_t i = 0; i < c->pair_count; i++) other += !c->pairs[i].same_prompt;
    if (other == 0) return;
    add_field(
        l, "prompts", "", "other texts",
        arena_printf(l->arena, "%lld of %lld trials", (long long)other, (long long)c->pair_count));
}

// "model,prompts": each word once, in the order of compare_fields.
static const char *missing_allowances(const struct comparison *c, struct arena *a) {
    struct buf words = {0};
    for (int i = 0; compare_fields[i] != NULL; i++) {
        bool needed = false;
        for (int k = 0; k < c->field_count; k++)
            needed |= strcmp(c->fields[k].field, compare_fields[i]) == 0;
        if (needed) buf_printf(&words, "%s%s", words.n > 0 ? "," : "", compare_fields[i]);
    }
    return buf_take(&words, a).p;
}

// Greedy replies draw nothing; others follow streams, which the plan has.
static bool same_streams(const json_t *before, const json_t *after) {
    const char *temperature =
        json_string_value(json_object_get(json_object_get(after, "generation"), "temperature"));
    return (temperature != NULL && strcmp(temperature, "0") == 0) ||
           json_equal(json_object_get(before, "plan_sha256"),
                      json_object_get(after, "plan_sha256"));
}

// A server may answer the same request otherwise.
static bool any_served(const json_t *identity) {
    const char *backend = json_string_value(json_object_get(identity, "backend"));
    return backend != NULL && strstr(backend, "served") != NULL;
}

void compare_identity(struct comparison *c, const int *models,
                      const struct compare_options *options, struct arena *a) {
    struct listing l = {c, options, a};
    const json_t *before = c->before->identity, *after = c->now->identity;
    // Checks come with what they are about; gates and tolerances judge, and change no verdict.
    static const char *const plain[][2] = {{"experiment", "experiment"},
                                           {"numerics", "numerics"},
                                           {"backend", "backend"},
                                           {"checks_sha256", "checks"},
                                           {"analysis_sha256", "gates, primary or tolerances"},
                                           {"evidence", "evidence"}};
    compare_all_models(&l, models);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        compare_values(&l, plain[i][1], "", "", json_object_get(before, plain[i][0]),
                       json_object_get(after, plain[i][0]));
    compare_objects(&l, "", json_object_get(before, "generation"),
                    json_object_get(after, "generation"), generation_field);
    compare_prompts(&l);
    bool missing = false;
    for (int i = 0; i < c->field_count; i++)
        missing |= !c->fields[i].harmless && !c->fields[i].allowed;
    c->allow = missing ? missing_allowances(c, a) : NULL;
    bool same = !any_served(before) && !any_served(after) && c->only_before == 0 &&
                c->only_now == 0 && same_streams(before, after);
    for (int i = 0; i < c->field_count; i++) same &= c->fields[i].harmless;
    c->same_identity = same;
}
