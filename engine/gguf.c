#include "engine/gguf.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Bounds that no real model comes near; they keep a lying header from costing memory or time.
#define MAX_KEYS 65536
#define MAX_TENSORS 65536
#define MAX_STRINGS (1u << 24) // in one array
#define MAX_KEY_BYTES 65535
#define MAX_TENSOR_NAME_BYTES 255

#define HEADER_BYTES 24     // magic, version, two counts
#define MIN_KEY_BYTES 8     // the length of its name
#define MIN_TENSOR_BYTES 24 // lengths, type and offset

// Where the parser stands, and what it is reading, for messages.
struct reader {
    struct gguf *g;
    struct arena *a;
    struct err *e;
    const uint8_t *p;
    size_t bytes, at;
    char what[400];
};

static const uint8_t value_bytes[] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

static const char *const value_names[] = {
    [GGUF_U8] = "u8",         [GGUF_I8] = "i8",       [GGUF_U16] = "u16", [GGUF_I16] = "i16",
    [GGUF_U32] = "u32",       [GGUF_I32] = "i32",     [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
    [GGUF_STRING] = "string", [GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
    [GGUF_F64] = "f64",
};
#define VALUE_TYPES (sizeof value_names / sizeof *value_names)

static uint64_t load(const uint8_t *p, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | p[i];
    return value;
}

// The next n bytes, or an error that says what needed them.
static int take(struct reader *r, uint64_t n, const uint8_t **out) {
    size_t left = r->bytes - r->at;
    if (n > left)
        FAIL(r->e, ERR_MODEL,
             "%s: the file is cut off or damaged: %s needs %" PRIu64
             " bytes at offset %zu, but %zu are left of the file's %zu; fetch the file again",
             r->g->path, r->what, n, r->at, left, r->bytes);
    *out = r->p + r->at;
    r->at += (size_t)n;
    return 0;
}

static int take_number(struct reader *r, size_t bytes, uint64_t *out) {
    const uint8_t *p;
    TRY(take(r, bytes, &p));
    *out = load(p, bytes);
    return 0;
}

static int take_string(struct reader *r, struct str *out) {
    uint64_t n;
    const uint8_t *p;
    TRY(take_number(r, 8, &n));
    TRY(take(r, n, &p));
    *out = (struct str){(const char *)p, (size_t)n};
    return 0;
}

// Names stand in messages and on terminals, so they are printable ASCII, as the format asks.
static int take_name(struct reader *r, size_t limit, struct str *out) {
    size_t start = r->at;
    uint64_t n;
    const uint8_t *p;
    TRY(take_number(r, 8, &n));
    if (n == 0 || (n > limit && n <= r->bytes - r->at))
        FAIL(r->e, ERR_MODEL,
             "%s: %s at offset %zu has a name of %" PRIu64 " bytes; 1 to %zu are allowed",
             r->g->path, r->what, start, n, limit);
    TRY(take(r, n, &p));
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0x21 || p[i] > 0x7e)
            FAIL(r->e, ERR_MODEL,
                 "%s: the name of %s at offset %zu holds byte 0x%02x; names are printable ASCII",
                 r->g->path, r->what, start, p[i]);
    *out = (struct str){(const char *)p, (size_t)n};
    return 0;
}

static int take_type(struct reader *r, const char *of, enum gguf_value_type *out) {
    uint64_t type;
    TRY(take_number(r, 4, &type));
    if (type >= VALUE_TYPES)
        FAIL(r->e, ERR_MODEL, "%s: %s has %s type %" PRIu64 ", which GGUF does not know",
             r->g->path, r->what, of, type);
    *out = (enum gguf_value_type)type;
    return 0;
}

static int check_bools(struct reader *r, const uint8_t *p, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (p[i] > 1)
            FAIL(r->e, ERR_MODEL, "%s: %s holds the bool %d; only 0 and 1 are allowed", r->g->path,
                 r->what, p[i]);
    return 0;
}

static int read_scalar(struct reader *r, struct gguf_value *v) {
    const uint8_t *p;
    size_t bytes = value_bytes[v->type];
    TRY(take(r, bytes, &p));
    uint64_t raw = load(p, bytes);
    uint32_t raw32 = (uint32_t)raw;
    float single;
    switch (v->type) {
    case GGUF_I8: v->as.i = (int8_t)raw; break;
    case GGUF_I16: v->as.i = (int16_t)raw; break;
    case GGUF_I32: v->as.i = (int32_t)raw; break;
    case GGUF_I64: v->as.i = (int64_t)raw; break;
    case GGUF_F32:
        memcpy(&single, &raw32, sizeof single);
        v->as.f = single;
        break;
    case GGUF_F64: memcpy(&v->as.f, &raw, sizeof raw); break;
    case GGUF_BOOL: TRY(check_bools(r, p, 1)); // fall through
    default: v->as.u = raw; break;
    }
    return 0;
}

// Walks the strings once to see that they are all there, and only then allocates.
static int read_strings(struct reader *r, struct gguf_value *v) {
    size_t start = r->at;
    struct str s;
    if (v->count > MAX_STRINGS)
        FAIL(r->e, ERR_MODEL, "%s: %s has %" PRIu64 " strings; no more than %u are accepted",
             r->g->path, r->what, v->count, MAX_STRINGS);
    for (uint64_t i = 0; i < v->count; i++) {
        size_t at = r->at;
        if (take_string(r, &s) == 0) continue;
        r->at = at; // once more, for a message that names the string
        size_t used = strlen(r->what);
        snprintf(r->what + used, sizeof r->what - used, ", string %" PRIu64 " of %" PRIu64, i,
                 v->count);
        return take_string(r, &s);
    }
    struct str *strings = arena_array(r->a, (size_t)v->count, sizeof *strings);
    r->at = start;
    for (uint64_t i = 0; i < v->count; i++) TRY(take_string(r, &strings[i]));
    v->strings = strings;
    return 0;
}

static int read_array(struct reader *r, struct gguf_value *v) {
    TRY(take_type(r, "element", &v->element));
    if (v->element == GGUF_ARRAY)
        FAIL(r->e, ERR_MODEL, "%s: %s is an array of arrays, which no supported model has",
             r->g->path, r->what);
    TRY(take_number(r, 8, &v->count));
    uint64_t each = v->element == GGUF_STRING ? 8 : value_bytes[v->element];
    size_t left = r->bytes - r->at;
    if (v->count > left / each)
        FAIL(r->e, ERR_MODEL,
             "%s: the file is cut off or damaged: %s claims %" PRIu64
             " elements of at least %" PRIu64
             " bytes at offset %zu, but %zu bytes are left of the file's %zu; fetch the file again",
             r->g->path, r->what, v->count, each, r->at, left, r->bytes);
    v->data = r->p + r->at;
    if (v->element == GGUF_STRING) return read_strings(r, v);
    TRY(take(r, v->count * each, &v->data));
    return v->element == GGUF_BOOL ? check_bools(r, v->data, v->count) : 0;
}

static int read_key(struct reader *r, size_t index, struct gguf_value *v) {
    snprintf(r->what, sizeof r->what, "key number %zu", index);
    TRY(take_name(r, MAX_KEY_BYTES, &v->key));
    snprintf(r->what, sizeof r->what, "key %.200s", arena_memdup(r->a, v->key.p, v->key.n));
    size_t start = r->at;
    TRY(take_type(r, "value", &v->type));
    if (v->type == GGUF_ARRAY)
        TRY(read_array(r, v));
    else if (v->type == GGUF_STRING)
        TRY(take_string(r, &v->as.s));
    else
        TRY(read_scalar(r, v));
    v->raw = (struct str){(const char *)r->p + start, r->at - start};
    return 0;
}

// "576 x 1536"
static const char *shape_text(const struct gguf_tensor *t, char out[96]) {
    int n = 0;
    for (uint32_t i = 0; i < t->dims; i++)
        n += snprintf(out + n, 96 - (size_t)n, "%s%" PRIu64, i ? " x " : "", t->dim[i]);
    return out;
}

static int size_tensor(struct reader *r, struct gguf_tensor *t, uint64_t type) {
    char shape[96], scratch[24];
    shape_text(t, shape);
    const struct tensor_format *format = tensor_format_of((uint32_t)type);
    if (!format)
        FAIL(
            r->e, ERR_MODEL,
            "%s: %s has type %s, which is not supported; supported are F32 F16 BF16 Q8_0 Q4_0 Q4_1 "
            "Q5_0 Q5_1 Q4_K Q5_K Q6_K",
            r->g->path, r->what, tensor_type_name((uint32_t)type, scratch));
    t->type = format->type;
    t->elements = 1;
    for (uint32_t i = 0; i < t->dims; i++) {
        if (t->dim[i] == 0)
            FAIL(r->e, ERR_MODEL, "%s: %s has a dimension of 0 (%s)", r->g->path, r->what, shape);
        if (size_mul(t->elements, t->dim[i], &t->elements) != 0)
            FAIL(r->e, ERR_MODEL, "%s: %s has more elements than 64 bits can count (%s)",
                 r->g->path, r->what, shape);
    }
    if (t->dim[0] % format->block != 0)
        FAIL(r->e, ERR_MODEL,
             "%s: %s has rows of %" PRIu64 " elements, but %s comes in blocks of %u", r->g->path,
             r->what, t->dim[0], format->name, format->block);
    if (size_mul(t->elements / format->block, format->block_bytes, &t->bytes) != 0)
        FAIL(r->e, ERR_MODEL, "%s: %s has more bytes than 64 bits can count (%s %s)", r->g->path,
             r->what, format->name, shape);
    return 0;
}

// Leaves the offset in *offset: where the data begins is known after the last record.
static int read_tensor(struct reader *r, size_t index, struct gguf_tensor *t, uint64_t *offset) {
    snprintf(r->what, sizeof r->what, "tensor number %zu", index);
    TRY(take_name(r, MAX_TENSOR_NAME_BYTES, &t->name));
    snprintf(r->what, sizeof r->what, "tensor " STR_FMT, STR_ARG(t->name));
    uint64_t dims, type;
    TRY(take_number(r, 4, &dims));
    if (dims < 1 || dims > 4)
        FAIL(r->e, ERR_MODEL, "%s: %s has %" PRIu64 " dimensions; 1 to 4 are allowed", r->g->path,
             r->what, dims);
    t->dims = (uint32_t)dims;
    for (uint32_t i = 0; i < 4; i++) t->dim[i] = 1;
    for (uint32_t i = 0; i < t->dims; i++) TRY(take_number(r, 8, &t->dim[i]));
    TRY(take_number(r, 4, &type));
    TRY(take_number(r, 8, offset));
    TRY(size_tensor(r, t, type));
    if (*offset % r->g->alignment != 0)
        FAIL(r->e, ERR_MODEL,
             "%s: %s begins at offset %" PRIu64 " of the data, which is not a multiple of the "
             "alignment %" PRIu64,
             r->g->path, r->what, *offset, r->g->alignment);
    return 0;
}

// Points the tensors at their data; what does not lie wholly inside the file is refused.
static int place_tensors(struct reader *r, const uint64_t *offsets) {
    struct gguf *g = r->g;
    uint64_t data = 0, needed = 0;
    const struct gguf_tensor *last = NULL;
    if (size_add(r->at, g->alignment - 1, &data) != 0) data = UINT64_MAX;
    data -= data % g->alignment;
    for (size_t i = 0; i < g->tensor_count; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        uint64_t begin, end;
        if (size_add(data, offsets[i], &begin) != 0 || size_add(begin, t->bytes, &end) != 0)
            FAIL(r->e, ERR_MODEL,
                 "%s: tensor " STR_FMT " at offset %" PRIu64 " with %" PRIu64
                 " bytes ends beyond what 64 bits can count",
                 g->path, STR_ARG(t->name), offsets[i], t->bytes);
        if (end > needed) needed = end, last = t;
        if (end <= r->bytes) t->data = r->p + begin;
    }
    if (needed > r->bytes) {
        char shape[96];
        FAIL(r->e, ERR_MODEL,
             "%s: the file is cut off: tensor " STR_FMT " (%s %s, %" PRIu64
             " bytes) ends at byte %" PRIu64 ", but the file has %zu bytes; fetch the file again",
             g->path, STR_ARG(last->name), tensor_format_of(last->type)->name,
             shape_text(last, shape), last->bytes, needed, r->bytes);
    }
    return 0;
}

static int compare_str(struct str a, struct str b) {
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int compare_keys(const void *a, const void *b) {
    return compare_str((*(const struct gguf_value *const *)a)->key,
                       (*(const struct gguf_value *const *)b)->key);
}

static int compare_names(const void *a, const void *b) {
    return compare_str((*(const struct gguf_tensor *const *)a)->name,
                       (*(const struct gguf_tensor *const *)b)->name);
}

static int compare_places(const void *a, const void *b) {
    const uint8_t *p = (*(const struct gguf_tensor *const *)a)->data;
    const uint8_t *q = (*(const struct gguf_tensor *const *)b)->data;
    return (p > q) - (p < q);
}

// Binary search by name in either index, which are sorted by these comparisons.
const struct gguf_value *gguf_find(const struct gguf *g, const char *key) {
    struct gguf_value wanted = {.key = str_from(key)};
    const struct gguf_value *w = &wanted, **found;
    found = bsearch(&w, g->by_key, g->value_count, sizeof *g->by_key, compare_keys);
    return found ? *found : NULL;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name) {
    struct gguf_tensor wanted = {.name = str_from(name)};
    const struct gguf_tensor *w = &wanted, **found;
    found = bsearch(&w, g->by_name, g->tensor_count, sizeof *g->by_name, compare_names);
    return found ? *found : NULL;
}

static int index_keys(struct reader *r) {
    struct gguf *g = r->g;
    size_t n = g->value_count;
    g->by_key = arena_array(r->a, n, sizeof *g->by_key);
    for (size_t i = 0; i < n; i++) g->by_key[i] = &g->values[i];
    qsort(g->by_key, n, sizeof *g->by_key, compare_keys);
    for (size_t i = 1; i < n; i++)
        if (str_equal(g->by_key[i - 1]->key, g->by_key[i]->key))
            FAIL(r->e, ERR_MODEL, "%s: the key %.200s is in the file twice", g->path,
                 str_to_c(r->a, g->by_key[i]->key));
    return 0;
}

static int index_tensors(struct reader *r) {
    struct gguf *g = r->g;
    size_t n = g->tensor_count;
    g->by_name = arena_array(r->a, n, sizeof *g->by_name);
    for (size_t i = 0; i < n; i++) g->by_name[i] = &g->tensors[i];
    qsort(g->by_name, n, sizeof *g->by_name, compare_places);
    for (size_t i = 1; i < n; i++) {
        const struct gguf_tensor *a = g->by_name[i - 1], *b = g->by_name[i];
        if (a->data + a->bytes > b->data)
            FAIL(r->e, ERR_MODEL, "%s: the data of tensors " STR_FMT " and " STR_FMT " overlap",
                 g->path, STR_ARG(a->name), STR_ARG(b->name));
    }
    qsort(g->by_name, n, sizeof *g->by_name, compare_names);
    for (size_t i = 1; i < n; i++)
        if (str_equal(g->by_name[i - 1]->name, g->by_name[i]->name))
            FAIL(r->e, ERR_MODEL, "%s: the tensor " STR_FMT " is in the file twice", g->path,
                 STR_ARG(g->by_name[i]->name));
    return 0;
}

static bool starts_like(const struct file_map *m, size_t at, const char *lower) {
    for (size_t i = 0; lower[i]; i++) {
        if (at + i >= m->bytes) return false;
        uint8_t c = m->p[at + i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != (uint8_t)lower[i]) return false;
    }
    return true;
}

// What a file without the magic really is: people meet these daily.
static int refuse_foreign(const char *path, const struct file_map *m, struct err *e) {
    size_t text = starts_like(m, 0, "\xef\xbb\xbf") ? 3 : 0;
    while (text < m->bytes && text < 1024 && strchr(" \t\r\n", m->p[text]) && m->p[text]) text++;
    if (starts_like(m, 0, "version https://git-lfs"))
        FAIL(e, ERR_MODEL,
             "%s: this is a Git LFS pointer of %zu bytes, not the model itself; run `git lfs pull` "
             "or "
             "fetch the file from its host",
             path, m->bytes);
    if (starts_like(m, text, "<!doctype") || starts_like(m, text, "<html") ||
        starts_like(m, text, "<?xml"))
        FAIL(
            e, ERR_MODEL,
            "%s: this is a web page (HTML, %zu bytes), not a model; the download was answered by a "
            "login or error page",
            path, m->bytes);
    if (starts_like(m, 0, "fugg"))
        FAIL(e, ERR_MODEL, "%s: big-endian GGUF is not supported; convert it to little-endian",
             path);
    if (starts_like(m, 0, "lmgg") || starts_like(m, 0, "fmgg") || starts_like(m, 0, "tjgg"))
        FAIL(e, ERR_MODEL, "%s: this is a GGML file from before GGUF; convert the model to GGUF",
             path);
    if (starts_like(m, 0, "pk\x03\x04"))
        FAIL(e, ERR_MODEL, "%s: this is a ZIP archive (or a PyTorch checkpoint), not a GGUF file",
             path);
    if (m->bytes > 8 && m->p[8] == '{')
        FAIL(e, ERR_MODEL, "%s: this is a safetensors file, not a GGUF file", path);
    FAIL(e, ERR_MODEL,
         "%s: not a GGUF file: it begins with bytes %02x %02x %02x %02x instead of 47 47 55 46 "
         "(\"GGUF\")",
         path, m->p[0], m->p[1], m->p[2], m->p[3]);
}

static int check_header(const char *path, const struct file_map *m, struct err *e) {
    if (m->bytes == 0) FAIL(e, ERR_MODEL, "%s: the file is empty (0 bytes)", path);
    if (memcmp(m->p, "GGUF", m->bytes < 4 ? m->bytes : 4) != 0) {
        if (m->bytes < 4)
            FAIL(e, ERR_MODEL, "%s: not a GGUF file: it has only %zu bytes", path, m->bytes);
        return refuse_foreign(path, m, e);
    }
    if (m->bytes < HEADER_BYTES)
        FAIL(e, ERR_MODEL,
             "%s: the file is cut off: the header needs %d bytes, but the file has %zu; fetch the "
             "file again",
             path, HEADER_BYTES, m->bytes);
    uint32_t version = (uint32_t)load(m->p + 4, 4);
    if (version != 0 && (version & 0xffff) == 0)
        FAIL(e, ERR_MODEL,
             "%s: the version field is byte-swapped (0x%08x): a big-endian GGUF file, which is not "
             "supported; convert it to little-endian",
             path, version);
    if (version != 2 && version != 3)
        FAIL(e, ERR_MODEL, "%s: GGUF version %u is not supported (2 and 3 are)%s", path, version,
             version == 1 ? "; convert the model again" : "");
    return 0;
}

static int read_counts(struct reader *r) {
    uint64_t tensors = load(r->p + 8, 8), keys = load(r->p + 16, 8);
    r->at = HEADER_BYTES;
    size_t left = r->bytes - r->at;
    if (keys > left / MIN_KEY_BYTES || tensors > left / MIN_TENSOR_BYTES)
        FAIL(r->e, ERR_MODEL,
             "%s: the file is cut off or damaged: its header claims %" PRIu64
             " keys of at least %d "
             "bytes and %" PRIu64 " tensors of at least %d bytes, but %zu are left of the "
             "file's %zu; fetch the file again",
             r->g->path, keys, MIN_KEY_BYTES, tensors, MIN_TENSOR_BYTES, left, r->bytes);
    if (keys > MAX_KEYS || tensors > MAX_TENSORS)
        FAIL(r->e, ERR_MODEL,
             "%s: the header claims %" PRIu64 " keys and %" PRIu64
             " tensors; no more than %d and %d are accepted",
             r->g->path, keys, tensors, MAX_KEYS, MAX_TENSORS);
    r->g->value_count = (size_t)keys;
    r->g->tensor_count = (size_t)tensors;
    return 0;
}

// general.alignment is a power of two and a multiple of 8; 32 when absent.
static int read_alignment(struct reader *r) {
    uint32_t alignment = 32;
    bool present;
    TRY(gguf_get_u32(r->g, "general.alignment", &alignment, &present, r->e));
    if (alignment < 8 || (alignment & (alignment - 1)) != 0)
        FAIL(r->e, ERR_MODEL,
             "%s: general.alignment is %u; it must be a power of two and at least 8", r->g->path,
             alignment);
    r->g->alignment = alignment;
    return 0;
}

static int parse(struct reader *r) {
    struct gguf *g = r->g;
    TRY(read_counts(r));
    g->values = arena_array(r->a, g->value_count, sizeof *g->values);
    for (size_t i = 0; i < g->value_count; i++) TRY(read_key(r, i, &g->values[i]));
    TRY(index_keys(r));
    TRY(read_alignment(r));
    g->tensors = arena_array(r->a, g->tensor_count, sizeof *g->tensors);
    uint64_t *offsets = arena_array(r->a, g->tensor_count, sizeof *offsets);
    for (size_t i = 0; i < g->tensor_count; i++)
        TRY(read_tensor(r, i, &g->tensors[i], &offsets[i]));
    TRY(place_tensors(r, offsets));
    return index_tensors(r);
}

int gguf_open(const char *path, struct arena *a, struct gguf **out, struct err *e) {
    struct gguf *g = arena_alloc(a, sizeof *g);
    g->path = arena_strdup(a, path);
    TRY(file_map_open(path, &g->map, e));
    struct reader r = {.g = g, .a = a, .e = e, .p = g->map.p, .bytes = g->map.bytes};
    if (check_header(g->path, &g->map, e) != 0) goto failed;
    g->version = (uint32_t)load(g->map.p + 4, 4);
    if (parse(&r) != 0) goto failed;
    *out = g;
    return 0;
failed:
    file_map_close(&g->map);
    return -1;
}

void gguf_close(struct gguf *g) {
    if (g) file_map_close(&g->map);
}

static int wrong_type(const struct gguf *g, const struct gguf_value *v, const char *wanted,
                      struct err *e) {
    FAIL(e, ERR_MODEL, "%s: the key " STR_FMT " is of type %s, but %s is needed", g->path,
         STR_ARG(v->key), value_names[v->type], wanted);
}

static int missing(const struct gguf *g, const char *key, const char *wanted, struct err *e) {
    FAIL(e, ERR_MODEL, "%s: the required key %s (%s) is missing", g->path, key, wanted);
}

// Writers differ in the width of small numbers, so any integer type serves if the value fits.
int gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out, bool *present,
                 struct err *e) {
    const struct gguf_value *v = gguf_find(g, key);
    *present = v != NULL;
    if (!v) return 0;
    uint64_t value = 0;
    switch (v->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64: value = v->as.u; break;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        if (v->as.i < 0)
            FAIL(e, ERR_MODEL, "%s: the key %s is %" PRId64 ", but may not be negative", g->path,
                 key, v->as.i);
        value = (uint64_t)v->as.i;
        break;
    default: return wrong_type(g, v, "an integer", e);
    }
    if (value > UINT32_MAX)
        FAIL(e, ERR_MODEL, "%s: the key %s is %" PRIu64 ", more than 32 bits hold", g->path, key,
             value);
    *out = (uint32_t)value;
    return 0;
}

int gguf_need_u32(const struct gguf *g, const char *key, uint32_t *out, struct err *e) {
    bool present;
    TRY(gguf_get_u32(g, key, out, &present, e));
    return present ? 0 : missing(g, key, "an integer", e);
}

int gguf_get_f32(const struct gguf *g, const char *key, float *out, bool *present, struct err *e) {
    const struct gguf_value *v = gguf_find(g, key);
    *present = v != NULL;
    if (!v) return 0;
    if (v->type != GGUF_F32 && v->type != GGUF_F64)
        return wrong_type(g, v, "a floating-point number", e);
    if (!(v->as.f >= -FLT_MAX && v->as.f <= FLT_MAX))
        FAIL(e, ERR_MODEL, "%s: the key %s is %g, not a finite single-precision number", g->path,
             key, v->as.f);
    *out = (float)v->as.f;
    return 0;
}

int gguf_need_f32(const struct gguf *g, const char *key, float *out, struct err *e) {
    bool present;
    TRY(gguf_get_f32(g, key, out, &present, e));
    return present ? 0 : missing(g, key, "a floating-point number", e);
}

int gguf_get_bool(const struct gguf *g, const char *key, bool *out, bool *present, struct err *e) {
    const struct gguf_value *v = gguf_find(g, key);
    *present = v != NULL;
    if (!v) return 0;
    if (v->type != GGUF_BOOL) return wrong_type(g, v, "a bool", e);
    *out = v->as.u != 0;
    return 0;
}

int gguf_get_string(const struct gguf *g, const char *key, struct str *out, bool *present,
                    struct err *e) {
    const struct gguf_value *v = gguf_find(g, key);
    *present = v != NULL;
    if (!v) return 0;
    if (v->type != GGUF_STRING) return wrong_type(g, v, "a string", e);
    *out = v->as.s;
    return 0;
}

int gguf_need_string(const struct gguf *g, const char *key, struct str *out, struct err *e) {
    bool present;
    TRY(gguf_get_string(g, key, out, &present, e));
    return present ? 0 : missing(g, key, "a string", e);
}
