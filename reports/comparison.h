// What `lacuna compare` shows, computed by evals/compare.c and rendered by reports/compare_*.c.
// Plain data in the comparison's arena: no renderer computes a rate, an interval or an answer.
#ifndef LACUNA_REPORTS_COMPARISON_H
#define LACUNA_REPORTS_COMPARISON_H

#include "reports/baseline_file.h"
#include "reports/summary.h"

// Something that the two runs do not share, besides the model's own behaviour.
struct comparison_field {
    const char *field;          // "model", "prompts", ...: the word that --allow takes
    const char *where;          // "model smollm2", or ""
    const char *before, *after; // in words
    bool harmless;              // cannot change a verdict: told, and no allowance is asked
    bool allowed;
};

// One trial that both runs have.
struct comparison_pair {
    const struct baseline_trial *before, *now;
    bool same_prompt;
    bool identical;      // reply, its ids where both sides know them, and finish
    int64_t first_token; // the first one that differs; -1: not known
};

enum comparison_answer {
    COMPARE_REGRESSED,
    COMPARE_IMPROVED,
    COMPARE_NO_DIFFERENCE,
    COMPARE_UNDERPOWERED
};
const char *comparison_answer_name(enum comparison_answer a); // "no difference shown"

// A paired comparison: one model, one constraint (or "all": every one of the trial is met), one
// length or all. Effects are the run minus the baseline, per repeat.
struct comparison_row {
    const char *model, *constraint, *scope; // "length 512", "all lengths"
    int length;                             // tokens; 0: all lengths
    bool overall;                           // "all" over all lengths: one a model, tested first
    int pairs, identical, repeats, nonzero; // nonzero: repeats that changed
    int met_before, met_now;                // of `pairs`
    int lost, won;                          // trials that flipped
    int unscored_before, unscored_now;
    double effect, low, high; // interval when has_interval
    bool has_interval;
    double p, p_holm;
    double largest; // the largest change, either way, that the interval leaves possible; else 1
    enum comparison_answer answer;
    const char *sentence;
};

// "-3.1 points (-6.0 to -0.2)".
void comparison_change(const struct comparison_row *r, char out[64]);

// A verdict that changed between met and not met.
struct comparison_flip {
    const struct comparison_pair *pair;
    const char *constraint;
    enum verdict before, now;
};

struct comparison {
    const struct baseline *before, *now;
    struct comparison_field *fields;
    int field_count;
    bool same_identity;  // nothing at all differs, so the replies must be equal byte for byte
    const char *refused; // why nothing was compared, and what to type; NULL: it was compared
    const char *allow;   // words for --allow that are missing, "model,prompts"; NULL: none
    bool plans_differ, needs_common; // needs_common: and only the common trials were not asked for
    int64_t only_before, only_now;   // trials
    int only_constraints;            // of one of the two
    const char **constraints;        // those of both runs
    int *columns_before, *columns_now; // where either side's verdicts have them
    int constraint_count;
    struct comparison_pair *pairs; // in the run's plan order
    int64_t pair_count;
    int64_t compared, identical; // pairs of which both sides have a reply; equal ones
    int64_t not_ok;              // pairs where a side is invalid or an error
    struct comparison_row *rows; // the overall ones first
    int row_count;
    struct comparison_flip *flips; // lost before won, each in plan order
    int64_t flip_count, lost, won;
    double margin; // the change that must be excluded, else "underpowered"
    const char *headline;
    const char **warnings;
    int warning_count;
    struct summary_gate *gates;
    int gate_count;
};

// The outcome of a side's trial, with its reply; NULL when the side keeps hashes only.
const struct record_outcome *comparison_outcome(const struct baseline *b,
                                                const struct baseline_trial *t);

// Renderers: append to `out`. `terminal` is short; the others hold prompts and replies side by side
// as far as the two sides have them.
void compare_terminal(const struct comparison *c, struct buf *out);
void compare_markdown(const struct comparison *c, struct buf *out);
void compare_junit(const struct comparison *c, struct buf *out);
int compare_html(const struct comparison *c, struct buf *out, struct err *e);

#endif
