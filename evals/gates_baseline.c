// What a plan can say about the baselines of its gates.
#include "evals/gates_internal.h"

#include "engine/base/file.h"
#include "reports/baseline_file.h"
#include "reports/record_map.h"

#include <string.h>

int gates_check_baseline(const struct experiment_gate *g, struct err *e) {
    struct arena *a = arena_create("baseline");
    struct baseline b;
    int result = baseline_read(g->baseline, a, &b, e);
    if (result == 0) baseline_close(&b);
    if (result != 0 && e != NULL) {
        e->code = ERR_CONFIG;
        err_prefix(e, "gate %s", g->id);
    }
    arena_destroy(a);
    return result;
}

struct overlap {
    int64_t common, only_plan, only_baseline, other_prompts;
};

// One model on either side is paired whatever its name, as a comparison does.
static struct overlap overlap_of(const struct tally *t, const struct baseline *b) {
    struct overlap o = {0};
    struct record_map *cells = record_map_open();
    bool single = t->x->model_count == 1 && b->model_count == 1;
    for (int64_t i = 0; i < b->trial_count; i++)
        record_map_put(cells, single ? b->trials[i].cell : b->trials[i].key, i);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct record_trial *p = t->trials[i].planned;
        const char *slash = strchr(p->key, '/');
        int64_t at = record_map_get(cells, single && slash != NULL ? slash + 1 : p->key);
        if (at < 0) {
            o.only_plan++;
            continue;
        }
        const char *then = b->trials[at].prompt;
        o.common++;
        o.other_prompts += strncmp(then, p->prompt_sha256, strlen(then)) != 0;
    }
    o.only_baseline = b->trial_count - o.common;
    record_map_close(cells);
    return o;
}

static bool allows_prompts(const struct experiment_gate *g) {
    for (int i = 0; i < g->allow_count; i++)
        if (strcmp(g->allow[i], "prompts") == 0) return true;
    return false;
}

static const char *obstacle(const struct tally *t, const struct experiment_gate *g,
                            struct arena *a) {
    struct baseline b;
    if (!file_exists(g->baseline))
        return arena_printf(a,
                            "there is no baseline %s yet; `lacuna baseline RUN -o %s` makes one of "
                            "a good run",
                            g->baseline_name, g->baseline_name);
    if (baseline_read(g->baseline, a, &b, NULL) != 0) return NULL; // complained about before
    struct overlap o = overlap_of(t, &b);
    baseline_close(&b);
    if (o.only_plan > 0 || o.only_baseline > 0)
        return arena_printf(a,
                            "%s has another plan: %lld trials in both, %lld only there, %lld only "
                            "here",
                            g->baseline_name, (long long)o.common, (long long)o.only_baseline,
                            (long long)o.only_plan);
    if (o.other_prompts > 0 && !allows_prompts(g))
        return arena_printf(a,
                            "%lld of %lld prompts are not those of %s; `allow: [prompts]` says "
                            "that this is meant",
                            (long long)o.other_prompts, (long long)o.common, g->baseline_name);
    return NULL;
}

void gate_look_at_baseline(const struct tally *t, const struct experiment_gate *g,
                           struct gate_outlook *out, struct arena *a) {
    const char *why = obstacle(t, g, a);
    if (why != NULL)
        out->why = arena_printf(a, "cannot decide: %s. Without that: %s", why, out->why);
}
