// GGUF v2 and v3 model files, memory-mapped. Specification: ggml's docs/gguf.md.
//
// Everything in the file is hostile until checked: counts, lengths, offsets, types and products are
// compared with the bytes that are left before anything is allocated or touched. A file that passes
// gguf_open can be read through this header without further bounds checks.
#ifndef LACUNA_ENGINE_GGUF_H
#define LACUNA_ENGINE_GGUF_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/file.h"
#include "engine/base/str.h"
#include "kernels/quant.h"

#include <stdbool.h>
#include <stdint.h>

enum gguf_value_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

struct gguf_value {
    struct str key;
    enum gguf_value_type type;
    union {
        uint64_t u; // U8 .. U64, BOOL
        int64_t i;  // I8 .. I64
        double f;   // F32, F64
        struct str s;
    } as;
    // ARRAY: element type and count; strings are indexed, numbers are read in place.
    enum gguf_value_type element;
    uint64_t count;
    const uint8_t *data;
    const struct str *strings;
    struct str raw; // type and value as they stand in the file, for hashing
};

struct gguf_tensor {
    struct str name;
    uint32_t dims;   // 1..4
    uint64_t dim[4]; // dim[0] is the row length
    enum tensor_type type;
    uint64_t elements;
    uint64_t bytes;
    const uint8_t *data; // in the mapping
};

struct gguf {
    const char *path;
    struct file_map map;
    uint32_t version;
    uint64_t alignment;
    struct gguf_value *values;
    size_t value_count;
    struct gguf_tensor *tensors;
    size_t tensor_count;
    const struct gguf_value **by_key; // the two tables sorted by name
    const struct gguf_tensor **by_name;
};

int gguf_open(const char *path, struct arena *a, struct gguf **out, struct err *e);
void gguf_close(struct gguf *g); // unmaps; the arena keeps the tables

const struct gguf_value *gguf_find(const struct gguf *g, const char *key); // NULL when absent
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

// Typed reads. `need` fails when the key is absent or of another type, naming file, key and type;
// `get` leaves *out as it was when absent.
int gguf_need_u32(const struct gguf *g, const char *key, uint32_t *out, struct err *e);
int gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out, bool *present,
                 struct err *e);
int gguf_need_f32(const struct gguf *g, const char *key, float *out, struct err *e);
int gguf_get_f32(const struct gguf *g, const char *key, float *out, bool *present, struct err *e);
int gguf_get_bool(const struct gguf *g, const char *key, bool *out, bool *present, struct err *e);
int gguf_need_string(const struct gguf *g, const char *key, struct str *out, struct err *e);
int gguf_get_string(const struct gguf *g, const char *key, struct str *out, bool *present,
                    struct err *e);

#endif
