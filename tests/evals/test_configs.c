// The shipped experiments: each loads without a warning, its checks prove themselves, and it plans
// in the smoke size that its head gives (on the fake provider, whose tokens are words).
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/plan.h"
#include "tests/support/fake_provider.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const folder = LACUNA_SOURCE_DIR "/configs";

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **shipped(size_t *count) {
    const char **names = NULL;
    DIR *d = opendir(folder);
    assert_non_null(d);
    *count = 0;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 5, ".yaml") != 0) continue;
        names = arena_more(test_arena, (void *)names, *count, sizeof *names);
        names[(*count)++] = arena_strdup(test_arena, entry->d_name);
    }
    closedir(d);
    qsort(names, *count, sizeof *names, by_name);
    return names;
}

enum { OPTIONS = 16 };

// The options of the line `# smoke: --set KEY=VALUE --set 'KEY=VALUE' ...`, as a shell reads them.
static int smoke_options(const char *name, const char *path, const char **set) {
    struct err e = {0};
    struct str text, head = STR("\n# smoke: ");
    ASSERT_OK(file_read(path, 1 << 20, test_arena, &text, &e), e);
    size_t at = str_find(text, head, 0);
    if (at == STR_NONE) fail_msg("%s has no line '# smoke: OPTIONS' in its head", name);
    if (str_find(text, head, at + 1) != STR_NONE) fail_msg("%s has two lines of it", name);
    size_t end = str_find(text, STR("\n"), at + 1);
    int n = (int)(end - at - head.n);
    char *line = arena_printf(test_arena, "%.*s", n, text.p + at + head.n), *rest;
    int count = 0;
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        size_t last = strlen(word) - 1;
        if (strcmp(word, "--set") == 0) continue;
        if (last > 1 && word[0] == '\'' && word[last] == '\'') word[last] = '\0', word++;
        assert_true(count < OPTIONS);
        set[count++] = word;
    }
    return count;
}

static void plan_smoke(const char *name) {
    struct err e = {0};
    struct experiment *x;
    const char *path = path_join(test_arena, folder, name), *set[OPTIONS];
    if (experiment_load(path, NULL, test_arena, &x, &e) != 0) fail_msg("%s: %s", name, e.text);
    if (x->warning_count > 0) fail_msg("%s: %s", name, x->warnings[0]);
    experiment_close(x);
    const struct experiment_overrides o = {
        .set = set, .set_count = smoke_options(name, path, set), .limit = -1};
    if (experiment_load(path, &o, test_arena, &x, &e) != 0) fail_msg("%s: %s", name, e.text);
    if (x->warning_count > 0) fail_msg("%s: %s", name, x->warnings[0]);
    struct provider **providers =
        arena_array(test_arena, (size_t)x->model_count, sizeof *providers);
    for (int i = 0; i < x->model_count; i++)
        providers[i] =
            fake_provider_open(&(struct fake_options){.start = true, .context_tokens = 8192});
    struct plan p;
    if (plan_make(x, providers, NULL, test_arena, &p, &e) != 0) fail_msg("%s: %s", name, e.text);
    assert_true(p.trial_count > 0);
    for (int i = 0; i < x->model_count; i++) fake_provider_close(providers[i]);
    experiment_close(x);
}

static void each_plans_in_smoke_size(void **state) {
    (void)state;
    size_t count;
    const char **names = shipped(&count);
    assert_true(count >= 10);
    for (size_t i = 0; i < count; i++) plan_smoke(names[i]);
}

// What stands in the folder stands in its README, and the other way round.
static void the_readme_names_each(void **state) {
    (void)state;
    size_t count;
    const char **names = shipped(&count);
    struct err e = {0};
    struct str readme;
    ASSERT_OK(file_read(LACUNA_SOURCE_DIR "/configs/README.md", 1 << 20, test_arena, &readme, &e),
              e);
    for (size_t i = 0; i < count; i++)
        if (str_find(readme, str_from(arena_printf(test_arena, "`%s`", names[i])), 0) == STR_NONE)
            fail_msg("configs/README.md does not name %s", names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_plans_in_smoke_size, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(the_readme_names_each, test_arena_open, test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
