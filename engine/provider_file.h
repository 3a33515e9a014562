// Reading of the JSON files that providers without a model are opened from: optional keys, each
// with its bounds. Errors begin with `where` ("FILE: rules[3]"): ERR_INPUT for what is no JSON or
// of another type, else ERR_CONFIG. Texts are copied into the arena, NULs included.
#ifndef LACUNA_ENGINE_PROVIDER_FILE_H
#define LACUNA_ENGINE_PROVIDER_FILE_H

#include "engine/base/err.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"

// Reads the file, gives its hash, and checks that `version_key` is 1. The caller owns *out.
int provider_file_read(const char *path, const char *version_key, struct arena *a,
                       char sha256[HASH_HEX_SIZE], json_t **out, struct err *e);
// A missing key gives NULL, `otherwise`, or no texts.
int provider_file_text(const json_t *o, const char *key, const char *where, struct arena *a,
                       const char **out, struct err *e);
int provider_file_integer(const json_t *o, const char *key, const char *where, int64_t most,
                          int64_t otherwise, int64_t *out, struct err *e); // from 0 to `most`
int provider_file_boolean(const json_t *o, const char *key, const char *where, bool otherwise,
                          bool *out, struct err *e);
// A string, or a list of strings.
int provider_file_texts(const json_t *o, const char *key, const char *where, struct arena *a,
                        struct str **out, int *count, struct err *e);

#endif
