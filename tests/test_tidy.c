// The house rules as a test (DESIGN section 3): includes point down, outside libraries stay in
// their few files, banned calls, line, function and file lengths. Planted faults prove the rules.
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 100, FILE_MOST = 600, FUNCTION_MOST = 70 };

struct layer {
    const char *from;   // files below this prefix
    const char *may[8]; // may include headers below these prefixes
};

// First match wins, so the more special prefix stands first.
static const struct layer layers[] = {
    {"kernels/", {"kernels/"}},
    {"engine/base/", {"engine/base/"}},
    {"engine/endpoint/", {"engine/endpoint/", "engine/base/", "engine/provider.h"}},
    {"engine/", {"engine/", "kernels/"}},
    {"prompts/", {"prompts/", "engine/base/", "engine/provider.h"}},
    {"reports/", {"reports/", "engine/base/"}},
    {"evals/cli_", {"evals/", "prompts/", "reports/", "engine/"}},
    {"evals/", {"evals/", "prompts/", "reports/", "engine/base/", "engine/provider.h"}},
    {"tests/", {""}},
};

struct outside {
    const char *header;
    const char *only[4]; // file prefixes that may include it
};
static const struct outside outsiders[] = {
    {"yaml.h", {"evals/experiment_yaml.c"}},
    {"pcre2.h", {"evals/pattern.c", "engine/pretokenizer.c"}},
    {"jansson.h", {"engine/base/json.h"}},
    {"zstd.h", {"reports/record_inputs.c"}},
    {"openssl/", {"engine/base/"}},
    {"curl/", {"engine/endpoint/http.c"}},
    {"cuda", {"kernels/cuda/", "kernels/simt/"}},
    {"cublas", {"kernels/cuda/", "kernels/simt/"}},
    {"pthread.h", {"kernels/cpu/team.c"}},
    {"immintrin.h", {"kernels/cpu/"}},
};

static bool has_prefix(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void note(struct buf *findings, const char *path, int line, const char *what,
                 const char *detail) {
    buf_printf(findings, "%s:%d: %s%s%s\n", path, line, what, detail[0] ? ": " : "", detail);
}

static void check_own_include(const char *path, int line, const char *header,
                              struct buf *findings) {
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (!has_prefix(path, layers[i].from)) continue;
        for (int k = 0; k < 8 && layers[i].may[k] != NULL; k++)
            if (has_prefix(header, layers[i].may[k])) return;
        note(findings, path, line, "includes a header that its folder may not use", header);
        return;
    }
    note(findings, path, line, "file outside the folders of the design", header);
}

static void check_outside_include(const char *path, int line, const char *header,
                                  struct buf *findings) {
    if (has_prefix(path, "tests/")) return;
    for (size_t i = 0; i < sizeof outsiders / sizeof *outsiders; i++) {
        if (!has_prefix(header, outsiders[i].header)) continue;
        for (int k = 0; k < 4 && outsiders[i].only[k] != NULL; k++)
            if (has_prefix(path, outsiders[i].only[k])) return;
        note(findings, path, line, "library header outside its files", header);
    }
}

static void check_include(const char *path, int number, const char *line, struct buf *findings) {
    char header[256];
    if (sscanf(line, "#include \"%255[^\"]\"", header) == 1)
        check_own_include(path, number, header, findings);
    else if (sscanf(line, "#include <%255[^>]>", header) == 1)
        check_outside_include(path, number, header, findings);
}

// Is `word` called in the line (not as a part of a longer name)?
static bool calls(const char *line, const char *word) {
    size_t n = strlen(word);
    for (const char *p = line; (p = strstr(p, word)) != NULL; p += n) {
        bool joined = p > line && (isalnum((unsigned char)p[-1]) || p[-1] == '_' || p[-1] == '.' ||
                                   p[-1] == '>');
        if (!joined && p[n] == '(') return true;
    }
    return false;
}

static void check_calls(const char *path, int number, const char *line, struct buf *findings) {
    static const char *const everywhere[] = {"strcpy", "strcat", "sprintf", "gets", "strtok",
                                             "rand",   "srand",  "atoi",    "atof", "alloca"};
    static const char *const outside_cli[] = {"exit", "getenv", "setenv", "printf", "puts"};
    static const char *const near_logits[] = {"exp",  "expf", "exp2",  "exp2f", "log",
                                              "logf", "log2", "log2f", "pow",   "powf",
                                              "sin",  "sinf", "cos",   "cosf",  "tanhf"};
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++)
        if (calls(line, everywhere[i])) note(findings, path, number, "banned call", everywhere[i]);
    if (has_prefix(path, "tests/")) return;
    for (size_t i = 0; i < sizeof outside_cli / sizeof *outside_cli; i++)
        if (!has_prefix(path, "evals/cli") && calls(line, outside_cli[i]))
            note(findings, path, number, "only the command line may call", outside_cli[i]);
    if (!has_prefix(path, "kernels/") && !has_prefix(path, "engine/")) return;
    for (size_t i = 0; i < sizeof near_logits / sizeof *near_logits; i++)
        if (calls(line, near_logits[i]))
            note(findings, path, number, "libm on the way to a logit", near_logits[i]);
}

// Columns, counting UTF-8 characters.
static int width_of(const char *line) {
    int columns = 0;
    for (; *line != '\0'; line++) columns += ((unsigned char)*line & 0xC0) != 0x80;
    return columns;
}

static void check_file(const char *path, const char *text, struct buf *findings) {
    static const char *const left_overs[] = {"TO"
                                             "DO",
                                             "FIX"
                                             "ME",
                                             "XX"
                                             "X:",
                                             "HA"
                                             "CK"};
    int number = 0, function_start = 0;
    while (*text != '\0') {
        char line[2048];
        size_t n = strcspn(text, "\n"), kept = n < sizeof line - 1 ? n : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        text += n + (text[n] == '\n');
        number++;
        if (width_of(line) > LINE_MOST) note(findings, path, number, "line too long", "");
        for (size_t i = 0; i < 4; i++)
            if (strstr(line, left_overs[i]))
                note(findings, path, number, "left-over", left_overs[i]);
        check_include(path, number, line, findings);
        const char *code = line + strspn(line, " ");
        if (!has_prefix(code, "//") && !has_prefix(code, "#"))
            check_calls(path, number, code, findings);
        if (line[0] != '\0' && line[0] != '#' && line[0] != ' ' && line[n - 1] == '{' &&
            strchr(line, '(') != NULL)
            function_start = number;
        if (strcmp(line, "}") == 0) {
            if (function_start > 0 && number - function_start > FUNCTION_MOST)
                note(findings, path, function_start, "function too long", "");
            function_start = 0;
        }
    }
    if (number > FILE_MOST && !has_prefix(path, "tests/"))
        note(findings, path, number, "file too long", "");
}

static bool is_source(const char *name) {
    static const char *const endings[] = {".c", ".h", ".inc", ".cu", ".cuh", ".cpp"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(ending, endings[i]) == 0) return true;
    return false;
}

static int walk(struct arena *a, const char *folder, struct buf *findings) {
    struct err e = {0};
    char **names;
    size_t count;
    int files = 0;
    const char *full = path_join(a, LACUNA_SOURCE_DIR, folder);
    ASSERT_OK(file_list(full, a, &names, &count, &e), e);
    for (size_t i = 0; i < count; i++) {
        const char *relative = path_join(a, folder, names[i]);
        const char *path = path_join(a, full, names[i]);
        if (file_is_directory(path)) {
            files += walk(a, relative, findings);
        } else if (is_source(names[i])) {
            struct str text;
            ASSERT_OK(file_read(path, 1 << 20, a, &text, &e), e);
            check_file(relative, text.p, findings);
            files++;
        }
    }
    return files;
}

static void the_tree_is_tidy(void **state) {
    (void)state;
    static const char *const folders[] = {"engine",  "kernels", "prompts",
                                          "reports", "evals",   "tests"};
    struct arena *a = arena_create("test");
    struct buf findings = {0};
    int files = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        files += walk(a, folders[i], &findings);
    assert_true(files > 30);
    if (findings.n > 0) fail_msg("\n%s", findings.p);
    arena_destroy(a);
    buf_free(&findings);
}

static void expect(const char *path, const char *text, const char *finding) {
    struct buf findings = {0};
    check_file(path, text, &findings);
    if (finding == NULL && findings.n > 0) fail_msg("unexpected: %s", findings.p);
    if (finding != NULL && (findings.p == NULL || strstr(findings.p, finding) == NULL))
        fail_msg("%s: not found: %s", path, finding);
    buf_free(&findings);
}

static void planted_faults_are_found(void **state) {
    (void)state;
    expect("kernels/cuda/x.cu", "#include \"engine/base/err.h\"\n", "may not use");
    expect("kernels/cpu/x.c", "#include \"engine/base/err.h\"\n", "may not use");
    expect("engine/base/x.c", "#include \"engine/model.h\"\n", "may not use");
    expect("engine/x.c", "#include \"evals/plan.h\"\n", "may not use");
    expect("engine/endpoint/x.c", "#include \"engine/model.h\"\n", "may not use");
    expect("engine/provider_endpoint.c", "#include <curl/curl.h>\n", "outside its files");
    expect("prompts/x.c", "#include \"engine/tokenizer.h\"\n", "may not use");
    expect("prompts/x.c", "#include \"engine/provider.h\"\n", NULL);
    expect("reports/x.c", "#include \"evals/experiment.h\"\n", "may not use");
    expect("evals/run.c", "#include \"engine/session.h\"\n", "may not use");
    expect("evals/cli_bench.c", "#include \"engine/session.h\"\n", NULL);
    expect("evals/run.c", "#include <pcre2.h>\n", "outside its files");
    expect("engine/x.c", "    exit(1);\n", "only the command line");
    expect("engine/x.c", "    y = expf(x);\n", "libm");
    expect("engine/x.c", "    y = exp_of(x);\n", NULL);
    expect("evals/x.c",
           "    str"
           "cpy(a, b);\n",
           "banned");
    struct buf text = {0};
    buf_add_c(&text, "int f(void) {\n");
    for (int i = 0; i < 80; i++) buf_add_c(&text, "    x++;\n");
    buf_add_c(&text, "}\n");
    expect("engine/x.c", text.p, "function too long");
    for (int i = 0; i < 600; i++) buf_add_c(&text, "\n");
    expect("engine/x.c", text.p, "file too long");
    buf_clear(&text);
    for (int i = 0; i < 101; i++) buf_add_char(&text, 'x');
    expect("engine/x.c", text.p, "line too long");
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_is_tidy),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests_name("tidy", tests, NULL, NULL);
}
