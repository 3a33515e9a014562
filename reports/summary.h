// What a report shows, computed by evals/summarize.c from a record alone and rendered by reports/.
// Plain data in the report's arena: no renderer computes a rate, an interval or a verdict.
#ifndef LACUNA_REPORTS_SUMMARY_H
#define LACUNA_REPORTS_SUMMARY_H

#include "reports/record.h"

// A rate with its interval (Wilson, or clustered by repeat). `n` counts trials, `repeats` the
// draws.
struct summary_rate {
    int n, met, repeats;
    double rate, low, high; // 0..1; meaningless when n == 0
    double effective;       // how many independent trials the interval takes them for
    bool underpowered; // fewer than 10 repeats: an interval is shown, no verdict is built on it
    int finished_n, finished_met; // replies that ended by themselves
    int omitted, violated, unscored, near;
    int copied; // replies that state the value of a distractor
};

// One cell of the heat map: model x length x placement row x place, for one constraint.
struct summary_cell {
    int length; // index into lengths
    int column; // index into `places`
    struct summary_rate rate;
    double lift; // rate minus the absent arm's at the same length
    bool has_lift;
    int32_t depth_real_low, depth_real_high; // thousandths of a per cent over its trials
    int32_t depth_mean; // of what the row moves: where the curve shows the cell; -1: nowhere
    uint32_t tokens_low, tokens_high; // real lengths of its prompts
    // Whether a sliding window lets the reply see it: "directly", "relayed", "out of reach", or of
    // how many trials each is true. NULL: the model has no window.
    const char *in_window;
};
// A placement row at one place ("order-moves@middle").
struct summary_place {
    const char *placement; // id of the row
    const char *place;     // "start", "25%", "in_system"
    int32_t depth;         // thousandths of a per cent, -1 for an anchor
    const char *moved; // ids of the moved constraints, "order", "order+day", "each of order, day"
};

// One constraint in one model: cells, prior and ceiling, and what they say in words.
struct summary_table {
    const char *model, *constraint; // constraint "all": every constraint of the trial met
    struct summary_cell *cells;
    int cell_count;
    struct summary_rate *absent; // [length_count], n = 0 when the arm is off
    struct summary_rate brief;   // the short arm
    const char *
        *remarks; // "The model says this anyway: ...", "Not understood even when short: ..."
    int remark_count;
};

// A number with its interval, lengths pooled. Below 10 repeats it has none.
struct summary_estimate {
    bool defined, has_interval;
    double value, low, high;
    int repeats;
};
// All (pass^k) and any (pass@k) of k samples of a prompt met.
struct summary_samples {
    int k;
    struct summary_estimate all, any;
};

// What a placement row says about one constraint in one model, in a few numbers.
struct summary_aggregate {
    const char *model, *constraint, *placement; // constraint "all": every constraint met
    struct summary_rate rate;                   // all placed cells of the row together
    struct summary_rate absent, brief;          // the other arms, n = 0 when off
    double level;                               // of the effective length
    const char *effective;                      // the effective length in words
    struct summary_estimate middle_gap;         // mean(start, end) - middle
    struct summary_estimate primacy, recency;   // start - middle, end - middle
    struct summary_estimate area;               // mean rate between its outermost depths
    int32_t area_from, area_to;                 // these depths, thousandths of a per cent
    struct summary_samples *samples;
    int sample_count;
};

// Between models: what makes a repeat of both a pair.
enum summary_pairing { PAIRING_NONE, PAIRING_TEXT, PAIRING_IDS };

struct summary_contrast {
    const char *other; // between models: the second one; NULL between places
    enum summary_pairing pairing;
    const char *model, *constraint, *placement, *name; // "middle_against_ends"
    const char *scope;                                 // "length 512", "all lengths"
    bool primary, defined;
    int repeats, nonzero;
    double effect, low, high; // difference of rates; interval when has_interval
    bool has_interval, underpowered;
    double p, p_holm;     // two-sided; p_holm over the exploratory family; shown with an interval
    double q;             // places_alike: Cochran's Q
    const char *sentence; // what it says, in words
};

enum summary_gate_result { GATE_PASSED, GATE_FAILED, GATE_UNDECIDED };
struct summary_gate {
    const char *id, *text; // text: the gate in words
    enum summary_gate_result result;
    int n, repeats; // trials that were looked at
    double value, low, high;
    const char *measured; // "41/60 met", "drop 3.2 points", "2/720 changed"
    const char *why;      // "lower bound 0.43 is below 0.6"
    const char *detail;   // trials that flipped or changed, one a line; "": none
};

struct summary_count {
    const char *what; // "invalid: placement", "unscored: cut"
    int64_t count;
    double share; // of its denominator
    bool beyond_tolerated;
};

struct summary_model {
    const char *id, *name, *sha256, *numerics, *backend, *tensor_types;
    int64_t planned, done, ok, invalid, error;
    int64_t unscored; // ok trials with an unscored verdict
};

// A table that only some experiments have, as finished texts.
struct summary_grid {
    const char *title, *note; // note: what stands in it
    const char *const *heads; // [column_count]
    int column_count;
    const char *const **rows; // [row_count][column_count]
    int row_count;
    const char **sentences; // what it says
    int sentence_count;
};

// Where the heads of a model look while it replies, for a constraint in a row that moves it: means
// over replies, lengths pooled.
struct summary_head_map {
    const char *place;
    int n;          // replies
    double tokens;  // the constraint's share of the tokens
    double *shares; // [layers][heads] of the attention
};
struct summary_heads {
    const char *model, *constraint, *placement;
    int layers, heads;
    struct summary_head_map *maps; // one a place, in the order of places
    int map_count;
};

struct summary {
    const char *experiment, *request_sha256, *plan_sha256, *ledger_sha256;
    const char *evidence_sha256; // NULL: nothing was watched
    bool partial, complete;
    struct summary_model *models;
    int model_count;
    const char **constraints; // ids; texts with their variables as written beside them
    const char **constraint_texts, **constraint_kinds;
    int constraint_count;
    int *lengths;
    int length_count;
    struct summary_place *places;
    int place_count;
    int repeats, samples;
    int64_t planned, done, ok, invalid, error;
    struct summary_count *counts; // what is not in the rates, or in them as not met: shown on top
    int count_count;
    struct summary_table *tables; // models x (constraints, then "all" of several)
    int table_count;
    struct summary_aggregate *aggregates; // models x rows x (constraints that move, then "all")
    int aggregate_count;
    struct summary_contrast *contrasts; // the primary first
    int contrast_count;
    struct summary_contrast *model_contrasts; // the first model minus the other
    int model_contrast_count;
    struct summary_gate *gates;
    int gate_count;
    struct summary_grid *grids; // spread between wordings, conflicts, attention
    int grid_count;
    struct summary_heads *heads; // of full evidence
    int heads_count;
    const char **warnings; // shown on top
    int warning_count;
    const char *does_not_show; // a paragraph made from the design
    const char *audit; // "The checks agree with a human on 58 of 60 ...", or that nobody looked
};

// Renderers: append to `out`. Equal records give equal bytes.
int report_html(const struct record *r, const struct summary *s, struct buf *out, struct err *e);
int report_markdown(const struct record *r, const struct summary *s, struct buf *out,
                    struct err *e);
int report_csv(const struct record *r, const struct summary *s, struct buf *out, struct err *e);
int report_junit(const struct record *r, const struct summary *s, struct buf *out, struct err *e);
// The small table for the terminal: length x place, met / n, interval.
void report_terminal(const struct summary *s, struct buf *out);

#endif
