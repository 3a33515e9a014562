#include "engine/base/json.h"

#include "engine/base/file.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

int json_parse(struct str text, const char *where, json_t **out, struct err *e) {
    json_error_t error;
    *out = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (*out == NULL)
        FAIL(e, ERR_INPUT, "%s: not JSON: %s (line %d, column %d)", where, error.text, error.line,
             error.column);
    return 0;
}

int json_read_file(const char *path, size_t max_bytes, json_t **out, struct err *e) {
    struct arena *a = arena_create("file");
    struct str text;
    int result = file_read(path, max_bytes, a, &text, e);
    if (result == 0) result = json_parse(text, path, out, e);
    arena_destroy(a);
    return result;
}

static int add_to_buf(const char *bytes, size_t n, void *buf) {
    buf_add(buf, bytes, n);
    return 0;
}

static void json_write(const json_t *value, size_t flags, struct buf *out) {
    int failed = json_dump_callback(value, add_to_buf, out, flags | JSON_ENCODE_ANY);
    assert(!failed); // only values that cannot be written fail, and nobody builds such a value
    (void)failed;
}

void json_compact(const json_t *value, struct buf *out) {
    json_write(value, JSON_COMPACT, out);
}

void json_pretty(const json_t *value, struct buf *out) {
    json_write(value, JSON_INDENT(2), out);
}

static int json_need(const json_t *o, const char *key, const char *where, json_type type,
                     const char *type_name, json_t **out, struct err *e) {
    if (!json_is_object(o)) FAIL(e, ERR_INPUT, "%s: not a JSON object", where);
    json_t *value = json_object_get(o, key);
    if (value == NULL) FAIL(e, ERR_INPUT, "%s: the key \"%s\" is missing", where, key);
    if (json_typeof(value) != type)
        FAIL(e, ERR_INPUT, "%s: the key \"%s\" is not %s", where, key, type_name);
    *out = value;
    return 0;
}

int json_need_string(const json_t *o, const char *key, const char *where, const char **out,
                     struct err *e) {
    json_t *value;
    TRY(json_need(o, key, where, JSON_STRING, "a string", &value, e));
    *out = json_string_value(value);
    if (strlen(*out) != json_string_length(value))
        FAIL(e, ERR_INPUT, "%s: the key \"%s\" holds a NUL character", where, key);
    return 0;
}

int json_need_integer(const json_t *o, const char *key, const char *where, int64_t *out,
                      struct err *e) {
    json_t *value;
    TRY(json_need(o, key, where, JSON_INTEGER, "an integer", &value, e));
    *out = json_integer_value(value);
    return 0;
}

int json_need_object(const json_t *o, const char *key, const char *where, json_t **out,
                     struct err *e) {
    return json_need(o, key, where, JSON_OBJECT, "an object", out, e);
}

int json_need_array(const json_t *o, const char *key, const char *where, json_t **out,
                    struct err *e) {
    return json_need(o, key, where, JSON_ARRAY, "an array", out, e);
}

static int fail_key(const char *key, const char *where, const char *const *known, size_t count,
                    struct err *e) {
    const char *near = str_nearest(key, known, count);
    if (near != NULL)
        FAIL(e, ERR_CONFIG, "%s: unknown key \"%s\"; did you mean \"%s\"?", where, key, near);
    struct buf list = {0};
    for (size_t i = 0; i < count; i++) buf_printf(&list, "%s%s", i > 0 ? ", " : "", known[i]);
    ERR_SET(e, ERR_CONFIG, "%s: unknown key \"%s\"; known here: %s", where, key, list.p);
    buf_free(&list);
    return -1;
}

int json_only_keys(const json_t *o, const char *where, const char *const *known, size_t count,
                   struct err *e) {
    const char *key;
    json_t *value;
    if (!json_is_object(o)) FAIL(e, ERR_CONFIG, "%s: not a JSON object", where);
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        size_t i = 0;
        while (i < count && strcmp(key, known[i]) != 0) i++;
        if (i == count) return fail_key(key, where, known, count, e);
    }
    return 0;
}

json_t *json_text(struct str s) {
    assert(utf8_valid(s)); // which callers see to
    json_t *value = json_stringn_nocheck(s.n == 0 ? "" : s.p, s.n);
    if (value == NULL) mem_exhausted("a text", s.n);
    return value;
}

json_t *json_ppm(double share) {
    return json_integer((json_int_t)(share * 1e6 + (share < 0 ? -0.5 : 0.5)));
}

json_t *json_text_c(const char *s) {
    return s == NULL ? json_null() : json_text(str_from(s));
}

void json_put(json_t *object, const char *key, json_t *value) {
    int failed = json_object_set_new(object, key, value);
    assert(!failed);
    (void)failed;
}

void json_put_bytes(json_t *object, const char *key, struct str s) {
    if (utf8_valid(s)) {
        json_put(object, key, json_text(s));
        return;
    }
    size_t capacity = (s.n + 2) / 3 * 4 + 1;
    struct buf name = {0}, text = {0};
    buf_printf(&name, "%s_base64", key);
    buf_reserve(&text, capacity);
    int n = EVP_EncodeBlock((unsigned char *)text.p, (const unsigned char *)s.p, (int)s.n);
    json_put(object, name.p, json_text((struct str){text.p, (size_t)n}));
    buf_free(&text);
    buf_free(&name);
}

static int decode_base64(struct str text, const char *where, const char *key, struct arena *a,
                         struct str *out, struct err *e) {
    char *bytes = arena_alloc(a, text.n / 4 * 3 + 1);
    size_t padding = str_find(text, STR("="), 0); // the decoder takes it anywhere, for zero bits
    bool padded_well = padding == STR_NONE || padding + 1 == text.n ||
                       (padding + 2 == text.n && text.p[padding + 1] == '=');
    int n =
        text.n > INT32_MAX || text.n % 4 != 0 || !padded_well
            ? -1
            : EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text.p, (int)text.n);
    if (n < 0) FAIL(e, ERR_INPUT, "%s: the key \"%s_base64\" is not base64", where, key);
    // EVP_DecodeBlock counts the padding as zero bytes.
    if (text.n > 0 && text.p[text.n - 1] == '=') n--;
    if (text.n > 1 && text.p[text.n - 2] == '=') n--;
    bytes[n] = '\0';
    *out = (struct str){bytes, (size_t)n};
    return 0;
}

int json_get_bytes(const json_t *object, const char *key, const char *where, struct arena *a,
                   struct str *out, struct err *e) {
    json_t *plain = json_object_get(object, key);
    if (json_is_string(plain)) {
        *out = str_copy(a, (struct str){json_string_value(plain), json_string_length(plain)});
        return 0;
    }
    json_t *encoded = json_object_get(object, arena_printf(a, "%s_base64", key));
    if (!json_is_string(encoded))
        FAIL(e, ERR_INPUT, "%s: the key \"%s\" (or \"%s_base64\") is missing", where, key, key);
    struct str text = {json_string_value(encoded), json_string_length(encoded)};
    return decode_base64(text, where, key, a, out, e);
}
