#include "evals/cli.h"
#include "evals/experiment.h"

#include "engine/base/file.h"
#include "engine/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Never over a file that is there.
static int write_exclusively(const char *path, struct str text, struct err *e) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) FAIL(e, ERR_USAGE, "%s exists; give another name", path);
    if (fd < 0) FAIL(e, ERR_IO, "%s: %s", path, strerror(errno));
    size_t done = 0;
    ssize_t n = 0;
    while (done < text.n && (n = write(fd, text.p + done, text.n - done)) > 0) done += (size_t)n;
    const bool failed = done < text.n, unclosed = close(fd) != 0;
    if (failed || unclosed) {
        ERR_SET(e, ERR_IO, "%s: %s", path, strerror(errno));
        unlink(path);
        return -1;
    }
    return 0;
}

static int write_new(const char *name, struct arena *a, struct err *e) {
    struct str path = str_from(name);
    const struct str ending = STR(".yaml");
    if (str_ends(path, ending)) path = str_slice(path, 0, path.n - ending.n);
    const char *stem = str_to_c(a, path);
    if (!experiment_name_valid(path_name(stem)))
        FAIL(e, ERR_USAGE,
             "\"%s\" is no name for an experiment: a letter or digit, then letters, digits, '.', "
             "'_', "
             "'-' or ':'",
             path_name(stem));
    struct buf text = {0};
    experiment_new(path_name(stem), &text);
    const char *file = arena_printf(a, "%s.yaml", stem);
    int result = write_exclusively(file, buf_str(&text), e);
    buf_free(&text);
    if (result == 0) log_info("wrote %s; `lacuna plan %s` says what it would run", file, file);
    return result;
}

int cli_new(int argc, char **argv) {
    struct err e = {0};
    bool helped;
    int count;
    const char *name = NULL;
    if (cli_parse(argc, argv, NULL, 0, &name, 0, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    if (count == 0) {
        struct buf text = {0};
        experiment_new(NULL, &text);
        fputs(text.p, stdout);
        buf_free(&text);
        return EXIT_DONE;
    }
    struct arena *a = arena_create("command");
    int result = write_new(name, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
