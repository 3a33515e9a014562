// Merging: what a record has of the same run is taken over, verdicts made anew.
#include "evals/plan.h"
#include "evals/run_internal.h"

#include <string.h>

// What a reply and its verdict depend on, besides the trial itself.
static int check_shard(const struct run *r, const struct record *shard, struct err *e) {
    static const char *const keys[] = {"generation", "numerics", "backend",
                                       "models",     "evidence", "checks_sha256"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *theirs = json_object_get(shard->identity, keys[i]);
        json_t *ours = json_object_get(r->record->identity, keys[i]);
        if (theirs == NULL || ours == NULL || !json_equal(theirs, ours))
            FAIL(e, ERR_CONFIG, "%s: is no shard of this run: %s differs", shard->folder, keys[i]);
    }
    return 0;
}

static int take_reply(struct run *r, struct record *const *shards, int64_t trial, struct err *e) {
    const struct record_trial *t = &r->record->trials[trial];
    const struct record_outcome *taken = NULL;
    const struct record *from = NULL;
    for (int i = 0; i < r->options->shard_count; i++) {
        int64_t at = record_find(shards[i], t->key);
        const struct record_outcome *known = at < 0 ? NULL : shards[i]->outcomes[at];
        if (known == NULL || known->status == STATUS_ERROR) continue;
        const struct record_trial *then = &shards[i]->trials[at];
        if (!plan_same_stream(then, t) || strcmp(then->prompt_sha256, t->prompt_sha256) != 0 ||
            strcmp(then->ids_sha256, t->ids_sha256) != 0)
            FAIL(e, ERR_CONFIG, "%s: is no shard of this run: its trial %.200s has another prompt",
                 shards[i]->folder, t->key);
        if (taken != NULL && !record_same_reply(taken, known))
            FAIL(e, ERR_CONFIG,
                 "%s: its trial %.200s ended otherwise than in the shards before it; what was "
                 "recorded of one trial must be the same everywhere",
                 shards[i]->folder, t->key);
        taken = known;
        from = shards[i];
    }
    if (taken == NULL) return 0;
    struct arena *a = arena_create("trial");
    struct record_outcome o = *taken;
    int result = record_get_evidence(from, taken->trial, a, &o.evidence, e);
    if (result == 0) result = run_record_one(r, t, &o, NULL, a, e);
    arena_destroy(a);
    return result;
}

// In plan order; what no shard has stays missing, and `run` computes it later.
int run_take_shards(struct run *r, struct err *e) {
    struct arena *a = arena_create("shards");
    int count = r->options->shard_count, result = 0;
    struct record **shards = arena_array(a, (size_t)count + 1, sizeof(struct record *));
    for (int i = 0; result == 0 && i < count; i++) {
        result = record_open(r->options->shards[i], a, &shards[i], e);
        if (result == 0) result = check_shard(r, shards[i], e);
    }
    int64_t *missing, left = record_missing(r->writer, false, a, &missing);
    progress_start(&r->progress, "merge", (uint64_t)left, (uint64_t)left);
    for (int64_t i = 0; result == 0 && i < left; i++) result = take_reply(r, shards, missing[i], e);
    progress_finish(&r->progress);
    for (int i = 0; i < count; i++) record_close(shards[i]);
    arena_destroy(a);
    return result;
}
