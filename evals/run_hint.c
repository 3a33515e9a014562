// A changed check makes another request, hence another folder; but no reply has to be computed
// again.
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "evals/run_setup.h"
#include "evals/score.h"

#include <string.h>

#define SMALL_FILE_BYTES_MOST ((size_t)64 << 20)

static bool same(const json_t *a, const json_t *b, const char *key) {
    json_t *left = json_object_get(a, key), *right = json_object_get(b, key);
    return left == right || (left != NULL && right != NULL && json_equal(left, right));
}

// What the replies depend on, as far as the two files of a record tell.
static bool has_our_replies(const struct experiment *x, const json_t *identity,
                            const json_t *then_resolved, const json_t *then) {
    static const char *const keys[] = {"generation", "numerics", "backend", "models", "partial"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!same(identity, then, keys[i])) return false;
    return same(x->resolved, then_resolved, "only") && same(x->resolved, then_resolved, "limit") &&
           score_compatible(then_resolved, x->resolved, NULL) == 0;
}

static bool look_at(const struct experiment *x, const json_t *identity, const char *folder,
                    struct arena *a) {
    json_t *resolved = NULL, *then = NULL;
    const char *path = path_join(a, folder, "identity.json");
    bool found = file_exists(path) &&
                 json_read_file(path, SMALL_FILE_BYTES_MOST, &then, NULL) == 0 &&
                 json_read_file(path_join(a, folder, "resolved.json"), SMALL_FILE_BYTES_MOST,
                                &resolved, NULL) == 0 &&
                 has_our_replies(x, identity, resolved, then);
    json_decref(resolved);
    json_decref(then);
    return found;
}

void run_hint_at_score(const struct experiment *x, const struct run_options *options,
                       const json_t *identity, struct arena *a) {
    char **names;
    size_t count, n = strlen(x->name);
    if (options->folder != NULL || !file_is_directory(options->runs_folder)) return;
    if (file_list(options->runs_folder, a, &names, &count, NULL) != 0) return;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], x->name, n) != 0 || names[i][n] != '-') continue;
        const char *folder = path_join(a, options->runs_folder, names[i]);
        if (!look_at(x, identity, folder, a)) continue;
        log_info(
            "%s has replies to these very prompts; only checks or analysis changed. `lacuna "
            "score %s --experiment %s` scores them without running the model again; `lacuna run "
            "%s --reuse %s` makes a record of its own of them",
            folder, folder, x->path, x->path, folder);
        return;
    }
}
