// libFuzzer: any bytes as a baseline file, under a true hash; what is read is spelled as it was.
#include "engine/base/str.h"
#include "reports/baseline_file.h"
#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_create("fuzz");
    const char *path = arena_printf(a, "%s/baseline.jsonl", fast_folder());
    struct buf text = {0}, again = {0};
    struct baseline b;
    struct err e = {0};
    char hex[HASH_HEX_SIZE];
    buf_add(&text, data, size);
    hash_bytes(data, size, hex);
    buf_printf(&text, "{\"sha256\":\"%s\"}\n", hex);
    test_write(path, buf_str(&text));
    if (baseline_read(path, a, &b, &e) == 0) {
        assert(baseline_write(&b, &again, &e) == 0);
        assert(str_equal(buf_str(&again), buf_str(&text)));
        baseline_close(&b);
    }
    buf_free(&text);
    buf_free(&again);
    arena_destroy(a);
    return 0;
}
