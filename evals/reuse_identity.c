// What two identities do not share, as far as a reply depends on it.
#include "evals/reuse.h"

#include <string.h>

#define VALUE_BYTES_MOST 60

// The text's beginning, cut between characters.
static const char *beginning(const char *text, struct arena *a) {
    struct str head = str_from(text);
    if (head.n <= VALUE_BYTES_MOST) return arena_strdup(a, text);
    head = str_slice(head, 0, utf8_first_bad(str_slice(head, 0, VALUE_BYTES_MOST)));
    return arena_printf(a, STR_FMT "...", STR_ARG(head));
}

// A value in words: hashes by their first 12 digits.
static const char *value_words(const json_t *value, struct arena *a) {
    if (value == NULL || json_is_null(value)) return "none";
    const char *text = json_string_value(value);
    if (text != NULL && hash_is_hex(str_from(text))) return arena_printf(a, "%.12s...", text);
    if (text != NULL) return beginning(text, a);
    struct buf b = {0};
    json_compact(value, &b);
    const char *words = beginning(b.p, a);
    buf_free(&b);
    return words;
}

static bool is_listed(const char *const *names, const char *name) {
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

const char *reuse_value_difference(const char *label, const char *name, const json_t *then,
                                   const json_t *now, struct arena *a) {
    if (then == now) return NULL;
    if (then != NULL && now != NULL && json_equal(then, now)) return NULL;
    return arena_printf(a, "%s%s: %s there, %s here", label, name, value_words(then, a),
                        value_words(now, a));
}

// Keys of either side count: what another version wrote down may be what a reply depends on.
static const char *object_difference(const char *label, const json_t *then, const json_t *now,
                                     const char *const *left_out, struct arena *a) {
    const char *key, *found = NULL;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, key, value) {
        if (!is_listed(left_out, key))
            found = reuse_value_difference(label, key, json_object_get(then, key), value, a);
        if (found != NULL) return found;
    }
    json_object_foreach((json_t *)(uintptr_t)then, key, value) {
        if (!is_listed(left_out, key) && json_object_get(now, key) == NULL)
            return reuse_value_difference(label, key, value, NULL, a);
    }
    return NULL;
}

// Of several models the identity joins their words with commas, unless all have the same.
static struct str word_of(const json_t *identity, const char *key, int model) {
    const char *text = json_string_value(json_object_get(identity, key));
    struct str words = str_from(text == NULL ? "" : text);
    if (str_find(words, STR(","), 0) == STR_NONE) return words;
    for (size_t at = 0;; model--) {
        size_t end = str_find(words, STR(","), at);
        if (model == 0) return str_slice(words, at, end == STR_NONE ? words.n : end);
        if (end == STR_NONE) return STR("");
        at = end + 1;
    }
}

static const char *word_difference(const char *key, const json_t *then, int model_then,
                                   const json_t *now, int model_now, struct arena *a) {
    struct str left = word_of(then, key, model_then), right = word_of(now, key, model_now);
    if (str_equal(left, right)) return NULL;
    return arena_printf(a, "%s: " STR_FMT " there, " STR_FMT " here", key, STR_ARG(left),
                        STR_ARG(right));
}

const char *reuse_difference(const json_t *then, int model_then, const json_t *now, int model_now,
                             struct arena *a) {
    static const char *const name_alone[] = {"id", NULL}, *const counts[] = {"samples", NULL};
    const json_t *left = json_array_get(json_object_get(then, "models"), (size_t)model_then);
    const json_t *right = json_array_get(json_object_get(now, "models"), (size_t)model_now);
    const char *found = object_difference("model ", left, right, name_alone, a);
    if (found == NULL) found = word_difference("numerics", then, model_then, now, model_now, a);
    if (found == NULL) found = word_difference("backend", then, model_then, now, model_now, a);
    if (found == NULL)
        found = object_difference("", json_object_get(then, "generation"),
                                  json_object_get(now, "generation"), counts, a);
    struct str watched = word_of(now, "evidence", model_now);
    bool known =
        str_equal_c(watched, "off") || (str_equal_c(watched, "summary") &&
                                        str_equal_c(word_of(then, "evidence", model_then), "full"));
    if (found == NULL && !known)
        found = word_difference("evidence", then, model_then, now, model_now, a);
    return found;
}
