// Damaged experiment files: whatever the bytes, the loader either gives a whole experiment or says
// what is wrong, quickly. Seeded, so that a failure repeats.
#include "tests/evals/experiment_sample.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/experiment.h"
#include "evals/experiment_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pieces[] = {"\n",
                                     " ",
                                     "  ",
                                     "\t",
                                     ":",
                                     ": ",
                                     "- ",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     ",",
                                     "&a ",
                                     "*a",
                                     "<<: ",
                                     "!!x ",
                                     "? ",
                                     "|",
                                     ">",
                                     "|-\n",
                                     "'",
                                     "\"",
                                     "#",
                                     " #",
                                     "---\n",
                                     "...",
                                     "%YAML",
                                     "\\",
                                     "\\n",
                                     "{{",
                                     "}}",
                                     "{{code}}",
                                     "{{filler}}",
                                     "null",
                                     "~",
                                     "yes",
                                     "007",
                                     "1e3",
                                     "-1",
                                     "0.5",
                                     "100%",
                                     "start",
                                     "middle",
                                     "end",
                                     "in_system",
                                     "all",
                                     "order",
                                     "day",
                                     "text_file: ",
                                     "move: ",
                                     "vars: ",
                                     "kind: ",
                                     "state",
                                     "format",
                                     "forbid",
                                     "\r",
                                     "\xEF\xBB\xBF",
                                     "\xFF",
                                     "\xC2\x85",
                                     "\xE2\x80\xA8",
                                     "\x01",
                                     "9999999999999999999",
                                     "[[[[[[[[",
                                     "id: ",
                                     "repeats: 3\n"};

static void mutate(struct rng *r, struct buf *text) {
    struct str s = buf_str(text);
    struct buf out = {0};
    const size_t at = (size_t)rng_below(r, s.n + 1);
    size_t end = at + (size_t)rng_below(r, 40);
    if (end > s.n) end = s.n;
    buf_add_str(&out, str_slice(s, 0, at));
    switch (rng_below(r, 6)) {
    case 0: break; // leave a part out
    case 1:        // twice
        buf_add_str(&out, str_slice(s, at, end));
        buf_add_str(&out, str_slice(s, at, end));
        break;
    case 2: { // a part from elsewhere
        size_t from = (size_t)rng_below(r, s.n + 1), to = from + (size_t)rng_below(r, 60);
        buf_add_str(&out, str_slice(s, from, to > s.n ? s.n : to));
        end = at;
        break;
    }
    case 3: // another byte
        if (at < s.n) buf_add_char(&out, (char)rng_below(r, 256));
        end = at < s.n ? at + 1 : at;
        break;
    default: // a piece that means something
        buf_add_c(&out, pieces[rng_below(r, sizeof pieces / sizeof *pieces)]);
        if (rng_below(r, 2)) end = at;
        break;
    }
    buf_add_str(&out, str_slice(s, end, s.n));
    buf_free(text);
    *text = out;
}

// Loads, and when that works, the resolved form must load again to the same.
static bool try_one(struct str text, struct arena *a) {
    struct err e = {0};
    struct experiment *x = NULL, *y = NULL;
    const char *set[] = {"generation.samples=1", "models[0].context_tokens=4096"};
    const struct experiment_overrides o = {.set = set, .set_count = 2, .limit = -1};
    if (experiment_read(text, "fuzzed.yaml", text.n % 3 == 0 ? &o : NULL, a, &x, &e) != 0) {
        assert_int_equal(e.code, ERR_CONFIG);
        assert_true(utf8_valid(str_from(e.text)));
        assert_true(strncmp(e.text, "fuzzed.yaml:", 12) == 0 || strncmp(e.text, "--set ", 6) == 0);
        return false;
    }
    ASSERT_OK(experiment_from_json(x->resolved, "resolved.json", ".", a, &y, &e), e);
    assert_true(json_equal(x->resolved, y->resolved));
    experiment_close(x);
    experiment_close(y);
    return true;
}

static void damaged_files_are_survived(void **state) {
    (void)state;
    struct arena *a = arena_create("test"), *files = arena_create("files");
    struct rng r = rng_open(20261130, "test", "fuzz");
    struct err e = {0};
    struct str samples[3] = {str_from(sample_experiment)};
    ASSERT_OK(file_read(LACUNA_SOURCE_DIR "/configs/three-constraints.yaml", 1 << 20, files,
                        &samples[1], &e),
              e);
    struct buf fresh = {0};
    experiment_new(NULL, &fresh);
    samples[2] = buf_str(&fresh);
    int loaded = 0, refused = 0;
    const uint64_t begin = clock_cpu_ns();
    for (int i = 0; i < 6000 && CLOCK_MS(clock_cpu_ns() - begin) < 6000; i++) {
        struct buf text = {0};
        buf_add_str(&text, samples[i % 3]);
        for (uint64_t n = 1 + rng_below(&r, 4); n > 0; n--) mutate(&r, &text);
        if (try_one(buf_str(&text), a))
            loaded++;
        else
            refused++;
        buf_free(&text);
        arena_reset(a);
    }
    // Both ways are taken: a test that only ever sees one of them shows nothing.
    assert_true(loaded > 50 && refused > 200);
    buf_free(&fresh);
    arena_destroy(a);
    arena_destroy(files);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files_are_survived)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
