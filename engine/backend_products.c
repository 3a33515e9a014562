#include "engine/backend_products.h"

#include "engine/backend_products_file.h"
#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMULATED "emulated" // where speed means nothing, and trying takes long

static const uint32_t ROWS[] = {CUDA_PRODUCT_ROWS};

struct backend_products {
    const struct cuda_ops *table;
    struct cuda_device *device;
    enum cuda_products which;
    uint64_t library; // version of cuBLASLt; 0: it is not used
    char note[256];   // why not
    char *cache;      // folder, or NULL
    json_t *key;      // for what choices hold
    struct product_choices chosen;
};

static const char *const NAMES[] = {[CUDA_PRODUCTS_OWN] = "own",
                                    [CUDA_PRODUCTS_ADMITTED] = "admitted",
                                    [CUDA_PRODUCTS_ANY] = "any"};
#define NAME_COUNT (sizeof NAMES / sizeof *NAMES)

static int choose_which(const struct backend_products_setup *s, enum cuda_products *out,
                        struct err *e) {
    const char *name = s->which != NULL ? s->which : "auto";
    if (strcmp(name, "auto") == 0) {
        bool emulated = strcmp(s->table->name, EMULATED) == 0;
        *out = emulated ? CUDA_PRODUCTS_OWN : CUDA_PRODUCTS_ADMITTED;
        return 0;
    }
    for (size_t i = 0; i < NAME_COUNT; i++) {
        *out = (enum cuda_products)i;
        if (strcmp(name, NAMES[i]) == 0) return 0;
    }
    FAIL(e, ERR_CONFIG, "products by '%s' are not known: it is auto, own, admitted or any", name);
}

static json_t *key_of(const struct backend_products_setup *s, uint64_t library) {
    json_t *o = json_object();
    json_put(o, "device", json_text_c(s->facts->name));
    json_put(o, "capability", json_integer(s->facts->capability));
    json_put(o, "driver", json_text_c(s->facts->driver_name));
    json_put(o, "driver_cuda", json_integer(s->facts->driver));
    json_put(o, "cublaslt", json_integer((json_int_t)library));
    json_put(o, "kernels", json_text_c(s->table->name));
    json_put(o, "program", json_text_c(LACUNA_VERSION));
    return o;
}

static void *need(void *p) {
    if (p == NULL) mem_exhausted("choice of kernels", sizeof(struct backend_products));
    return p;
}

int backend_products_open(const struct backend_products_setup *s, struct backend_products **out,
                          struct err *e) {
    enum cuda_products which;
    TRY(choose_which(s, &which, e));
    struct backend_products *p = need(calloc(1, sizeof *p));
    p->table = s->table;
    p->device = s->device;
    p->which = which;
    if (which != CUDA_PRODUCTS_OWN &&
        s->table->products(s->device, which, &p->library, p->note) != 0) {
        p->which = CUDA_PRODUCTS_OWN;
        log_info("the own kernels serve all matrix products: %s", p->note);
    }
    if (s->cache != NULL) p->cache = need(strdup(s->cache));
    p->key = key_of(s, p->library);
    *out = p;
    return 0;
}

void backend_products_close(struct backend_products *p) {
    if (p == NULL) return;
    product_choices_free(&p->chosen);
    json_decref(p->key);
    free(p->cache);
    free(p);
}

// True: it was made anew.
static bool choose(struct backend_products *p, const struct cuda_choice *known,
                   const struct backend_shape *shape, uint32_t rows) {
    struct cuda_choice c = {.rows = rows, .N = shape->N, .K = shape->K};
    bool holds = known != NULL && (!known->admitted || p->table->recall(p->device, known));
    if (known != NULL && !holds)
        log_warn("an algorithm of cuBLASLt that was admitted for %u rows and %u x %u does not give "
                 "the own kernels' bits now; it is refused",
                 rows, shape->N, shape->K);
    if (holds)
        c = *known;
    else
        p->table->choose(p->device, &c);
    product_choices_put(&p->chosen, &c);
    return !holds;
}

static void read_cache(const char *path, const json_t *key, struct product_choices *known) {
    struct err e = {0};
    if (path == NULL || products_file_read(path, key, known, &e) == 0) return;
    log_warn("%s; kernels for matrix products are chosen anew", e.text);
}

static void write_cache(const char *folder, const char *path, const json_t *key,
                        const struct product_choices *known) {
    struct err e = {0};
    if (file_make_directory(folder, &e) == 0 && products_file_write(path, key, known, &e) == 0)
        return;
    log_warn("the choice of kernels is not kept: %s", e.text);
}

void backend_products_expect(struct backend_products *p, const struct backend_shape *shapes,
                             int count, uint32_t rows) {
    if (p->which != CUDA_PRODUCTS_ADMITTED) return;
    struct arena *a = arena_create("choices of kernels");
    const char *path = p->cache != NULL ? products_file_path(p->cache, p->key, a) : NULL;
    struct product_choices known = {0};
    bool changed = false;
    read_cache(path, p->key, &known);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof ROWS / sizeof *ROWS; j++) {
            const struct backend_shape *s = &shapes[i];
            if (ROWS[j] > rows || product_choices_find(&p->chosen, ROWS[j], s->N, s->K) != NULL)
                continue;
            changed |= choose(p, product_choices_find(&known, ROWS[j], s->N, s->K), s, ROWS[j]);
        }
    // What could not be tried for want of memory is tried again by the next run.
    for (size_t i = 0; i < p->chosen.count; i++)
        if (p->chosen.list[i].offered > 0) product_choices_put(&known, &p->chosen.list[i]);
    if (path != NULL && changed) write_cache(p->cache, path, p->key, &known);
    product_choices_free(&known);
    arena_destroy(a);
}

json_t *backend_products_json(const struct backend_products *p) {
    json_t *o = json_object(), *choices = json_array();
    json_put(o, "by", json_text_c(NAMES[p->which]));
    if (p->library != 0) json_put(o, "cublaslt", json_integer((json_int_t)p->library));
    if (p->note[0] != '\0') json_put(o, "note", json_text_c(p->note));
    for (size_t i = 0; i < p->chosen.count; i++)
        json_array_append_new(choices, product_choice_json(&p->chosen.list[i], false));
    json_put(o, "choices", choices);
    return o;
}
