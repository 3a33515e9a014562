// A whole small run on a tiny model, to the last byte: the same on every processor, thread count
// and build. The second line of the golden file is of the replies' ids alone, so that a difference
// there is one of the arithmetic, and in the first line alone one of prompts, checks or the
// record's words. The third is of the attention, without the chain.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/base/log.h"
#include "evals/run.h"

#include <stdio.h>
#include <string.h>

static void hash_replies(const struct record *r, char hex[HASH_HEX_SIZE]) {
    struct hash *h = hash_open();
    for (int64_t i = 0; i < r->trial_count; i++) {
        char ids[HASH_HEX_SIZE];
        hash_ids(r->outcomes[i]->ids, r->outcomes[i]->id_count, ids);
        hash_add(h, ids, HASH_HEX_SIZE - 1);
    }
    hash_close(h, hex);
}

static void hash_evidence(const struct record *r, struct arena *a, char hex[HASH_HEX_SIZE]) {
    struct hash *h = hash_open();
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_evidence *v;
        struct err e = {0};
        ASSERT_OK(record_get_evidence(r, i, a, &v, &e), e);
        for (int k = 0; v != NULL && k < v->attention_count; k++) {
            const struct record_attention *t = &v->attention[k];
            hash_add(h, &t->mean, sizeof t->mean);
            hash_add(h, t->strongest, (size_t)t->strongest_count * sizeof *t->strongest);
        }
    }
    hash_close(h, hex);
}

static void test_whole_run(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct run_result result;
    const char *experiment = sample_local_experiment(a, fast_folder(), "golden", 2);
    const char *folder = path_join(a, fast_folder(), "run");
    ASSERT_OK(sample_run_report(experiment, folder, false, &result, &e), e);
    char trials[HASH_HEX_SIZE], replies[HASH_HEX_SIZE], evidence[HASH_HEX_SIZE];
    ASSERT_OK(hash_file(path_join(a, folder, "trials.jsonl"), trials, &e), e);
    struct record *r;
    ASSERT_OK(record_open(folder, a, &r, &e), e);
    hash_replies(r, replies);
    hash_evidence(r, a, evidence);
    record_close(r);
    const char *found = arena_printf(a, "trials.jsonl %s\nreply ids    %s\nattention    %s\n",
                                     trials, replies, evidence);
    struct str expected;
    ASSERT_OK(file_read(test_data(a, "evals/golden/run.txt"), 1 << 16, a, &expected, &e), e);
    if (!str_equal_c(expected, found)) fail_msg("expected\n%sfound\n%s", expected.p, found);
    arena_destroy(a);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
