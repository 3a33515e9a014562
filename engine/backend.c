#include "engine/backend.h"

#include <string.h>

// The table of backends. A row without `open` is known but not in this build.
struct backend_row {
    const char *name;
    int (*open)(const struct backend_options *options, struct backend **out, struct err *e);
    const char *missing;
};

static const struct backend_row BACKENDS[] = {
    {"cuda", NULL,
     "this build has no CUDA plug-in (it needs the CUDA Toolkit >= 13.0 when the program is "
     "configured, and an NVIDIA GPU with its driver when it runs)"},
    {"cpu", backend_cpu_open, NULL},
};
#define BACKEND_COUNT (sizeof BACKENDS / sizeof BACKENDS[0])

static int open_auto(const struct backend_options *options, struct backend **out, struct err *e) {
    const char *note = "";
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const struct backend_row *row = &BACKENDS[i];
        if (row->open == NULL) {
            note = row->missing;
            continue;
        }
        TRY(row->open(options, out, e));
        (*out)->note = note;
        return 0;
    }
    FAIL(e, ERR_PROVIDER, "backend auto: no backend is usable: %s", note ? note : "");
}

int backend_open(const struct backend_options *options, struct backend **out, struct err *e) {
    const char *name = options->name != NULL ? options->name : "auto";
    if (strcmp(name, "auto") == 0) return open_auto(options, out, e);
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const struct backend_row *row = &BACKENDS[i];
        if (strcmp(name, row->name) != 0) continue;
        if (row->open == NULL)
            FAIL(e, ERR_PROVIDER, "backend %s: %s; use backend auto or cpu", name, row->missing);
        return row->open(options, out, e);
    }
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
