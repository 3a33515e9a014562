// The experiment file (DESIGN section 9) as data. Loaded once, immutable, in the run arena.
//
// One table of fields (evals/experiment_fields.c) drives parsing, validation, resolved.json, the
// JSON schema and `lacuna new`. All errors of a file come in one go, each "FILE:LINE:COLUMN: path:
// what is wrong, what is expected" on a line of its own.
#ifndef LACUNA_EVALS_EXPERIMENT_H
#define LACUNA_EVALS_EXPERIMENT_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/str.h"
#include "engine/provider.h"
#include "evals/check_spec.h"

#include <stdbool.h>
#include <stdint.h>

#define DEPTH_NONE (-1)
#define DEPTH_MOST 100000 // depths are thousandths of a per cent: start 0, middle 50000, end 100000

#define PLACE_SPOTS_MOST 4
#define PLACE_TEXT_SIZE 80

enum place_anchor {
    PLACE_AT_DEPTH,
    PLACE_IN_SYSTEM,
    PLACE_BEFORE_FILLER,
    PLACE_AFTER_FILLER,
    PLACE_FIRST_USER,
    PLACE_LAST_USER,
    PLACE_IN_PLACE, // where the user's own prompt has it (in_prompt)
    PLACE_ABSENT,   // of `others`: left out of the row
    PLACE_ORDER,    // of a scattered row's trial: the number of its order from 1, in `depth`
};
struct place_spot {
    enum place_anchor anchor;
    int32_t depth; // PLACE_AT_DEPTH, PLACE_ORDER
};
// Where a constraint stands: at one spot, or repeated at several in reading order ("start+end").
struct place {
    enum place_anchor anchor; // of the first spot
    int32_t depth;
    int more_count;
    struct place_spot more[PLACE_SPOTS_MOST - 1];
};
struct place place_at(int32_t depth);
struct place place_of_order(int order);                         // from 0
struct place_spot place_spot(const struct place *p, int index); // index 0 to more_count
// One spot at a depth, which a curve over depth can show.
bool place_is_depth(struct place p);
// "start", "middle", "end", "25%", "12.5%", "in_system", ..., "start+end", "absent", "order-2": the
// spelling used in keys, tables and reports.
void place_text(struct place p, char out[PLACE_TEXT_SIZE]);
bool place_equal(struct place a, struct place b);
// Reading order: system, before the filler, by depth, behind it, then orders; below, at or above 0.
int place_compare(struct place a, struct place b);

struct experiment_model {
    const char *id;
    // One of the four, files resolved to the file's folder; the others are NULL.
    const char *path;                  // model file
    struct provider_endpoint endpoint; // served model; without its key. url NULL: none
    const char *fixture;               // rules of the scripted fixture
    const char *simulated;             // simulated subject
    const char *backend;               // "auto", "cpu", "cuda"
    const char *numerics;              // "bf16-1", "f32"
    const char *weights;               // "auto", "unpacked", "stored"
    const char *chat_template;         // key `template`; NULL: by the identity of the file's own
    const char *pre_tokenizer;         // NULL: the file's own
    uint32_t context_tokens;
    bool beyond_trained;
    int repeat_check;                  // so many requests are sent twice (evals/again.h)
    bool priced;                       // the file has `price`
    int64_t price_input, price_output; // what a million tokens cost, in millionths
    bool thinks;                       // the file has `reasoning`
    // Tags around what it thinks; `opened` where the file says so, else the prompt tells it. A
    // budget of its own for that, in tokens; 0: generation.max_tokens is for both.
    struct reasoning_tags reasoning;
    int reasoning_tokens;
};

struct experiment_generation {
    int max_tokens;
    double temperature, top_p;
    int samples;
    struct str *stop;
    int stop_count;
};

struct experiment_message {
    struct str role, text; // the text of exactly one message holds {{filler}} once
    struct provider_call *calls;
    int call_count;
    // Where it stands, for complaints: its path, and "FILE:LINE: " of a turn from a file (or "").
    const char *path, *origin;
};

enum filler_kind {
    FILLER_PROSE,
    FILLER_NOISE,
    FILLER_FILES,
    FILLER_PAIRS,
    FILLER_CHAT,
    FILLER_JSON_PAIRS,
    FILLER_COMMON_WORDS,
    FILLER_FREQUENT_WORDS,
};
enum filler_unit { FILLER_SENTENCE, FILLER_PARAGRAPH, FILLER_DOCUMENT };
struct experiment_filler {
    enum filler_kind kind;
    const char *language;  // of the closing unit's words: "en", ...
    struct str *sentences; // noise: the fixed sentences, or none for the built-in ones
    int sentence_count;
    const char **paths; // files, chat: resolved; in this order unless `shuffle`
    int path_count;
    enum filler_unit unit;
    bool shuffle;
    struct str wrapper; // files: text around a unit, with {{text}} and {{n}}; empty: none
    bool may_match;     // the user's own documents, and lists of words, may match the checks
};

enum variable_kind {
    VARIABLE_DIGITS,
    VARIABLE_LETTERS,
    VARIABLE_CHOICE,
    VARIABLE_NUMBER, // in decimal, no leading zeros
    VARIABLE_WORDS,  // "amber-lantern"
    VARIABLE_UUID,   // version 4
    VARIABLE_FILLER, // an answer that the filler has: {{filler.common_1}}
};
enum digit_script {
    DIGITS_LATIN,
    DIGITS_ARABIC,
    DIGITS_PERSIAN,
    DIGITS_DEVANAGARI,
    DIGITS_FULLWIDTH
};
struct experiment_variable {
    const char *name;
    enum variable_kind kind;
    int count; // digits, letters
    enum digit_script script;
    struct str *choices; // choice
    int choice_count;
    int64_t least, most; // number; -1: not given
};

enum constraint_kind { CONSTRAINT_STATE, CONSTRAINT_FORMAT, CONSTRAINT_FORBID };
// Which part of the reply of a model that thinks is judged.
enum look_in { LOOK_IN_ANSWER, LOOK_IN_REASONING, LOOK_IN_BOTH };

struct experiment_constraint {
    const char *id;
    enum constraint_kind kind;
    struct str text;
    struct str *variants; // its wordings, `text` being the first; none: there is just that
    int variant_count;
    bool cross_variants; // each repeat runs each wording, instead of one that is drawn for it
    // Both cannot be met by one reply; NULL: none is named.
    const struct experiment_constraint *contradicts;
    bool in_prompt;   // the text stands in messages[rule_message] already, at this byte,
    int rule_message; // and is taken out where it is left out or placed elsewhere
    size_t rule_at;
    struct experiment_variable *vars;
    int var_count;
    const struct experiment_variable *shared; // the experiment's own variables, borrowed
    int shared_count;
    // Patterns and values as written, {{name}} not yet replaced; p == NULL: not given.
    struct str value, met, violated, answered;
    const struct check_spec *check, *violated_check; // instead of value and met; of violated
    enum look_in look_in;
    bool ignore_case, multiline, dotall; // flags of the patterns, recorded
    struct str *example_met, *example_not, *example_violated;
    int example_met_count, example_not_count, example_violated_count;
};

// Sentences in the filler with the text of a constraint and other values.
struct experiment_distractor {
    int like; // constraint index
    int per_1k_tokens;
    const char **vary; // its variables (own or shared) that are drawn anew; at least one
    int vary_count;
};

struct experiment_other {
    int constraint; // index
    struct place place;
};
struct experiment_placement {
    const char *id;
    int *move; // constraint indices, ascending; one block, or scattered
    int move_count;
    // Scattered: each of them stands at one of `places`, in balanced orders (placement_order).
    bool scatter;
    bool one_order;       // repeat r takes order r mod orders, instead of all
    struct place *places; // depths and anchors that the block moves over, as written; scattered:
                          // in reading order
    int place_count;
    struct experiment_other *others;
    int other_count;
};

enum arm { ARM_PLACED, ARM_ABSENT, ARM_SHORT };
const char *arm_name(enum arm a);

// Does the row move the constraint (-1: any)?
bool placement_moves(const struct experiment_placement *row, int constraint);
// Is the constraint left out of the row (`others: {x: absent}`)? It has no verdict there.
bool placement_leaves_out(const struct experiment_placement *row, int constraint);

// Scattered rows. Orders form a Williams design: each constraint stands at each place equally often
// and directly behind each other one equally often: n orders of an even number of constraints, 2 n
// of an odd one (E. J. Williams, Experimental designs balanced for the estimation of residual
// effects of treatments, Australian Journal of Scientific Research A 2, 1949, 149-168).
int placement_orders(const struct experiment_placement *row); // 0: not scattered
// The place of constraint move[member] in that order, as an index into `places`.
int placement_order(const struct experiment_placement *row, int order, int member);

// Where a rate is taken. Indices and the length are -1 for "all".
struct experiment_where {
    int model;
    int length_tokens;
    int placement;
    bool has_place;
    struct place place;
    enum arm arm; // ARM_PLACED unless said
};
struct experiment_gate {
    const char *id;     // given, or made from the rest
    const char *metric; // "met_rate", "regression", ...: see evals/gates.h
    int of;             // constraint index, -1: all constraints of a trial
    bool has_at_least, has_at_most;
    double at_least, at_most;
    struct experiment_where where;
    bool pool_model, pool_length, pool_placement, pool_depth;
    const char *baseline;      // resolved; of a record: its copy. NULL: none is given
    const char *baseline_name; // as given
    const char **allow;        // words of --allow
    int allow_count;
};
struct experiment_primary {
    bool given;
    const char *metric;   // "met_rate"
    int of;               // constraint index, -1: all
    const char *contrast; // "middle_against_ends", "start_against_end", "end_against_middle", ...
};

struct experiment {
    const char *path, *folder;
    struct str source; // the file as given
    const char *name;
    uint64_t seed;
    struct experiment_model *models;
    int model_count;
    struct experiment_generation generation;
    struct experiment_message *messages;
    int message_count;
    struct str *tools; // definitions, as JSON; given to the chat template,
    int tool_count;    // or as text where a message holds {{tools}}
    bool tools_as_text;
    struct experiment_filler filler;
    struct experiment_variable *vars; // shared by messages and constraints
    int var_count;
    struct experiment_constraint *constraints;
    int constraint_count;
    struct experiment_distractor *distractors; // prompt.filler.distractors
    int distractor_count;
    const char *cases_path; // NULL: none
    const char *cases_id;   // column that names a case
    struct experiment_placement *placements;
    int placement_count;
    int *lengths;
    int length_count;
    int32_t length_tolerance_ppm;
    const char
        *measured_by; // a model's id: all models get the texts built for it; NULL: each its own
    int repeats;
    bool arms[3];
    int short_tokens;
    double effective_level; // a rate: what a length must keep to count into the effective length
    int32_t tolerate_errors_ppm, tolerate_invalid_ppm, tolerate_unscored_ppm;
    struct experiment_primary primary;
    struct experiment_gate *gates;
    int gate_count;
    // from --only and --limit; part of resolved.json, and the plan is then partial
    struct str *only; // "field=value" each
    int only_count;
    int64_t limit;                     // -1: none
    bool drops_prompts, drops_replies; // retain: the record keeps none
    bool without_texts;                // read from a record that keeps no prompts
    const char *evidence;              // "off", "summary", "full"
    bool evidence_asked;               // the file says so, or --set; else it is the default
    const char **warnings; // what is allowed and seldom meant, "FILE:LINE:COLUMN: warning: ..."
    int warning_count;
    json_t *resolved; // all defaults and overrides filled in; owned by the arena's owner
                      // (experiment_close)
};

// The most tokens of a reply of the model, reasoning and answer.
int experiment_reply_tokens(const struct experiment *x, int model);

// -1: there is none; `id` NULL: no placement.
int experiment_model_index(const struct experiment *x, const char *id);
int experiment_constraint_index(const struct experiment *x, const char *id);
int experiment_placement_index(const struct experiment *x, const char *id);
// Its id, "all" for -1: all constraints of a trial.
const char *experiment_constraint_id(const struct experiment *x, int constraint);
// Its own, else the shared one; NULL: neither.
const struct experiment_variable *experiment_variable_find(const struct experiment_constraint *c,
                                                           struct str name);

// How many wordings the row's cells run, one after the other (crossed variants); 0: one that is
// drawn for the repeat.
int experiment_crossed(const struct experiment *x, const struct experiment_placement *row);

struct experiment_overrides {
    const char *const *set; // "generation.max_tokens=8", "models[0].context_tokens=4096"
    int set_count;
    const char *only; // "length=8000,depth=middle,repeat=3", or NULL
    int64_t limit;    // -1: none
};

// Loads and validates. On failure e->text holds every error of the file, one a line (ERR_CONFIG).
int experiment_load(const char *path, const struct experiment_overrides *overrides, struct arena *a,
                    struct experiment **out, struct err *e);
// The same from resolved.json's text and the record's folder of origin, for a resumed run or
// `score`.
int experiment_from_json(json_t *resolved, const char *path, const char *folder, struct arena *a,
                         struct experiment **out, struct err *e);
void experiment_close(struct experiment *x); // drops `resolved`
// resolved.json without what stands in prompts and without checks; experiment_from_json reads it.
// The caller's.
json_t *experiment_without_texts(const struct experiment *x);
// resolved.json as the record of the experiment keeps it. The caller's.
json_t *experiment_kept(const struct experiment *x);

// SHA-256 of what the outcome depends on, without paths (DESIGN section 6, "the request"):
// resolved.json with each path replaced by the SHA-256 of the file's content, then numerics and
// backend class, as planning providers tell them.
int experiment_request_sha256(const struct experiment *x, struct provider *const *providers,
                              char hex[HASH_HEX_SIZE], struct err *e);
// Parts of the identity: checks (constraints' patterns) and analysis (gates, primary,
// tolerate, effective_level).
void experiment_checks_sha256(const struct experiment *x, char hex[HASH_HEX_SIZE]);
void experiment_analysis_sha256(const struct experiment *x, char hex[HASH_HEX_SIZE]);

json_t *experiment_schema(void); // JSON schema (draft 2020-12) made from the table of fields
bool experiment_name_valid(const char *name);           // may stand for `name` and ids
void experiment_new(const char *name, struct buf *out); // a commented file to start from

// Cases: rows of a CSV (RFC 4180, header line) or JSONL file; columns are variables.
struct case_row {
    const char *id;
    struct str *values; // [column_count]
};
struct case_table {
    const char **columns;
    int column_count;
    struct case_row *rows;
    int row_count;
    char sha256[HASH_HEX_SIZE];
};
int cases_load(const char *path, const char *id_column, struct arena *a, struct case_table *out,
               struct err *e);

// {{name}} substitution: the only one there is. An undefined name is an error naming it and the
// names that are known; single braces are literal.
struct variable {
    const char *name;
    struct str value;
};
int variables_replace(struct str text, const struct variable *vars, int count, const char *where,
                      struct arena *a, struct str *out, struct err *e);
// The same for a PCRE2 pattern: {{name}} is matched literally, {{re:name}} is itself a pattern.
// Both count as one unit for a quantifier behind them.
int variables_replace_pattern(struct str pattern, const struct variable *vars, int count,
                              const char *where, struct arena *a, struct str *out, struct err *e);
// Calls `visit` for each name that the text uses, in order (`re:` taken off when `pattern`); stops
// with -1 when it returns -1, or when a {{ has no name and }}.
int variables_each(struct str text, bool pattern, const char *where,
                   int (*visit)(void *context, struct str name, struct err *e), void *context,
                   struct err *e);

#endif
