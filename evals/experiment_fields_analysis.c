// The fields of `tolerate`, `primary` and `gates`.
#include "evals/experiment_fields.h"

#include "evals/compare.h"

#include <stdint.h>

static const char *const arm_words[] = {"placed", "absent", "short", NULL};
// evals/gates.h; in the order of enum gate_metric.
static const char *const metric_words[] = {"met_rate",   "violated_rate",   "lift", "middle_gap",
                                           "regression", "changed_replies", NULL};
static const char *const primary_words[] = {"met_rate", NULL};
static const char *const pool_words[] = {"model", "length", "placement", "depth", NULL};
static const char *const contrast_words[] = {"middle_against_ends", "start_against_end",
                                             "start_against_middle", "end_against_middle", NULL};

const struct field tolerate_fields[] = {
    {.key = "errors",
     .type = FIELD_SHARE,
     .fallback = "0%",
     .help = "share of trials that may end in an error"},
    {.key = "invalid", .type = FIELD_SHARE, .fallback = "0%", .help = "share that may be invalid"},
    {.key = "unscored",
     .type = FIELD_SHARE,
     .fallback = "20%",
     .help = "share of verdicts that may be unscored"},
    {.key = NULL},
};

const struct field primary_fields[] = {
    {.key = "metric",
     .type = FIELD_WORD,
     .words = primary_words,
     .fallback = "met_rate",
     .help = "what is compared"},
    {.key = "of",
     .type = FIELD_NAME,
     .fallback = "all",
     .example = "order",
     .help = "a constraint, or all"},
    {.key = "contrast",
     .type = FIELD_WORD,
     .words = contrast_words,
     .flags = FIELD_REQUIRED,
     .example = "middle_against_ends",
     .help = "which places"},
    {.key = NULL},
};

static const struct field where_fields[] = {
    {.key = "model", .type = FIELD_NAME, .help = "one model; without it, each"},
    {.key = "length", .type = FIELD_INTEGER, .least = 1, .most = INT32_MAX, .help = "one length"},
    {.key = "placement", .type = FIELD_NAME, .help = "one row of placements"},
    {.key = "depth",
     .type = FIELD_PLACE,
     .flags = FIELD_ORDER,
     .help = "one depth or anchor; order-2 of a scattered row"},
    {.key = "arm", .type = FIELD_WORD, .words = arm_words, .fallback = "placed", .help = "one arm"},
    {.key = NULL},
};

const struct field gate_fields[] = {
    {.key = "id", .type = FIELD_NAME, .help = "how reports call it; made from the rest otherwise"},
    {.key = "metric",
     .type = FIELD_WORD,
     .words = metric_words,
     .fallback = "met_rate",
     .help = "what is judged"},
    {.key = "of", .type = FIELD_NAME, .fallback = "all", .help = "a constraint, or all"},
    {.key = "at_least", .type = FIELD_SHARE, .help = "the rate is not below this"},
    {.key = "at_most", .type = FIELD_SHARE, .help = "the rate is not above this"},
    {.key = "baseline",
     .type = FIELD_PATH,
     .help = "regression, changed_replies: a file of `lacuna baseline`"},
    {.key = "allow",
     .type = FIELD_WORD,
     .words = compare_fields,
     .shape = SHAPE_LIST,
     .help = "differences from the baseline that are meant"},
    {.key = "where", .type = FIELD_OBJECT, .fields = where_fields, .help = "the cells it looks at"},
    {.key = "pool",
     .type = FIELD_WORD,
     .words = pool_words,
     .shape = SHAPE_LIST,
     .fallback = "",
     .help = "what is taken together instead of judged one by one"},
    {.key = NULL},
};
