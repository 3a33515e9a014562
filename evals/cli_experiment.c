#include "evals/cli_experiment.h"

// `limit` of a command line as experiment_load takes it.
static int limit_check(int64_t limit, int64_t *out, struct err *e) {
    *out = -1;
    if (limit == CLI_NO_LIMIT) return 0;
    if (limit < 1 || limit > INT32_MAX)
        FAIL(e, ERR_USAGE, "--limit takes a number of trials from 1 to %d, not %lld", INT32_MAX,
             (long long)limit);
    *out = limit;
    return 0;
}

int cli_experiment_load(const char *path, const struct cli_overrides *o, struct arena *a,
                        struct experiment **out, struct err *e) {
    int64_t limit;
    TRY(limit_check(o->limit, &limit, e));
    const struct experiment_overrides overrides = {
        .set = o->set.items, .set_count = o->set.count, .only = o->only, .limit = limit};
    return experiment_load(path, &overrides, a, out, e);
}
