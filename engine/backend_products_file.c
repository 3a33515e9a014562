#include "engine/backend_products_file.h"

#include "engine/base/file.h"
#include "engine/base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 20)
#define WORDS 8
#define WORD_DIGITS 16

_Static_assert(sizeof((struct cuda_algorithm *)0)->opaque == WORDS * sizeof(uint64_t), "words");

// ---- a list of choices -------------------------------------------------------------------------

static struct cuda_choice *find(const struct product_choices *c, uint32_t rows, uint32_t N,
                                uint32_t K) {
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].rows == rows && c->list[i].N == N && c->list[i].K == K) return &c->list[i];
    return NULL;
}

const struct cuda_choice *product_choices_find(const struct product_choices *c, uint32_t rows,
                                               uint32_t N, uint32_t K) {
    return find(c, rows, N, K);
}

void product_choices_put(struct product_choices *c, const struct cuda_choice *choice) {
    struct cuda_choice *old = find(c, choice->rows, choice->N, choice->K);
    if (old != NULL) {
        *old = *choice;
        return;
    }
    c->list = realloc(c->list, (c->count + 1) * sizeof *c->list);
    if (c->list == NULL) mem_exhausted("choices of kernels", (c->count + 1) * sizeof *c->list);
    c->list[c->count++] = *choice;
}

void product_choices_free(struct product_choices *c) {
    free(c->list);
    *c = (struct product_choices){0};
}

static const char *const PROBES[] = {[CUDA_PROBE_TINY] = "tiny",
                                     [CUDA_PROBE_COMPANY] = "company",
                                     [CUDA_PROBE_RAMP] = "ramp",
                                     [CUDA_PROBE_FLAT] = "flat"};
_Static_assert(sizeof PROBES / sizeof *PROBES == CUDA_PROBES, "probes");

// ---- JSON --------------------------------------------------------------------------------------

static json_t *nanoseconds(float ms) {
    return json_integer((json_int_t)llrintf(1e6f * ms));
}

static json_t *algorithm_json(const struct cuda_algorithm *a, bool whole) {
    json_t *o = json_object();
    json_put(o, "id", json_integer(a->id));
    json_put(o, "tile", json_integer(a->tile));
    json_put(o, "stages", json_integer(a->stages));
    if (!whole) return o;
    char text[WORDS * WORD_DIGITS + 1];
    for (int i = 0; i < WORDS; i++)
        snprintf(text + (size_t)i * WORD_DIGITS, WORD_DIGITS + 1, "%016" PRIx64, a->opaque[i]);
    json_put(o, "words", json_text_c(text));
    return o;
}

static json_t *refused_json(const struct cuda_choice *c) {
    json_t *o = json_object();
    for (int i = 0; i < CUDA_PROBES; i++) json_put(o, PROBES[i], json_integer(c->refused[i]));
    return o;
}

json_t *product_choice_json(const struct cuda_choice *c, bool whole) {
    json_t *o = json_object();
    json_put(o, "rows", json_integer(c->rows));
    json_put(o, "N", json_integer(c->N));
    json_put(o, "K", json_integer(c->K));
    json_put(o, "by", json_text_c(c->admitted ? "cuBLASLt" : "own kernel"));
    if (c->admitted) json_put(o, "algorithm", algorithm_json(&c->algorithm, whole));
    json_put(o, "offered", json_integer(c->offered));
    json_put(o, "equal", json_integer(c->equal));
    json_put(o, "refused", refused_json(c));
    json_put(o, "failed", json_integer(c->failed));
    if (c->own_ms > 0) json_put(o, "own_ns", nanoseconds(c->own_ms));
    if (c->ms > 0) json_put(o, "ns", nanoseconds(c->ms));
    return o;
}

static int read_words(const char *text, uint64_t words[WORDS]) {
    if (strlen(text) != WORDS * WORD_DIGITS ||
        strspn(text, "0123456789abcdef") != WORDS * WORD_DIGITS)
        return -1;
    for (int i = 0; i < WORDS; i++) {
        char digits[WORD_DIGITS + 1] = "";
        memcpy(digits, text + (size_t)i * WORD_DIGITS, WORD_DIGITS);
        words[i] = strtoull(digits, NULL, 16);
    }
    return 0;
}

static int read_algorithm(const json_t *o, const char *where, struct cuda_algorithm *out,
                          struct err *e) {
    int64_t id, tile, stages;
    const char *words;
    TRY(json_need_integer(o, "id", where, &id, e));
    TRY(json_need_integer(o, "tile", where, &tile, e));
    TRY(json_need_integer(o, "stages", where, &stages, e));
    TRY(json_need_string(o, "words", where, &words, e));
    out->id = (int32_t)id;
    out->tile = (int32_t)tile;
    out->stages = (int32_t)stages;
    if (read_words(words, out->opaque) != 0) FAIL(e, ERR_INPUT, "%s: words of an algorithm", where);
    return 0;
}

static float milliseconds(const json_t *o, const char *key) {
    return 1e-6f * (float)json_integer_value(json_object_get(o, key));
}

static int read_choice(const json_t *o, const char *where, struct cuda_choice *out, struct err *e) {
    int64_t rows, N, K, offered, equal, failed, refused;
    json_t *probes;
    TRY(json_need_integer(o, "rows", where, &rows, e));
    TRY(json_need_integer(o, "N", where, &N, e));
    TRY(json_need_integer(o, "K", where, &K, e));
    TRY(json_need_integer(o, "offered", where, &offered, e));
    TRY(json_need_integer(o, "equal", where, &equal, e));
    TRY(json_need_integer(o, "failed", where, &failed, e));
    TRY(json_need_object(o, "refused", where, &probes, e));
    *out = (struct cuda_choice){.rows = (uint32_t)rows,
                                .N = (uint32_t)N,
                                .K = (uint32_t)K,
                                .offered = (int)offered,
                                .equal = (int)equal,
                                .failed = (int)failed,
                                .own_ms = milliseconds(o, "own_ns"),
                                .ms = milliseconds(o, "ns")};
    for (int i = 0; i < CUDA_PROBES; i++) {
        TRY(json_need_integer(probes, PROBES[i], where, &refused, e));
        out->refused[i] = (int)refused;
    }
    const json_t *algorithm = json_object_get(o, "algorithm");
    out->admitted = algorithm != NULL;
    return algorithm != NULL ? read_algorithm(algorithm, where, &out->algorithm, e) : 0;
}

// ---- the file ----------------------------------------------------------------------------------

static void hash_json(const json_t *a, const json_t *b, char hex[HASH_HEX_SIZE]) {
    struct buf text = {0};
    json_compact(a, &text);
    if (b != NULL) json_compact(b, &text);
    hash_bytes(text.p, text.n, hex);
    buf_free(&text);
}

char *products_file_path(const char *folder, const json_t *key, struct arena *a) {
    char hex[HASH_HEX_SIZE];
    hash_json(key, NULL, hex);
    return path_join(a, folder, arena_printf(a, "products-%.16s.json", hex));
}

static int read_whole(const json_t *o, const char *path, const json_t *key,
                      struct product_choices *out, struct err *e) {
    json_t *of, *choices;
    const char *told;
    char hex[HASH_HEX_SIZE];
    TRY(json_need_object(o, "key", path, &of, e));
    TRY(json_need_array(o, "choices", path, &choices, e));
    TRY(json_need_string(o, "sha256", path, &told, e));
    hash_json(of, choices, hex);
    if (strcmp(told, hex) != 0) FAIL(e, ERR_INPUT, "%s: does not have the hash that it says", path);
    if (!json_equal(of, key)) FAIL(e, ERR_INPUT, "%s: is of another device or library", path);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        struct cuda_choice c;
        TRY(read_choice(json_array_get(choices, i), path, &c, e));
        product_choices_put(out, &c);
    }
    return 0;
}

int products_file_read(const char *path, const json_t *key, struct product_choices *out,
                       struct err *e) {
    json_t *o;
    *out = (struct product_choices){0};
    if (!file_exists(path)) return 0;
    TRY(json_read_file(path, MOST_BYTES, &o, e));
    int result = read_whole(o, path, key, out, e);
    json_decref(o);
    if (result != 0) product_choices_free(out);
    return result;
}

int products_file_write(const char *path, const json_t *key, const struct product_choices *c,
                        struct err *e) {
    char hex[HASH_HEX_SIZE];
    struct buf text = {0};
    json_t *o = json_object(), *choices = json_array();
    for (size_t i = 0; i < c->count; i++)
        json_array_append_new(choices, product_choice_json(&c->list[i], true));
    hash_json(key, choices, hex);
    json_put(o, "key", json_deep_copy(key));
    json_put(o, "choices", choices);
    json_put(o, "sha256", json_text_c(hex));
    json_pretty(o, &text);
    int result = file_write_atomic(path, buf_str(&text), e);
    buf_free(&text);
    json_decref(o);
    return result;
}
