// What the files of the planner share.
#ifndef LACUNA_EVALS_PLAN_INTERNAL_H
#define LACUNA_EVALS_PLAN_INTERNAL_H

#include "evals/check.h"
#include "evals/plan.h"
#include "evals/plan_ids.h"
#include "prompts/prompt.h"
#include "prompts/turns.h"

// Where a rule that the user's own prompt holds stands in a drawn message: bytes [from, to).
struct rule_place {
    size_t message, from, to;
};

// Everything that is drawn for one repeat, the same for all its trials. In the repeat's arena, but
// what a trial's line needs is in the plan's.
struct repeat_draw {
    int index;
    const char *scope;   // of its random streams: "repeat 3", "case T-17"
    const char *case_id; // NULL: the experiment has no cases
    // The shared ones first, then those of the constraints, all in file order (plan's arena).
    struct record_var *vars;
    int var_count;
    struct variable **known; // [constraint]: its own variables, shared ones, the case's columns
    int *known_count;
    struct record_distractor *distractors; // in the filler's stream so far (plan's arena)
    int distractor_count;
    int *variant;                      // [constraint]: the wording drawn, from 0
    struct str **wordings;             // [constraint][wording]: variables filled in
    struct str *texts;                 // [constraint]: the one drawn
    struct provider_message *messages; // likewise; {{filler}} still stands in one
    struct rule_place *rules;          // [constraint]: of those in_prompt
};

// `cases` has no rows when the experiment names none.
int repeat_draw(const struct experiment *x, const struct case_table *cases, int index,
                struct arena *plan_arena, struct arena *a, struct repeat_draw *out, struct err *e);
struct rng repeat_stream(const struct experiment *x, const struct repeat_draw *d, const char *name);

// The list that a filler of words is.
enum filler_words words_of(const struct experiment *x);
// Has some variable of the repeat this value?
bool value_used(const struct repeat_draw *d, struct str value);
// One value of a variable.
struct str value_draw(const struct experiment_variable *v, struct rng *r, struct arena *a);

// The filler with the experiment's distractors among its units; they are noted in `d` as they are
// drawn, which must stay where it is.
struct filler *repeat_distract(const struct experiment *x, struct repeat_draw *d,
                               struct filler *filler, struct arena *plan_arena, struct arena *a);
// How many of the noted ones stand in the first `bytes` of filler_text(); -1 on error.
int distractors_within(struct filler *f, size_t bytes, struct err *e);
// All units in those bytes that are distractors, a line each; or, without `only`, the text with
// spaces in their place.
int distractors_part(struct filler *f, size_t bytes, bool only, struct arena *a, struct str *out,
                     struct err *e);
// The right value must not stand in a distractor, whatever else of the check they match.
int distractors_check(const struct check *check, const struct experiment_constraint *c,
                      const struct repeat_draw *d, struct str distractors, struct err *e);

// Which prompt of a repeat: a model's arm with its length and placement.
struct cell {
    int model;
    enum arm arm;
    int length;         // -1: short arm
    int placement;      // -1: none
    struct place place; // with a placement
    int variant;        // of crossed wordings, from 0; -1: each constraint has the one drawn
};

// Calls `visit` for each cell of the experiment, models first, in file order.
int cells_each(const struct experiment *x,
               int (*visit)(void *context, const struct cell *c, struct err *e), void *context,
               struct err *e);
// Where each constraint goes: inserts in the order in which they stand at equal depth. `inserts`
// has room for PLACE_SPOTS_MOST of every constraint; *constraints maps an insert to its constraint.
void cell_inserts(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                  struct prompt_insert *inserts, int *constraints, size_t *count);
// Fills the messages of a repeat in.
int messages_draw(const struct experiment *x, const struct case_table *cases,
                  const struct case_row *row, struct arena *a, struct repeat_draw *d,
                  struct err *e);
// The repeat's messages as a cell has them: rules in_prompt that are left out or placed elsewhere
// are taken out; inserts in place learn where that is.
//
// A rule on lines of its own goes with these lines (of the empty lines before and behind it, the
// greater number stays). From within a line it goes with the shorter of the spaces on its two
// sides; a line break counts for more than any space. At the beginning or end of a message the
// white space on the inner side goes. All else stays byte for byte.
const struct provider_message *cell_messages(const struct experiment *x,
                                             const struct repeat_draw *d,
                                             struct prompt_insert *inserts, const int *constraints,
                                             size_t count, struct arena *a);
// Of a scattered row's orders a repeat may take one only.
bool cell_in_repeat(const struct experiment *x, const struct cell *c, const struct repeat_draw *d);
// The wording of a constraint in a cell, from 0.
int cell_variant(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                 int constraint);
// --only. `sample` -1: does any sample of this prompt belong?
bool cell_selected(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                   int sample);
const char *cell_key(const struct experiment *x, const struct cell *c, const struct repeat_draw *d,
                     int sample, struct arena *a);
// The cell in words for messages: "model smollm2, placed, length 1024, order-moves@middle, repeat
// 3".
const char *cell_words(const struct experiment *x, const struct cell *c,
                       const struct repeat_draw *d, struct arena *a);

// The stored filler of one repeat; put into the record when the first prompt needs it.
struct stored_filler {
    struct str text;
    char sha256[HASH_HEX_SIZE];
    bool put;
};

// A planned trial before it has its place in the order.
struct draft {
    struct record_trial t;
    struct cell cell;
    struct plan_ids ids; // count 0 without exact ids: then the parts tell the order
    struct record_part *parts;
    size_t part_count;
    struct stored_filler *filler;
    size_t filler_bytes; // of it that the prompt uses
};

// How the constraints of a repeat stand out: from the stored filler and the messages.
struct surroundings;
const struct surroundings *surroundings_find(const struct experiment *x,
                                             const struct repeat_draw *d, struct str filler,
                                             struct arena *plan_arena, struct arena *a);
// Says in the draft's line which distractors its prompt holds, and how its constraints stand out.
int draft_surroundings(const struct surroundings *s, struct filler *f, struct draft *out,
                       struct err *e);

struct planner {
    const struct experiment *x;
    struct provider *const *providers;
    struct arena *a;      // the plan's
    struct arena *repeat; // of the repeat at hand
    struct case_table cases;
    struct filler_texts *texts; // of kind files
    struct exchange *exchanges; // of kind chat
    size_t exchange_count;
    const struct closing_words *closing;
    struct check_set *checks;
    struct prompt_builder **builders; // [model]
    struct draft **drafts;
    int64_t count;
    const char **warnings;
    int warning_count;
    int64_t off_depth, shared_tokens; // spans far from their depth; spans with an unclean join
    const char *off_depth_first, *shared_first;
    const char *spelled;     // a control token that some text spells
    bool estimated, counted; // lengths of any prompt
    bool proven;             // the checks have proven themselves on their examples
};

int planner_open(const struct experiment *x, struct provider *const *providers, struct arena *a,
                 struct planner *out, struct err *e);
void planner_close(struct planner *p);
// All prompts of a repeat as drafts.
int planner_repeat(struct planner *p, int index, struct err *e);
void planner_warn(struct planner *p, const char *text);

#endif
