// Man page, README and completion tell the same story as the program's own help.
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(const char *arguments, struct buf *out) {
    char command[4096];
    snprintf(command, sizeof command, "'%s/lacuna' %s 2>&1", LACUNA_BINARY_DIR, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    buf_clear(out);
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) buf_add(out, part, n);
    assert_int_equal(pclose(pipe), 0);
}

static void read_text(struct arena *a, const char *name, struct str *out) {
    struct err e = {0};
    ASSERT_OK(file_read(path_join(a, LACUNA_SOURCE_DIR, name), 1 << 20, a, out, &e), e);
}

static void need(struct str text, const char *where, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE)
        fail_msg("%s does not have: %s", where, what);
}

// A word of [a-z-] behind `text`.
static char *word_at(struct arena *a, const char *text) {
    return arena_memdup(a, text, strspn(text, "abcdefghijklmnopqrstuvwxyz-"));
}

// "--op-table" as the man page spells it: every hyphen escaped.
static char *man_spelling(struct arena *a, const char *word) {
    struct buf out = {0};
    for (; *word != '\0'; word++) buf_printf(&out, "%s%c", *word == '-' ? "\\" : "", *word);
    char *copy = arena_strdup(a, out.p);
    buf_free(&out);
    return copy;
}

static void check_options(struct arena *a, const char *verb, struct str man) {
    struct buf help = {0};
    run(arena_printf(a, "%s --help", verb), &help);
    const char *p = strstr(help.p, "\nOptions:\n");
    for (; p != NULL && (p = strchr(p, '\n')) != NULL && p[1] != '\0'; p++) {
        if (strncmp(p, "\n  -", 4) != 0) continue;
        const char *option = strstr(p, "--"), *end = strstr(option, "  ");
        assert_non_null(end); // "--memory SIZE", then the explanation
        need(man, "evals/lacuna.1",
             man_spelling(a, arena_memdup(a, option, (size_t)(end - option))));
    }
    buf_free(&help);
}

static void every_verb_and_option_is_documented(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct str man, readme;
    read_text(a, "evals/lacuna.1", &man);
    read_text(a, "README.md", &readme);
    struct buf help = {0};
    run("--help", &help);
    int verbs = 0;
    for (const char *p = help.p; (p = strstr(p, "\n  ")) != NULL; p += 3) {
        if (p[3] < 'a' || p[3] > 'z') continue;
        char *verb = word_at(a, p + 3);
        need(man, "evals/lacuna.1", arena_printf(a, "\n.SS %s", man_spelling(a, verb)));
        need(readme, "README.md", arena_printf(a, "lacuna %s", verb));
        check_options(a, verb, man);
        verbs++;
    }
    assert_true(verbs >= 19);
    buf_free(&help);
    arena_destroy(a);
}

static void completion_follows_the_help(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    char *script = arena_printf(a,
                                "bash -c 'source %s/evals/lacuna.bash; COMP_WORDS=(%s/lacuna run "
                                "--retry); COMP_CWORD=2; _lacuna; echo \"${COMPREPLY[*]}\"'",
                                LACUNA_SOURCE_DIR, LACUNA_BINARY_DIR);
    FILE *pipe = popen(script, "r");
    assert_non_null(pipe);
    char line[256] = "";
    assert_non_null(fgets(line, sizeof line, pipe));
    pclose(pipe);
    assert_string_equal(line, "--retry-errors\n");
    arena_destroy(a);
}

static void unknown_words_are_named(void **state) {
    (void)state;
    char command[4096], line[512] = "";
    snprintf(command, sizeof command, "'%s/lacuna' pln 2>&1", LACUNA_BINARY_DIR);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_non_null(strstr(line, "did you mean plan?"));
    assert_int_equal(pclose(pipe), 2 << 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_and_option_is_documented),
        cmocka_unit_test(completion_follows_the_help),
        cmocka_unit_test(unknown_words_are_named),
    };
    return cmocka_run_group_tests_name("cli_docs", tests, NULL, NULL);
}
