// JSON by jansson, with the program's conventions: keys stay in the order they were set, output is
// compact UTF-8, exact things are integers or strings and never floating-point numbers.
#ifndef LACUNA_ENGINE_BASE_JSON_H
#define LACUNA_ENGINE_BASE_JSON_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <jansson.h>

// Parses one document; duplicate keys are an error. `where` (path, or path and line) is for
// messages. On success the caller owns *out (json_decref).
int json_parse(struct str text, const char *where, json_t **out, struct err *e);
int json_read_file(const char *path, size_t max_bytes, json_t **out, struct err *e);

// Appends the compact form, keys in insertion order, no line break. `json_pretty` indents by 2.
void json_compact(const json_t *value, struct buf *out);
void json_pretty(const json_t *value, struct buf *out);
// As Python's json.dumps(value, ensure_ascii=False, indent=...) writes it, which chat templates
// print with `tojson`: ", " and ": " between, text outside ASCII as it is, floating-point numbers
// by their shortest spelling. `indent` 0: on one line.
void json_python(const json_t *value, int indent, struct buf *out);

// Typed reads of required keys; a missing key or other type, and a string with a NUL inside, is
// ERR_INPUT naming `where` and the key.
int json_need_string(const json_t *o, const char *key, const char *where, const char **out,
                     struct err *e);
int json_need_integer(const json_t *o, const char *key, const char *where, int64_t *out,
                      struct err *e);
int json_need_object(const json_t *o, const char *key, const char *where, json_t **out,
                     struct err *e);
int json_need_array(const json_t *o, const char *key, const char *where, json_t **out,
                    struct err *e);

// `o` is an object with known keys only; else ERR_CONFIG naming the key and the one that was
// probably meant, or all known ones.
int json_only_keys(const json_t *o, const char *where, const char *const *known, size_t count,
                   struct err *e);
#define JSON_ONLY_KEYS(o, where, known, e)                                                         \
    json_only_keys((o), (where), (known), sizeof(known) / sizeof *(known), (e))

// Builders that never return NULL (out of memory aborts). `json_text` needs valid UTF-8.
json_t *json_text(struct str s);
json_t *json_text_c(const char *s); // NULL gives JSON null
json_t *json_ppm(double share);     // parts per million, whole: how the program's JSON gives shares
void json_put(json_t *object, const char *key, json_t *value); // takes over the reference

// Under `key` when the bytes are valid UTF-8, else base64 under key + "_base64" (RECORD.md).
void json_put_bytes(json_t *object, const char *key, struct str s);
// The inverse: reads either spelling into the arena.
int json_get_bytes(const json_t *object, const char *key, const char *where, struct arena *a,
                   struct str *out, struct err *e);

#endif
