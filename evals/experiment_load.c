// Reading resolved.json: what is missing or wrong gives an empty value, for the table has
// complained.
#include "engine/base/file.h"
#include "evals/experiment_load.h"
#include "evals/experiment_scalar.h"

#include <string.h>

struct str load_text(struct load *l, const json_t *o, const char *key) {
    struct str text = {0};
    struct err ignored;
    if (json_is_object(o) && json_get_bytes(o, key, "", l->arena, &text, &ignored) == 0)
        return text;
    return (struct str){0};
}

const char *load_word(struct load *l, const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    return json_is_string(value) ? arena_strdup(l->arena, json_string_value(value)) : NULL;
}

int64_t load_integer(const json_t *o, const char *key, int64_t otherwise) {
    const json_t *value = json_object_get(o, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool load_boolean(const json_t *o, const char *key) {
    return json_is_true(json_object_get(o, key));
}

double load_decimal(const json_t *o, const char *key, double otherwise) {
    const char *text = json_string_value(json_object_get(o, key));
    int64_t value;
    if (text == NULL || scalar_decimal(str_from(text), 6, &value) != 0) return otherwise;
    return (double)value / 1e6;
}

int32_t load_share(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    int32_t ppm;
    return text != NULL && scalar_share(str_from(text), &ppm) == 0 ? ppm : 0;
}

bool load_place(const json_t *value, struct place *out) {
    const char *text = json_string_value(value);
    *out = place_at(DEPTH_NONE);
    return text != NULL && scalar_place(str_from(text), out) == 0;
}

// Index of the word in a list that ends with NULL; 0 when it is not there.
int load_index(const char *word, const char *const *words) {
    for (int i = 0; word != NULL && words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return 0;
}

struct str *load_texts(struct load *l, const json_t *o, const char *key, int *count) {
    const json_t *list = json_object_get(o, key);
    *count = (int)json_array_size(list);
    struct str *texts = arena_array(l->arena, (size_t)*count + 1, sizeof *texts);
    for (int i = 0; i < *count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        if (json_is_string(item))
            texts[i] =
                str_copy(l->arena, (struct str){json_string_value(item), json_string_length(item)});
    }
    return texts;
}

const char *load_path(struct load *l, const json_t *value) {
    if (!json_is_string(value)) return NULL;
    return path_resolve(l->arena, l->x->folder, json_string_value(value));
}

// The constraint of that id, or -1 and a complaint at `path`.
int load_constraint(struct load *l, const char *id, const char *path) {
    int index = experiment_constraint_index(l->x, id);
    if (index >= 0) return index;
    const char **ids = arena_array(l->arena, (size_t)l->x->constraint_count + 1, sizeof *ids);
    size_t count = 0;
    for (int i = 0; i < l->x->constraint_count; i++)
        if (l->x->constraints[i].id != NULL) ids[count++] = l->x->constraints[i].id;
    if (count < (size_t)l->x->constraint_count) return -1; // an id that is in error may be meant
    const char *near = str_nearest(id, ids, count);
    diagnose_at(l->d, l->root, path, "there is no constraint '%s'%s%s%s", id,
                near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
                near == NULL ? "" : "'?");
    return -1;
}
