// The trials that two runs share, and which of their replies are the same.
#include "evals/compare_internal.h"

#include "reports/record_map.h"

#include <stdlib.h>
#include <string.h>

static bool same_reply(const struct baseline_trial *a, const struct baseline_trial *b) {
    if (strcmp(a->reply, b->reply) != 0 || strcmp(a->finish, b->finish) != 0) return false;
    return a->ids[0] == '\0' || b->ids[0] == '\0' || strcmp(a->ids, b->ids) == 0;
}

static int64_t first_difference(const struct comparison *c, const struct comparison_pair *p) {
    const struct record_outcome *before = comparison_outcome(c->before, p->before);
    const struct record_outcome *now = comparison_outcome(c->now, p->now);
    if (before == NULL || now == NULL || before->ids == NULL || now->ids == NULL) return -1;
    size_t at = 0;
    while (at < before->id_count && at < now->id_count && before->ids[at] == now->ids[at]) at++;
    return (int64_t)at;
}

static void add_pair(struct comparison *c, const struct baseline_trial *before,
                     const struct baseline_trial *now) {
    struct comparison_pair *p = &c->pairs[c->pair_count++];
    *p = (struct comparison_pair){.before = before, .now = now, .first_token = -1};
    p->same_prompt = strcmp(before->prompt, now->prompt) == 0;
    if (before->verdicts == NULL || now->verdicts == NULL) {
        c->not_ok++;
        return;
    }
    p->identical = same_reply(before, now);
    if (!p->identical) p->first_token = first_difference(c, p);
    c->compared++;
    c->identical += p->identical;
}

// Keys of `before` without their model, one map a model.
static struct record_map **map_cells(const struct baseline *b, struct arena *a) {
    struct record_map **maps = arena_array(a, (size_t)b->model_count + 1, sizeof *maps);
    for (int i = 0; i < b->model_count; i++) maps[i] = record_map_open();
    for (int64_t i = 0; i < b->trial_count; i++)
        record_map_put(maps[b->trials[i].model], b->trials[i].cell, i);
    return maps;
}

static void match(struct comparison *c, const int *models, struct arena *a) {
    struct record_map **maps = map_cells(c->before, a);
    c->pairs = arena_array(a, (size_t)c->now->trial_count + 1, sizeof *c->pairs);
    for (int64_t i = 0; i < c->now->trial_count; i++) {
        const struct baseline_trial *t = &c->now->trials[i];
        int64_t other = models[t->model] < 0 ? -1 : record_map_get(maps[models[t->model]], t->cell);
        if (other >= 0)
            add_pair(c, &c->before->trials[other], t);
        else
            c->only_now++;
    }
    c->only_before = c->before->trial_count - c->pair_count;
    for (int i = 0; i < c->before->model_count; i++) record_map_close(maps[i]);
}

// Constraints of both, in the run's order, and the columns of their verdicts on either side.
static void match_constraints(struct comparison *c, struct arena *a) {
    const struct baseline *before = c->before, *now = c->now;
    size_t most = (size_t)now->constraint_count + 1;
    c->constraints = arena_array(a, most, sizeof *c->constraints);
    c->columns_before = arena_array(a, most, sizeof *c->columns_before);
    c->columns_now = arena_array(a, most, sizeof *c->columns_now);
    for (int i = 0; i < now->constraint_count; i++) {
        for (int k = 0; k < before->constraint_count; k++) {
            if (strcmp(now->constraints[i], before->constraints[k]) != 0) continue;
            c->constraints[c->constraint_count] = now->constraints[i];
            c->columns_before[c->constraint_count] = k;
            c->columns_now[c->constraint_count++] = i;
        }
    }
    c->only_constraints =
        before->constraint_count + now->constraint_count - 2 * c->constraint_count;
}

static bool has_constraint(const struct baseline *b, const char *id) {
    for (int i = 0; i < b->constraint_count; i++)
        if (strcmp(b->constraints[i], id) == 0) return true;
    return false;
}

static void add_missing(const struct baseline *in, const struct baseline *of, const char *where,
                        struct buf *out) {
    int count = 0;
    for (int i = 0; i < in->constraint_count; i++) {
        if (has_constraint(of, in->constraints[i])) continue;
        buf_printf(out, "%s%s", count++ == 0 ? ", constraints " : " ", in->constraints[i]);
    }
    if (count > 0) buf_printf(out, " only in the %s", where);
}

static const char *plan_words(const struct comparison *c, struct arena *a) {
    struct buf out = {0};
    buf_printf(&out,
               "the plans differ: %lld trials in both, %lld only in the baseline, %lld only in the "
               "run",
               (long long)c->pair_count, (long long)c->only_before, (long long)c->only_now);
    add_missing(c->before, c->now, "baseline", &out);
    add_missing(c->now, c->before, "run", &out);
    return buf_take(&out, a).p;
}

static void refuse(struct comparison *c, struct arena *a) {
    if (c->pair_count == 0 || c->constraint_count == 0)
        c->refused = arena_printf(a, "%s; there is nothing to compare",
                                  c->pair_count == 0 ? plan_words(c, a)
                                                     : "the two runs have no constraint in common");
    else if (c->needs_common && c->allow != NULL)
        c->refused = arena_printf(a, "%s; and they differ in %s", plan_words(c, a), c->allow);
    else if (c->needs_common)
        c->refused = plan_words(c, a);
    else if (c->allow != NULL)
        c->refused = arena_printf(a, "the two runs differ in %s", c->allow);
}

void compare_pair(const struct baseline *before, const struct baseline *now,
                  const struct compare_options *options, struct arena *a, struct comparison *out) {
    *out = (struct comparison){.before = before, .now = now, .margin = options->margin};
    int *models = compare_models(before, now, options, a);
    match(out, models, a);
    match_constraints(out, a);
    compare_identity(out, models, options, a);
    out->plans_differ = out->only_before > 0 || out->only_now > 0 || out->only_constraints > 0;
    out->needs_common = out->plans_differ && !options->common;
    refuse(out, a);
}
