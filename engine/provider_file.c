#include "engine/provider_file.h"

#include "engine/base/file.h"

#include <string.h>

#define FILE_BYTES_MOST ((size_t)16 << 20)

int provider_file_read(const char *path, const char *version_key, struct arena *a,
                       char sha256[HASH_HEX_SIZE], json_t **out, struct err *e) {
    struct str text;
    int64_t version;
    *out = NULL;
    TRY(file_read(path, FILE_BYTES_MOST, a, &text, e));
    hash_bytes(text.p, text.n, sha256);
    json_t *o;
    TRY(json_parse(text, path, &o, e));
    int result = 0;
    if (!json_is_object(o)) result = ERR_SET(e, ERR_CONFIG, "%s: not a JSON object", path);
    if (result == 0) result = json_need_integer(o, version_key, path, &version, e);
    if (result == 0 && version != 1)
        result = ERR_SET(e, ERR_CONFIG, "%s: \"%s\" is %lld; this program reads 1", path,
                         version_key, (long long)version);
    if (result == 0)
        *out = o;
    else
        json_decref(o);
    return result;
}

int provider_file_text(const json_t *o, const char *key, const char *where, struct arena *a,
                       const char **out, struct err *e) {
    *out = NULL;
    if (json_object_get(o, key) == NULL) return 0;
    const char *text;
    TRY(json_need_string(o, key, where, &text, e));
    *out = arena_strdup(a, text);
    return 0;
}

int provider_file_integer(const json_t *o, const char *key, const char *where, int64_t most,
                          int64_t otherwise, int64_t *out, struct err *e) {
    *out = otherwise;
    if (json_object_get(o, key) == NULL) return 0;
    TRY(json_need_integer(o, key, where, out, e));
    if (*out < 0 || *out > most)
        FAIL(e, ERR_CONFIG, "%s: \"%s\" is %lld, outside 0 to %lld", where, key, (long long)*out,
             (long long)most);
    return 0;
}

int provider_file_boolean(const json_t *o, const char *key, const char *where, bool otherwise,
                          bool *out, struct err *e) {
    const json_t *value = json_object_get(o, key);
    *out = otherwise;
    if (value == NULL) return 0;
    if (!json_is_boolean(value))
        FAIL(e, ERR_CONFIG, "%s: \"%s\" is neither true nor false", where, key);
    *out = json_is_true(value);
    return 0;
}

int provider_file_texts(const json_t *o, const char *key, const char *where, struct arena *a,
                        struct str **out, int *count, struct err *e) {
    const json_t *value = json_object_get(o, key);
    *out = NULL;
    *count = 0;
    if (value == NULL) return 0;
    bool list = json_is_array(value);
    size_t n = list ? json_array_size(value) : 1;
    *out = arena_array(a, n, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = list ? json_array_get(value, i) : value;
        if (!json_is_string(text))
            FAIL(e, ERR_CONFIG, "%s: \"%s\" is neither a string nor a list of strings", where, key);
        (*out)[i] = str_copy(a, (struct str){json_string_value(text), json_string_length(text)});
    }
    *count = (int)n;
    return 0;
}
