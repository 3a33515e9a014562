// The run loop: plan, submit in plan order, judge, append to the record. Owns order and durability;
// knows no model and no terminal but the progress line.
#ifndef LACUNA_EVALS_RUN_H
#define LACUNA_EVALS_RUN_H

#include "evals/experiment.h"
#include "reports/record.h"

struct run_options {
    const char *folder;      // -o, or NULL: runs/NAME-<12 hex of the request>
    const char *runs_folder; // "runs"
    int threads;
    const char *op_table; // of the CPU, by name; NULL: the fastest
    const char *cache;    // folder of what later runs may use again; NULL: none
    uint64_t memory_bytes;
    const char *(*variable)(const char *name); // of the environment; NULL: no keys are at hand
    int64_t cost_most;                         // in COST_UNITs of evals/cost.h; 0: not bounded
    bool retry_errors;                         // trials that ended in `error` get another attempt
    // Folders of other runs of this experiment (its shards): their replies are taken over, and no
    // model is run.
    const char *const *shards;
    int shard_count;
    // Folders of older runs, of this experiment or another: a reply that one of them has is not
    // computed again (evals/reuse.h), verdicts are made anew.
    const char *const *reuse;
    int reuse_count;
};

struct run_result {
    const char *folder;
    bool was_complete; // nothing was left to do
    bool interrupted;
    bool over_cost; // stopped before something that could go beyond cost_most
    int64_t done, planned;
};

// Runs or resumes. Ctrl-C (run_interrupt from a signal handler) ends it cleanly with interrupted
// set.
int run_experiment(const struct experiment *x, const struct run_options *options, struct arena *a,
                   struct run_result *out, struct err *e);
void run_interrupt(void);

struct report_options {
    const char *folder; // where reports go; NULL: into the record's
    bool without_texts; // nothing of a prompt, a reply or a check stands in them
};
// Writes report.html, report.md, results.csv and junit.xml from the record of a folder. `options`
// NULL: as they are made by a run.
int run_report(const char *folder, const struct report_options *options, struct arena *a,
               int *exit_code, struct buf *terminal, struct err *e);

#endif
