// Choices of kernels in a file: {"key": ..., "choices": [...], "sha256": of the two}. The key says
// for what they hold; the hash refuses what was damaged before its bytes reach a library.
#ifndef LACUNA_ENGINE_BACKEND_PRODUCTS_FILE_H
#define LACUNA_ENGINE_BACKEND_PRODUCTS_FILE_H

#include "engine/base/json.h"
#include "kernels/cuda/ops.h"

struct product_choices {
    struct cuda_choice *list;
    size_t count;
};
void product_choices_put(struct product_choices *c,
                         const struct cuda_choice *choice); // or replaces
const struct cuda_choice *product_choices_find(const struct product_choices *c, uint32_t rows,
                                               uint32_t N, uint32_t K);
void product_choices_free(struct product_choices *c);

// With the `whole` algorithm, as the file needs it, or what it is called alone.
json_t *product_choice_json(const struct cuda_choice *c, bool whole);

// The file's path in the folder, by the key; in the arena.
char *products_file_path(const char *folder, const json_t *key, struct arena *a);
// No file gives no choices; one that is not as it was written is ERR_INPUT.
int products_file_read(const char *path, const json_t *key, struct product_choices *out,
                       struct err *e);
int products_file_write(const char *path, const json_t *key, const struct product_choices *c,
                        struct err *e);

#endif
