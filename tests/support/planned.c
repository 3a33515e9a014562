#include "tests/support/planned.h"

#include "engine/base/file.h"
#include "tests/support/support.h"

#include <string.h>

int planned_make(const char *yaml, struct planned *out, struct err *e) {
    *out = (struct planned){0};
    const char *path = path_join(test_arena, test_folder(), "planned.yaml");
    test_write(path, str_from(yaml));
    TRY(experiment_load(path, NULL, test_arena, &out->x, e));
    out->provider =
        fake_provider_open(&(struct fake_options){.start = true, .context_tokens = 65536});
    return plan_make(out->x, &out->provider, NULL, test_arena, &out->plan, e);
}

void planned_close(struct planned *p) {
    if (p->x != NULL) experiment_close(p->x);
    if (p->provider != NULL) fake_provider_close(p->provider);
    *p = (struct planned){0};
}

const struct record_trial *planned_find(const struct plan *p, const char *key) {
    for (int64_t i = 0; i < p->trial_count; i++)
        if (strcmp(p->trials[i].key, key) == 0) return &p->trials[i];
    fail_msg("no trial %s", key);
    return NULL;
}

const struct record_trial *planned_trial(const struct planned *p, const char *key) {
    return planned_find(&p->plan, key);
}

struct str planned_prompt(const struct planned *p, const char *key) {
    struct err e = {0};
    struct record_trial t;
    struct record_part *parts;
    size_t count;
    ASSERT_OK(plan_prompt(p->x, &p->provider, key, test_arena, &t, &parts, &count, &e), e);
    struct buf b = {0};
    for (size_t i = 0; i < count; i++) buf_add_str(&b, parts[i].text);
    struct str text = str_copy(test_arena, buf_str(&b));
    buf_free(&b);
    return text;
}

struct str planned_value(const struct record_trial *t, const char *constraint, const char *name) {
    for (int i = 0; i < t->var_count; i++)
        if (strcmp(t->vars[i].constraint, constraint) == 0 && strcmp(t->vars[i].name, name) == 0)
            return t->vars[i].value;
    fail_msg("no variable %s.%s in %s", constraint, name, t->key);
    return STR("");
}
