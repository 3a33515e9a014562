#include "engine/backend.h"

#include <stdio.h>
#include <string.h>

struct backend_row {
    const char *name;
    int (*open)(const struct backend_options *options, struct backend **out, struct err *e);
};

// In the order in which `auto` tries them.
static const struct backend_row BACKENDS[] = {
    {"cuda", backend_cuda_open},
    {"cpu", backend_cpu_open},
};
#define BACKEND_COUNT (sizeof BACKENDS / sizeof BACKENDS[0])

static int open_auto(const struct backend_options *options, struct backend **out, struct err *e) {
    struct err why = {0};
    for (size_t i = 0; i + 1 < BACKEND_COUNT; i++)
        if (BACKENDS[i].open(options, out, &why) == 0) return 0;
    TRY(BACKENDS[BACKEND_COUNT - 1].open(options, out, e));
    snprintf((*out)->note, sizeof(*out)->note, "%.*s", (int)sizeof(*out)->note - 1, why.text);
    return 0;
}

int backend_open(const struct backend_options *options, struct backend **out, struct err *e) {
    const char *name = options->name != NULL ? options->name : "auto";
    if (strcmp(name, "auto") == 0) return open_auto(options, out, e);
    for (size_t i = 0; i < BACKEND_COUNT; i++)
        if (strcmp(name, BACKENDS[i].name) == 0) return BACKENDS[i].open(options, out, e);
    FAIL(e, ERR_CONFIG, "backend '%s' is not known: it is auto, cpu or cuda", name);
}

const char *backend_storage_name(enum backend_storage storage) {
    static const char *const names[] = {[BACKEND_UNPACKED] = "unpacked",
                                        [BACKEND_STORED] = "stored",
                                        [BACKEND_BOTH] = "unpacked and stored",
                                        [BACKEND_ROWS] = "rows"};
    return names[storage];
}

uint32_t backend_row_stride(const struct backend *b, uint32_t n) {
    return (n + b->row_alignment - 1) / b->row_alignment * b->row_alignment;
}

void backend_close(struct backend *b) {
    if (b != NULL) b->ops->close(b);
}
