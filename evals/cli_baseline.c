// lacuna baseline: a small file of a run, to commit beside the user's code.
#include "evals/cli.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "reports/baseline_file.h"

#include <stdio.h>

// Only an older baseline is written over, never a file of a record by a slip of the hand.
static int may_write(const char *path, struct err *e) {
    struct file_map map;
    if (path == NULL || !file_exists(path)) return 0;
    TRY(file_map_open(path, &map, e));
    bool older = str_starts((struct str){(const char *)map.p, map.bytes}, STR(BASELINE_HEAD));
    file_map_close(&map);
    if (!older) FAIL(e, ERR_USAGE, "%s: is there already and is no baseline file", path);
    return 0;
}

static int write_file(const char *folder, const char *path, struct arena *a, struct err *e) {
    struct record *r;
    struct baseline b;
    struct buf text = {0};
    TRY(may_write(path, e));
    TRY(record_open(folder, a, &r, e));
    int result = baseline_of_record(r, a, &b, e);
    if (result == 0) {
        result = baseline_write(&b, &text, e);
        baseline_close(&b);
    }
    if (result == 0 && path != NULL) {
        result = file_write_atomic(path, buf_str(&text), e);
        if (result == 0)
            log_info("%s: %lld trials, %zu bytes", path, (long long)r->trial_count, text.n);
    } else if (result == 0 &&
               (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0)) {
        result = ERR_SET(e, ERR_IO, "standard output cannot be written");
    }
    buf_free(&text);
    record_close(r);
    return result;
}

int cli_baseline(int argc, char **argv) {
    const char *folder = NULL, *path = NULL;
    const struct cli_option options[] = {
        {.name = "--output",
         .short_name = "-o",
         .value = "FILE",
         .text = &path,
         .help = "written whole or not at all, over an older one; stdout otherwise"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, 1, &folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("baseline");
    int result = write_file(folder, path, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
