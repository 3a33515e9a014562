#include "reports/record_internal.h"

#include <string.h>

// Values in a message: long ones are cut in the middle of nowhere, hashes after 12 digits.
static void add_value(struct buf *out, const json_t *value) {
    if (value == NULL) {
        buf_add_c(out, "nothing");
        return;
    }
    struct buf text = {0};
    json_compact(value, &text);
    if (json_is_string(value) && hash_is_hex(str_from(json_string_value(value))))
        buf_printf(out, "%.12s...", json_string_value(value));
    else
        buf_printf(out, "%.60s%s", text.p, text.n > 60 ? "..." : "");
    buf_free(&text);
}

struct comparison {
    struct buf *out;
    int count, scoring;
};

// Keys that name a place in the file system, and the hash of everything, which says nothing.
static bool is_left_out(const char *key) {
    static const char *const keys[] = {"path",      "paths", "fixture",
                                       "simulated", "file",  "request_sha256"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

// Fields of identity.json and resolved.json that scoring reads and the model does not see.
static bool is_scoring(const char *path) {
    static const char *const starts[] = {"checks_sha256", "analysis_sha256", "gates",
                                         "primary",       "tolerate",        "baselines"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(path, starts[i], strlen(starts[i])) == 0) return true;
    static const char *const keys[] = {"value",       "met",       "violated", "answered",
                                       "ignore_case", "multiline", "dotall",   "examples"};
    if (strncmp(path, "constraints[", 12) != 0) return false;
    const char *dot = strchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof keys / sizeof *keys; i++)
        if (strncmp(dot + 1, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

static void compare(struct comparison *c, const char *path, const json_t *stored,
                    const json_t *asked);

static void differ(struct comparison *c, const char *path, const json_t *stored,
                   const json_t *asked) {
    c->count++;
    if (is_scoring(path)) c->scoring++;
    buf_printf(c->out, "  %s: ", path);
    add_value(c->out, stored);
    buf_add_c(c->out, " in the record, ");
    add_value(c->out, asked);
    buf_add_c(c->out, " asked for\n");
}

static void compare_objects(struct comparison *c, const char *path, const json_t *stored,
                            const json_t *asked) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)asked, key, value) {
        if (is_left_out(key)) continue;
        struct buf name = {0};
        buf_printf(&name, "%s%s%s", path, path[0] == '\0' ? "" : ".", key);
        compare(c, name.p, json_object_get(stored, key), value);
        buf_free(&name);
    }
}

static void compare_arrays(struct comparison *c, const char *path, const json_t *stored,
                           const json_t *asked) {
    if (json_array_size(stored) != json_array_size(asked)) {
        differ(c, path, stored, asked);
        return;
    }
    for (size_t i = 0; i < json_array_size(asked); i++) {
        struct buf name = {0};
        buf_printf(&name, "%s[%zu]", path, i);
        compare(c, name.p, json_array_get(stored, i), json_array_get(asked, i));
        buf_free(&name);
    }
}

// Only what is asked for is compared: unknown keys of the record are another version's business.
static void compare(struct comparison *c, const char *path, const json_t *stored,
                    const json_t *asked) {
    if (json_is_object(asked) && json_is_object(stored))
        compare_objects(c, path, stored, asked);
    else if (json_is_array(asked) && json_is_array(stored))
        compare_arrays(c, path, stored, asked);
    else if (stored == NULL || !json_equal(stored, asked))
        differ(c, path, stored, asked);
}

int record_differences(const json_t *stored, const json_t *asked, struct buf *out, bool *scoring) {
    struct comparison c = {out, 0, 0};
    compare(&c, "", stored, asked);
    *scoring = c.count > 0 && c.count == c.scoring;
    return c.count;
}
