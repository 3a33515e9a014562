// lacuna compare: a run against a baseline, trial by trial.
#include "evals/cli.h"
#include "evals/compare.h"
#include "evals/judge.h"
#include "evals/run_setup.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <string.h>

struct comparing {
    const char *words[2]; // BASELINE RUN
    const char *output;   // folder, or NULL
    struct cli_list allow;
    int64_t margin_points;
    bool common, json;
    const char *allowed[CLI_LIST_MOST];
    int allowed_count;
    struct comparison result;
};

// ---- what is allowed ----

static int allow_word(struct comparing *c, const char *word, struct err *e) {
    size_t known = 0;
    for (; compare_fields[known] != NULL; known++) {
        if (strcmp(compare_fields[known], word) != 0) continue;
        if (c->allowed_count < CLI_LIST_MOST) c->allowed[c->allowed_count++] = word;
        return 0;
    }
    const char *near = str_nearest(word, compare_fields, known);
    FAIL(e, ERR_USAGE,
         "--allow: there is no field '%s'%s%s%s; there are model, tokenizer, template, numerics, "
         "backend, generation, checks, prompts",
         word, near == NULL ? "" : ", did you mean '", near == NULL ? "" : near,
         near == NULL ? "" : "'?");
}

static int read_allowances(struct comparing *c, struct arena *a, struct err *e) {
    for (int i = 0; i < c->allow.count; i++) {
        struct str list = str_from(c->allow.items[i]);
        for (size_t at = 0; at <= list.n;) {
            size_t comma = str_find(list, STR(","), at);
            if (comma == STR_NONE) comma = list.n;
            TRY(allow_word(c, str_to_c(a, str_trim(str_slice(list, at, comma))), e));
            at = comma + 1;
        }
    }
    return 0;
}

// ---- output ----

static void print_clean(struct buf *text) {
    if (text->p != NULL) cli_print_clean(stdout, text->p);
    buf_free(text);
}

// The command to type when something has to be allowed first.
static void print_remedy(const struct comparing *c) {
    const struct comparison *r = &c->result;
    if (r->refused == NULL || (r->allow == NULL && !r->needs_common)) return;
    if (r->pair_count == 0 || r->constraint_count == 0) return;
    struct buf text = {0};
    buf_printf(&text, "If that is what you want to compare, say so:\n  lacuna compare %s %s",
               c->words[0], c->words[1]);
    if (r->allow != NULL) buf_printf(&text, " --allow %s", r->allow);
    if (r->plans_differ) buf_add_c(&text, " --common");
    buf_add_char(&text, '\n');
    print_clean(&text);
}

static void print_text(const struct comparing *c) {
    struct buf text = {0};
    compare_terminal(&c->result, &text);
    print_clean(&text);
    print_remedy(c);
}

static json_t *fields_json(const struct comparison *c) {
    json_t *list = json_array();
    for (int i = 0; i < c->field_count; i++) {
        const struct comparison_field *f = &c->fields[i];
        json_t *o = json_object();
        json_put(o, "field", json_text_c(f->field));
        json_put(o, "where", json_text_c(f->where));
        json_put(o, "before", json_text_c(f->before));
        json_put(o, "now", json_text_c(f->after));
        json_put(o, "needs_allowance", json_boolean(!f->harmless));
        json_put(o, "allowed", json_boolean(f->allowed));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *rows_json(const struct comparison *c) {
    json_t *list = json_array();
    for (int i = 0; i < c->row_count; i++) {
        const struct comparison_row *r = &c->rows[i];
        json_t *o = json_object();
        json_put(o, "model", json_text_c(r->model));
        json_put(o, "constraint", json_text_c(r->constraint));
        json_put(o, "scope", json_text_c(r->scope));
        json_put(o, "overall", json_boolean(r->overall));
        json_put(o, "answer", json_text_c(comparison_answer_name(r->answer)));
        json_put(o, "pairs", json_integer(r->pairs));
        json_put(o, "identical", json_integer(r->identical));
        json_put(o, "repeats", json_integer(r->repeats));
        json_put(o, "met_before", json_integer(r->met_before));
        json_put(o, "met_now", json_integer(r->met_now));
        json_put(o, "lost", json_integer(r->lost));
        json_put(o, "won", json_integer(r->won));
        json_put(o, "change_ppm", json_ppm(r->effect));
        json_put(o, "low_ppm", r->has_interval ? json_ppm(r->low) : json_null());
        json_put(o, "high_ppm", r->has_interval ? json_ppm(r->high) : json_null());
        json_put(o, "p_ppm", r->has_interval ? json_ppm(r->p) : json_null());
        json_put(o, "p_holm_ppm", r->has_interval ? json_ppm(r->p_holm) : json_null());
        json_put(o, "sentence", json_text_c(r->sentence));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *changed_json(const struct comparison *c) {
    json_t *list = json_array();
    for (int64_t i = 0; i < c->pair_count; i++) {
        const struct comparison_pair *p = &c->pairs[i];
        if (p->identical || p->before->verdicts == NULL || p->now->verdicts == NULL) continue;
        json_t *o = json_object();
        json_put(o, "key", json_text_c(p->now->key));
        json_put(o, "same_prompt", json_boolean(p->same_prompt));
        json_put(o, "first_token", p->first_token < 0 ? json_null() : json_integer(p->first_token));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *flips_json(const struct comparison *c) {
    json_t *list = json_array();
    for (int64_t i = 0; i < c->flip_count; i++) {
        const struct comparison_flip *f = &c->flips[i];
        json_t *o = json_object();
        json_put(o, "key", json_text_c(f->pair->now->key));
        json_put(o, "constraint", json_text_c(f->constraint));
        json_put(o, "before", json_text_c(verdict_name(f->before)));
        json_put(o, "now", json_text_c(verdict_name(f->now)));
        json_array_append_new(list, o);
    }
    return list;
}

static void print_json(const struct comparison *c) {
    json_t *o = json_object(), *warnings = json_array();
    for (int i = 0; i < c->warning_count; i++)
        json_array_append_new(warnings, json_text_c(c->warnings[i]));
    json_put(o, "baseline", json_text_c(c->before->path));
    json_put(o, "run", json_text_c(c->now->path));
    json_put(o, "headline", json_text_c(c->headline));
    json_put(o, "refused", json_text_c(c->refused));
    json_put(o, "allow", json_text_c(c->allow));
    json_put(o, "identity", fields_json(c));
    json_put(o, "common_trials", json_integer(c->pair_count));
    json_put(o, "only_in_baseline", json_integer(c->only_before));
    json_put(o, "only_in_run", json_integer(c->only_now));
    json_put(o, "replies_compared", json_integer(c->compared));
    json_put(o, "changed_replies", json_integer(c->compared - c->identical));
    json_put(o, "comparisons", rows_json(c));
    json_put(o, "changed", changed_json(c));
    json_put(o, "flips", flips_json(c));
    json_put(o, "gates", cli_gates_json(c->gates, c->gate_count));
    json_put(o, "warnings", warnings);
    cli_print_json(o);
}

// ---- files ----

static int write_file(const char *folder, const char *name, struct buf *text, struct arena *a,
                      struct err *e) {
    int result = file_write_atomic(path_join(a, folder, name), buf_str(text), e);
    buf_free(text);
    return result;
}

static int write_files(const struct comparing *c, struct arena *a, struct err *e) {
    struct buf html = {0}, markdown = {0}, junit = {0};
    if (c->output == NULL) return 0;
    TRY(file_make_directory(c->output, e));
    if (compare_html(&c->result, &html, e) != 0) {
        buf_free(&html);
        return -1;
    }
    TRY(write_file(c->output, "compare.html", &html, a, e));
    compare_markdown(&c->result, &markdown);
    TRY(write_file(c->output, "compare.md", &markdown, a, e));
    compare_junit(&c->result, &junit);
    return write_file(c->output, "compare-junit.xml", &junit, a, e);
}

// ---- the verb ----

struct side {
    struct record *record; // NULL: a file
    struct baseline baseline;
    bool open;
};

static int open_side(const char *path, bool run_only, struct arena *a, struct side *s,
                     struct err *e) {
    if (!run_only && !file_exists(path))
        FAIL(e, ERR_UNDECIDED,
             "%s: there is no such baseline; `lacuna baseline RUN -o FILE` makes one of a run",
             path);
    if (!run_only && !file_is_directory(path)) {
        TRY(baseline_read(path, a, &s->baseline, e));
    } else {
        TRY(record_open(path, a, &s->record, e));
        TRY(baseline_of_record(s->record, a, &s->baseline, e));
    }
    s->open = true;
    return 0;
}

static void close_side(struct side *s) {
    if (s->open) baseline_close(&s->baseline);
    record_close(s->record);
}

static int compare(struct comparing *c, struct side *before, struct side *now,
                   struct experiment **x, struct arena *a, struct err *e) {
    TRY(read_allowances(c, a, e));
    TRY(open_side(c->words[0], false, a, before, e));
    TRY(open_side(c->words[1], true, a, now, e));
    TRY(run_recorded_experiment(now->record, c->words[1], a, x, e));
    TRY(judge_trust(now->record, *x, e));
    struct compare_options options = {.allow = c->allowed,
                                      .allow_count = c->allowed_count,
                                      .common = c->common,
                                      .margin = (double)c->margin_points / 100,
                                      .seed = (*x)->seed};
    compare_runs(&before->baseline, &now->baseline, &options, a, &c->result);
    TRY(compare_gates(&c->result, now->record, *x, &options, a, e));
    TRY(write_files(c, a, e));
    if (c->json)
        print_json(&c->result);
    else
        print_text(c);
    if (fflush(stdout) != 0) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

int cli_compare(int argc, char **argv) {
    struct comparing c = {.margin_points = (int64_t)(100 * COMPARE_MARGIN)};
    const struct cli_option options[] = {
        {.name = "--allow",
         .value = "FIELDS",
         .list = &c.allow,
         .help = "differences that are meant: model, tokenizer, template, numerics, backend, "
                 "generation, checks, prompts"},
        {.name = "--common",
         .flag = &c.common,
         .help = "where the plans differ, compare the trials that both have"},
        {.name = "--margin",
         .value = "POINTS",
         .number = &c.margin_points,
         .help = "\"underpowered\" when a change of so many points is not excluded; 20"},
        {.name = "--output",
         .short_name = "-o",
         .value = "FOLDER",
         .text = &c.output,
         .help = "writes compare.html, compare.md and compare-junit.xml there"},
        {.name = "--json", .flag = &c.json, .help = "one JSON object instead of text"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, c.words, 2, 2, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    const struct cli_range range = {"--margin", c.margin_points, 1, 100};
    struct arena *a = arena_create("compare");
    struct side before = {0}, now = {0};
    struct experiment *x = NULL;
    int result = cli_check_ranges(&range, 1, &e), exit_code = EXIT_DONE;
    if (result == 0) result = compare(&c, &before, &now, &x, a, &e);
    if (result == 0) exit_code = compare_exit_code(&c.result);
    experiment_close(x);
    close_side(&before);
    close_side(&now);
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}
