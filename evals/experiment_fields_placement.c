// The fields of `placements` and `lengths`.
#include "evals/experiment_fields.h"

#include <stdint.h>

const struct field placement_fields[] = {
    {.key = "id",
     .type = FIELD_NAME,
     .flags = FIELD_REQUIRED,
     .example = "order-moves",
     .help = "how keys, tables and reports call it"},
    {.key = "move",
     .type = FIELD_NAME,
     .shape = SHAPE_LIST,
     .flags = FIELD_REQUIRED,
     .items_least = 1,
     .example = "[order]",
     .help = "constraints that move, together"},
    {.key = "depths",
     .type = FIELD_PLACE,
     .shape = SHAPE_LIST,
     .flags = FIELD_DEPTH,
     .fallback = "",
     .example = "[start, middle, end]",
     .help = "start, middle, end, or a share of the filler: 25%"},
    {.key = "anchors",
     .type = FIELD_PLACE,
     .shape = SHAPE_LIST,
     .flags = FIELD_ANCHOR,
     .fallback = "",
     .help = "or: in_system, before_filler, after_filler"},
    {.key = "others",
     .type = FIELD_PLACE,
     .shape = SHAPE_MAP,
     .help = "where each constraint that does not move stands"},
    {.key = NULL},
};

const struct field length_fields[] = {
    {.key = "tokens",
     .type = FIELD_INTEGER,
     .shape = SHAPE_LIST,
     .flags = FIELD_REQUIRED,
     .items_least = 1,
     .least = 1,
     .most = INT32_MAX,
     .example = "[512, 1024]",
     .help = "of whole prompts, chat template included"},
    {.key = "tolerance",
     .type = FIELD_SHARE,
     .fallback = "0%",
     .help = "how far off it a prompt may be (long units need this)"},
    {.key = NULL},
};
