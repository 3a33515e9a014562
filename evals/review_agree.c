// How far a person and the checks agree, and what the record keeps of it.
#include "evals/review.h"

#include "engine/base/file.h"
#include "evals/stats_agreement.h"
#include "evals/stats_wilson.h"

#include <stdio.h>
#include <string.h>

#define REVIEW_BYTES_MOST ((size_t)64 << 20)

// ---- agreement ----

struct weighing {
    int judged, agreed; // of the stratum
};

void review_agree(const struct review_rows *rows, int constraint_count, int constraint,
                  struct review_agreement *out) {
    *out = (struct review_agreement){0};
    double weighted[REVIEW_CLASSES][REVIEW_CLASSES] = {{0}}, all = 0, covered = 0, squares = 0;
    double agreed = 0, disagreed = 0;
    for (int s = 0; s < constraint_count * REVIEW_CLASSES; s++) {
        if (constraint >= 0 && s / REVIEW_CLASSES != constraint) continue;
        struct weighing w = {0};
        int humans[REVIEW_CLASSES] = {0};
        for (int i = 0; i < rows->count; i++) {
            const struct review_row *r = &rows->rows[i];
            if (r->constraint * REVIEW_CLASSES + (int)r->said != s) continue;
            out->rows++;
            out->unsure += r->human == REVIEW_UNSURE;
            if (r->human == REVIEW_UNSURE) continue;
            w.judged++;
            w.agreed += r->human == r->said;
            humans[r->human]++;
            out->table[r->said][r->human]++;
        }
        all += rows->population[s];
        if (w.judged == 0) continue;
        double weight = (double)rows->population[s] / w.judged;
        covered += rows->population[s];
        squares += weight * weight * w.judged;
        agreed += weight * w.agreed;
        disagreed += weight * (w.judged - w.agreed);
        out->agreed += w.agreed;
        for (int k = 0; k < REVIEW_CLASSES; k++)
            weighted[s % REVIEW_CLASSES][k] += weight * humans[k];
    }
    out->judged = out->rows - out->unsure;
    if (out->judged == 0) return;
    double effective = covered * covered / squares;
    out->share = agreed / (agreed + disagreed); // not above 1, as agreed / covered can be
    out->covered = covered / all;
    out->interval = stats_wilson(out->share * effective, effective);
    out->has_kappa = stats_kappa(weighted[0], REVIEW_CLASSES, &out->kappa);
}

// ---- kept in the record ----

static json_t *row_json(const struct record *r, const struct experiment *x,
                        const struct review_row *row) {
    json_t *o = json_object();
    json_put(o, "id", json_text_c(row->id));
    json_put(o, "trial", json_integer(row->trial));
    json_put(o, "key", json_text_c(r->trials[row->trial].key));
    json_put(o, "constraint", json_text_c(x->constraints[row->constraint].id));
    json_put(o, "check", json_text_c(review_label_name(row->said)));
    json_put(o, "human", json_text_c(review_label_name(row->human)));
    return o;
}

int review_store(const struct record *r, const struct experiment *x, const struct review_rows *rows,
                 uint64_t seed, const char *csv_sha256, struct arena *a, const char **path,
                 bool *written, struct err *e) {
    json_t *o = json_object(), *of = json_object(), *list = json_array();
    json_put(of, "identity_sha256", json_text_c(r->identity_sha256));
    json_put(of, "ledger_sha256", json_text_c(r->ledger_sha256));
    for (int i = 0; i < rows->count; i++)
        json_array_append_new(list, row_json(r, x, &rows->rows[i]));
    json_put(o, "format", json_integer(RECORD_FORMAT));
    json_put(o, "review_of", of);
    json_put(o, "seed", json_integer((json_int_t)seed));
    json_put(o, "rows", list);
    struct buf text = {0};
    char hex[HASH_HEX_SIZE];
    json_compact(o, &text); // the same labels in a file that was saved again are the same review
    hash_bytes(text.p, text.n, hex);
    json_put(o, "csv_sha256", json_text_c(csv_sha256));
    buf_clear(&text);
    json_compact(o, &text);
    buf_add_char(&text, '\n');
    json_decref(o);
    const char *folder = path_join(a, r->folder, "reviews");
    *path = path_join(a, folder, arena_printf(a, "review-%.12s.json", hex));
    *written = !file_exists(*path);
    int result = file_make_directory(folder, e);
    if (result == 0 && *written) result = file_write_atomic(*path, buf_str(&text), e);
    buf_free(&text);
    return result;
}

static bool label_named(const json_t *o, const char *key, enum review_label *out) {
    const char *text = json_string_value(json_object_get(o, key));
    for (int i = 0; text != NULL && i <= REVIEW_UNSURE; i++) {
        *out = (enum review_label)i;
        if (strcmp(text, review_label_name(*out)) == 0) return true;
    }
    return false;
}

struct audit {
    int reviews, judged, agreed, unsure;
};

// What the record's verdict on this row is now; false: it claims nothing any more.
static bool verdict_now(const struct record *r, const json_t *row, enum review_label *out) {
    const char *key = json_string_value(json_object_get(row, "key"));
    const char *constraint = json_string_value(json_object_get(row, "constraint"));
    int64_t trial = key == NULL ? -1 : record_find(r, key);
    if (trial < 0 || constraint == NULL || r->outcomes[trial] == NULL) return false;
    const struct record_outcome *o = r->outcomes[trial];
    for (int i = 0; i < o->verdict_count; i++)
        if (strcmp(o->verdicts[i].constraint, constraint) == 0)
            return review_label_of(&o->verdicts[i], out);
    return false;
}

// A file's name holds the hash of all but the CSV's hash.
static bool is_named_by_content(const json_t *o, const char *path) {
    json_t *rest = json_copy((json_t *)(uintptr_t)o);
    struct buf text = {0};
    char hex[HASH_HEX_SIZE], name[32];
    json_object_del(rest, "csv_sha256");
    json_compact(rest, &text);
    json_decref(rest);
    hash_bytes(text.p, text.n, hex);
    buf_free(&text);
    snprintf(name, sizeof name, "review-%.12s.json", hex);
    return strcmp(path_name(path), name) == 0;
}

static int add_review(const struct record *r, const json_t *o, const char *path,
                      struct audit *audit, struct err *e) {
    const json_t *of = json_object_get(o, "review_of"), *rows = json_object_get(o, "rows");
    const char *ledger = json_string_value(json_object_get(of, "ledger_sha256"));
    if (ledger == NULL || !json_is_array(rows))
        FAIL(e, ERR_RECORD, "%s: is no review that this program wrote; move it away", path);
    if (!is_named_by_content(o, path))
        FAIL(e, ERR_RECORD, "%s: was changed after it was written; move it away", path);
    if (strcmp(ledger, r->ledger_sha256) != 0) return 0; // of a ledger that has grown since
    audit->reviews++;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        enum review_label human, now;
        if (!label_named(row, "human", &human))
            FAIL(e, ERR_RECORD, "%s: row %zu has no label; move it away", path, i);
        if (human == REVIEW_UNSURE) {
            audit->unsure++;
        } else if (verdict_now(r, row, &now)) {
            audit->judged++;
            audit->agreed += now == human;
        }
    }
    return 0;
}

int review_sentence(const struct record *r, struct arena *a, const char **out, struct err *e) {
    struct audit audit = {0};
    *out = "The checks were never audited by a human.";
    if (r->folder == NULL) return 0;
    const char *folder = path_join(a, r->folder, "reviews");
    if (!file_is_directory(folder)) return 0;
    char **names;
    size_t count;
    TRY(file_list(folder, a, &names, &count, e));
    for (size_t i = 0; i < count; i++) {
        json_t *o;
        const char *path = path_join(a, folder, names[i]);
        if (!str_starts(str_from(names[i]), STR("review-"))) continue;
        TRY(json_read_file(path, REVIEW_BYTES_MOST, &o, e));
        int result = add_review(r, o, path, &audit, e);
        json_decref(o);
        TRY(result);
    }
    if (audit.reviews == 0) return 0;
    const char *unsure = audit.unsure > 0 ? arena_printf(a, ", %d unsure", audit.unsure) : "";
    const char *several = audit.reviews > 1 ? arena_printf(a, ", %d reviews", audit.reviews) : "";
    *out = arena_printf(a, "The checks agree with a human on %d of %d sampled verdicts%s%s.",
                        audit.agreed, audit.judged, unsure, several);
    return 0;
}
