// From a record to its four reports. Reports read the record alone; the experiment comes from its
// resolved.json.
#include "evals/run_setup.h"

#include "engine/base/file.h"
#include "evals/judge.h"
#include "evals/summarize.h"

typedef int renderer(const struct record *r, const struct summary *s, struct buf *out,
                     struct err *e);

static int write_report(const struct record *r, const struct summary *s, const char *folder,
                        const char *name, renderer *render, struct arena *a, struct err *e) {
    struct buf text = {0};
    int result = render(r, s, &text, e);
    if (result == 0) result = file_write_atomic(path_join(a, folder, name), buf_str(&text), e);
    buf_free(&text);
    return result;
}

static int write_reports(const struct record *r, const struct summary *s, const char *folder,
                         struct arena *a, struct err *e) {
    TRY(file_make_directory(folder, e));
    TRY(write_report(r, s, folder, "report.html", report_html, a, e));
    TRY(write_report(r, s, folder, "report.md", report_markdown, a, e));
    TRY(write_report(r, s, folder, "results.csv", report_csv, a, e));
    return write_report(r, s, folder, "junit.xml", report_junit, a, e);
}

// Record and experiment as if they had never kept them.
static int forget_texts(struct record *r, struct experiment **x, struct arena *a, struct err *e) {
    json_t *kept = experiment_without_texts(*x);
    experiment_close(*x);
    *x = NULL;
    json_decref(r->resolved);
    r->resolved = kept;
    record_forget_texts(r, a);
    return run_recorded_experiment(r, r->folder, a, x, e);
}

int run_report(const char *folder, const struct report_options *options, struct arena *a,
               int *exit_code, struct buf *terminal, struct err *e) {
    struct record *r;
    struct experiment *x = NULL;
    struct summary s;
    const char *to = options != NULL && options->folder != NULL ? options->folder : folder;
    TRY(record_open(folder, a, &r, e));
    int result = run_recorded_experiment(r, folder, a, &x, e);
    if (result == 0) result = judge_trust(r, x, e);
    if (result == 0 && options != NULL && options->without_texts)
        result = forget_texts(r, &x, a, e);
    if (result == 0) result = summarize(r, x, a, &s, e);
    if (result == 0) result = write_reports(r, &s, to, a, e);
    if (result == 0) {
        *exit_code = summary_exit_code(&s);
        report_terminal(&s, terminal);
    }
    experiment_close(x);
    record_close(r);
    return result;
}
