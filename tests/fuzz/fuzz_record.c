// libFuzzer: any bytes as lines of a ledger or a plan; what is read is written again as it was.
#include "reports/record_internal.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char previous[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void again(json_t *written, struct arena *a, bool ledger) {
    struct record_outcome o;
    struct record_trial t;
    struct err e = {0};
    int result = ledger ? record_outcome_read(written, "again", a, &o, &e)
                        : record_trial_read(written, "again", a, &t, &e);
    assert(result == 0);
    json_t *twice = NULL;
    if (ledger)
        twice = record_outcome_write(&o, o.attempt);
    else
        assert(record_trial_write(&t, &twice, &e) == 0);
    assert(json_equal(written, twice));
    json_decref(twice);
    json_decref(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct arena *a = arena_create("fuzz");
    struct str line = {arena_memdup(a, data + 1, size - 1), size - 1};
    struct err e = {0};
    if (data[0] % 2 == 0) {
        struct record_outcome o;
        if (record_ledger_line(line, "fuzzed:1", 0, previous, a, &o, &e) == 0)
            again(record_outcome_write(&o, o.attempt), a, true);
    } else {
        struct record_trial t;
        json_t *written;
        if (record_plan_line(line, "fuzzed:1", 0, a, &t, &e) == 0 &&
            record_trial_write(&t, &written, &e) == 0)
            again(written, a, false);
    }
    arena_destroy(a);
    return 0;
}
