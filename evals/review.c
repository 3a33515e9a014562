#include "evals/review.h"

#include "engine/base/rng.h"
#include "reports/escape.h"
#include "reports/record_map.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINTS_MOST = 20 };

static const char *const label_names[] = {"met", "omitted", "violated", "unsure"};

const char *review_label_name(enum review_label l) {
    return label_names[l];
}

// False: the check claims nothing.
bool review_label_of(const struct record_verdict *v, enum review_label *out) {
    *out = v->verdict == VERDICT_MET        ? REVIEW_MET
           : v->verdict == VERDICT_VIOLATED ? REVIEW_VIOLATED
                                            : REVIEW_OMITTED;
    return v->verdict != VERDICT_UNSCORED || strncmp(v->reason, "check:", 6) != 0;
}

// ---- drawing ----

static void row_id(const struct record *r, const char *key, const char *constraint, char out[13]) {
    struct buf b = {0};
    char hex[HASH_HEX_SIZE];
    buf_printf(&b, "%s %s %s", r->ledger_sha256, key, constraint);
    hash_bytes(b.p, b.n, hex);
    snprintf(out, 13, "r%.11s", hex);
    buf_free(&b);
}

struct stratum {
    struct review_row *rows;
    uint32_t count, drawn, *order;
};

static void strata_fill(const struct record *r, const struct experiment *x, struct stratum *strata,
                        struct arena *a) {
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *o = r->outcomes[i];
        if (o == NULL || o->status != STATUS_OK) continue;
        for (int k = 0; k < o->verdict_count; k++) {
            const struct record_verdict *v = &o->verdicts[k];
            int constraint = 0;
            while (constraint < x->constraint_count &&
                   strcmp(x->constraints[constraint].id, v->constraint) != 0)
                constraint++;
            enum review_label said;
            if (constraint == x->constraint_count || !review_label_of(v, &said)) continue;
            struct stratum *s = &strata[constraint * REVIEW_CLASSES + (int)said];
            s->rows = arena_more(a, s->rows, s->count, sizeof *s->rows);
            s->rows[s->count++] = (struct review_row){
                .trial = i, .constraint = constraint, .said = said, .human = REVIEW_UNSURE};
        }
    }
}

static uint32_t *shuffled(uint64_t seed, const char *scope, const char *name, uint32_t count,
                          struct arena *a) {
    struct rng rng = rng_open(seed, scope, name);
    uint32_t *order = arena_array(a, (size_t)count + 1, sizeof *order);
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    rng_shuffle(&rng, order, count);
    return order;
}

// One row to each stratum in turn, in a drawn order, until there are enough.
static int share_out(struct stratum *strata, uint32_t count, const uint32_t *order, int sample) {
    int drawn = 0;
    for (bool any = true; any && drawn < sample;) {
        any = false;
        for (uint32_t i = 0; i < count && drawn < sample; i++) {
            struct stratum *s = &strata[order[i]];
            if (s->drawn == s->count) continue;
            s->drawn++;
            drawn++;
            any = true;
        }
    }
    return drawn;
}

int review_draw(const struct record *r, const struct experiment *x, int sample, uint64_t seed,
                struct arena *a, struct review_rows *out, struct err *e) {
    uint32_t count = (uint32_t)x->constraint_count * REVIEW_CLASSES;
    struct stratum *strata = arena_array(a, (size_t)count + 1, sizeof *strata);
    const char *scope = arena_printf(a, "review %s", r->ledger_sha256);
    *out = (struct review_rows){.population = arena_array(a, (size_t)count + 1, sizeof(int))};
    strata_fill(r, x, strata, a);
    int drawn = share_out(strata, count, shuffled(seed, scope, "strata", count, a), sample);
    if (drawn == 0) FAIL(e, ERR_RECORD, "%s: has no verdict to review", r->folder);
    struct review_row *rows = arena_array(a, (size_t)drawn, sizeof *rows);
    int n = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct stratum *s = &strata[i];
        const char *name = arena_printf(a, "%s %s", x->constraints[i / REVIEW_CLASSES].id,
                                        label_names[i % REVIEW_CLASSES]);
        uint32_t *order = shuffled(seed, scope, name, s->count, a);
        out->population[i] = (int)s->count;
        out->population_all += s->count;
        for (uint32_t k = 0; k < s->drawn; k++) rows[n++] = s->rows[order[k]];
    }
    assert(n == drawn);
    uint32_t *order = shuffled(seed, scope, "rows", (uint32_t)drawn, a);
    out->rows = arena_array(a, (size_t)drawn, sizeof *out->rows);
    out->count = drawn;
    for (int i = 0; i < drawn; i++) {
        struct review_row *row = &out->rows[i];
        *row = rows[order[i]];
        row_id(r, r->trials[row->trial].key, x->constraints[row->constraint].id, row->id);
    }
    return 0;
}

// ---- the file ----

// The constraint as the model saw it: the trial's wording and variables.
static int constraint_text(const struct record_trial *t, const struct experiment_constraint *c,
                           struct arena *a, struct str *out, struct err *e) {
    struct str text = c->text;
    for (int i = 0; i < t->variant_count; i++)
        if (strcmp(t->variants[i].constraint, c->id) == 0 && t->variants[i].variant >= 1 &&
            t->variants[i].variant <= c->variant_count)
            text = c->variants[t->variants[i].variant - 1];
    struct variable *vars = arena_array(a, (size_t)t->var_count + 1, sizeof *vars);
    int count = 0;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < t->var_count; i++)
            if ((strcmp(t->vars[i].constraint, c->id) == 0) == (own == 1))
                vars[count++] = (struct variable){t->vars[i].name, t->vars[i].value};
    return variables_replace(text, vars, count, c->id, a, out, e);
}

int review_csv(const struct record *r, const struct experiment *x, const struct review_rows *rows,
               struct arena *a, struct buf *out, struct err *e) {
    buf_add_c(out, "id,constraint,reply,human\r\n");
    for (int i = 0; i < rows->count; i++) {
        const struct review_row *row = &rows->rows[i];
        const struct record_outcome *o = r->outcomes[row->trial];
        struct str text;
        TRY(constraint_text(&r->trials[row->trial], &x->constraints[row->constraint], a, &text, e));
        buf_printf(out, "%s,", row->id);
        escape_csv(out, text);
        buf_add_char(out, ',');
        escape_csv(out, str_slice(o->reply, o->answer[0], o->answer[1]));
        buf_add_c(out, ",\r\n");
    }
    return 0;
}

static int column_named(const struct case_table *t, const char *name) {
    for (int i = 0; i < t->column_count; i++)
        if (strcmp(t->columns[i], name) == 0) return i;
    return -1;
}

struct complaints {
    struct buf text;
    int count;
};

__attribute__((format(printf, 2, 3))) static void complain(struct complaints *c, const char *format,
                                                           ...) {
    if (c->count++ >= COMPLAINTS_MOST) return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buf_printf(&c->text, "\n%s", line);
}

static void read_row(const struct case_row *from, int human, struct review_rows *rows,
                     const struct record_map *ids, bool *seen, struct complaints *c) {
    int64_t index = record_map_get(ids, from->id);
    if (index < 0) {
        complain(c, "%s: is no row of this sample", from->id);
        return;
    }
    struct review_row *row = &rows->rows[index];
    struct str said = str_trim(from->values[human]);
    seen[index] = true;
    for (int i = 0; i <= REVIEW_UNSURE; i++) {
        if (!str_equal_c(said, label_names[i])) continue;
        row->human = (enum review_label)i;
        return;
    }
    complain(c, "%s: human is \"%.*s\"; expected met, omitted, violated or unsure", from->id,
             (int)(said.n < 40 ? said.n : 40), said.p);
}

int review_read(const char *path, struct review_rows *rows, struct arena *a, struct err *e) {
    struct case_table table;
    if (!str_ends(str_from(path), STR(".csv")))
        FAIL(e, ERR_INPUT, "%s: a filled-in sample is a file that ends in .csv", path);
    TRY(cases_load(path, "id", a, &table, e));
    int human = column_named(&table, "human");
    if (human < 0) FAIL(e, ERR_INPUT, "%s: has no column 'human'", path);
    bool *seen = arena_array(a, (size_t)rows->count, sizeof *seen);
    struct complaints c = {0};
    struct record_map *ids = record_map_open();
    for (int i = 0; i < rows->count; i++) record_map_put(ids, rows->rows[i].id, i);
    for (int i = 0; i < table.row_count; i++) read_row(&table.rows[i], human, rows, ids, seen, &c);
    record_map_close(ids);
    for (int i = 0; i < rows->count; i++)
        if (!seen[i]) complain(&c, "%s: is missing", rows->rows[i].id);
    int result = 0;
    if (c.count > COMPLAINTS_MOST)
        buf_printf(&c.text, "\n... and %d more", c.count - COMPLAINTS_MOST);
    if (c.count > 0)
        result = ERR_SET(e, ERR_INPUT,
                         "%s: is not the filled-in sample (give --sample and --seed as when it was "
                         "written):%s",
                         path, c.text.p);
    buf_free(&c.text);
    return result;
}
