#include "reports/record_again.h"

#include <string.h>

static int check_again(const struct record_again *again, const struct record_outcome *o,
                       const struct record_trial *trials, int64_t trial_count, const char *where,
                       struct err *e) {
    if (o->trial >= trial_count || strcmp(trials[o->trial].key, o->key) != 0)
        FAIL(e, ERR_RECORD, "%s: the plan has no trial %lld with the key %.200s", where,
             (long long)o->trial, o->key);
    if (o->status != STATUS_OK || o->attempt != 1) FAIL(e, ERR_RECORD, "%s: is no reply", where);
    if (again->of[o->trial] != NULL)
        FAIL(e, ERR_RECORD, "%s: has a second reply to %.200s, which has one", where, o->key);
    return 0;
}

int record_again_open(const char *folder, const json_t *identity,
                      const char identity_sha256[HASH_HEX_SIZE], const struct record_trial *trials,
                      int64_t trial_count, struct arena *a, struct record_again **out,
                      struct err *e) {
    struct record_lines lines;
    const char *path = path_join(a, folder, "again.jsonl");
    *out = NULL;
    if (!file_exists(path)) return 0;
    TRY(record_lines_open(path, &lines, e));
    struct record_again *again = arena_alloc(a, sizeof *again);
    *again = (struct record_again){.bytes = lines.text.n, .torn = lines.tail.n > 0};
    again->of = arena_array(a, (size_t)trial_count, sizeof *again->of);
    memcpy(again->last_sha256, identity_sha256, HASH_HEX_SIZE);
    hash_bytes(lines.text.p, lines.text.n, again->sha256);
    char where[RECORD_WHERE_BYTES];
    struct str line;
    int result = 0;
    while (result == 0 && record_lines_next(&lines, &line, where)) {
        struct record_outcome *o = arena_alloc(a, sizeof *o);
        result = record_ledger_line(line, where, again->count, again->last_sha256, a, o, e);
        if (result == 0) result = record_check_kept(o, record_drops(identity, "replies"), where, e);
        if (result == 0) result = check_again(again, o, trials, trial_count, where, e);
        if (result != 0) break;
        hash_bytes(line.p, line.n, again->last_sha256);
        again->of[o->trial] = o;
        again->count++;
    }
    record_lines_close(&lines);
    *out = again;
    return result;
}

const struct record_outcome *record_get_again(const struct record *r, int64_t trial) {
    return r->again != NULL ? r->again->of[trial] : NULL;
}

bool record_same_text(const struct record_outcome *a, const struct record_outcome *b) {
    return record_same_words(a, b) && strcmp(a->finish, b->finish) == 0;
}

bool record_same_verdicts(const struct record_outcome *a, const struct record_outcome *b) {
    bool same = a->verdict_count == b->verdict_count;
    for (int i = 0; same && i < a->verdict_count; i++)
        same = a->verdicts[i].verdict == b->verdicts[i].verdict;
    return same;
}

struct record_noise record_noise(const struct record *r, const char *model) {
    struct record_noise n = {0};
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *first = r->outcomes[i], *again = record_get_again(r, i);
        if (again == NULL || first == NULL || strcmp(r->trials[i].model, model) != 0) continue;
        n.asked++;
        n.same_text += record_same_text(first, again);
        n.same_verdicts += record_same_verdicts(first, again);
    }
    return n;
}
