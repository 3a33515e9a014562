// The record of a run (DESIGN section 6, RECORD.md): writing, reading, verifying the chain.
//
// Only this module and engine/base/file know what a run folder looks like. Writing happens in a
// fixed order: folder, experiment and resolved files, fillers and prompts, plan (hashed), identity,
// then the ledger, one synced line a trial. Every write, sync and rename passes a fail point.
#ifndef LACUNA_REPORTS_RECORD_H
#define LACUNA_REPORTS_RECORD_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_FORMAT 1

struct record;

// ---- a planned trial: one line of plan.jsonl ----
#define RECORD_SHARED_VARS "*" // in place of the constraint: a variable that all of them share
struct record_var {
    const char *constraint, *name;
    struct str value;
};
// A sentence in the filler with the text of that constraint and these values in place of its own.
struct record_distractor {
    const char *constraint;
    struct record_var *vars;
    int var_count;
};
struct record_span {
    const char *constraint;
    uint32_t first_token, tokens;
    size_t first_byte, bytes; // in the rendered prompt; the join is left out
    char depth[12];           // real depth, "49.868"; "-" for an anchor
    // How it stands out: its digits are the only ones beside the filler's none; content words that
    // it shares with the messages.
    bool only_digits;
    const char **question_words;
    int question_word_count;
    const char *place; // asked for: "middle", "25%", "in_system"; NULL: an older record
};
struct record_variant {
    const char *constraint;
    int variant; // number of the wording, from 1
};
struct record_trial {
    int64_t trial;
    const char *key, *model, *arm;
    int length;            // -1: none (short arm)
    const char *placement; // NULL: none
    const char *depth;     // asked: "50.000", or an anchor's name; NULL: none
    int repeat;            // index, also where cases name it
    int sample;
    const char *case_id; // NULL: none
    char prompt_sha256[HASH_HEX_SIZE];
    char ids_sha256[HASH_HEX_SIZE];  // empty: the provider does not tell the ids
    char text_sha256[HASH_HEX_SIZE]; // of the messages before the template; empty: an older record
    uint32_t prompt_tokens, template_tokens, shared_tokens;
    int reply_tokens_max;  // reasoning and answer
    bool reasoning_opened; // the prompt ends in the tag that opens the reasoning
    char seed[33];         // sampling stream, 32 hex digits
    struct record_var *vars;
    int var_count;
    struct record_distractor *distractors; // that stand in the prompt, in order
    int distractor_count;
    struct record_span *spans;
    int span_count;
    struct record_variant *variants; // of the constraints that have several wordings
    int variant_count;
};

// ---- an outcome: one line of trials.jsonl ----
enum record_status { STATUS_OK, STATUS_INVALID, STATUS_ERROR };
enum verdict { VERDICT_MET, VERDICT_OMITTED, VERDICT_VIOLATED, VERDICT_UNSCORED };
const char *record_status_name(enum record_status s);
const char *verdict_name(enum verdict v);

struct record_verdict {
    const char *constraint;
    enum verdict verdict;
    const char *reason; // unscored: "cut", "no_answer", "empty", "loop",
                        // "refusal", "check:<code>"
    const char *by; // "value", "met", "check", "violated", "violated_check", "answered", or NULL
    const char *in; // "reasoning": what decided stands there; NULL: in the reply
    bool thought;   // not met, but what was thought before the answer meets it
    bool has_match;
    size_t match[2];  // byte range in the reply (or in what `in` names)
    struct str *near; // right shape, wrong value; NULL with a count: the texts are not kept
    int near_count;
    struct str *copied; // values of distractors; likewise
    int copied_count;
};
// ---- attention: one line of evidence.jsonl for each ok line of trials.jsonl whose model was
// watched and whose prompt has spans ----
// Shares in parts per million: of the last prompt token's row, and the mean and the largest over
// the rows of the reply's tokens (engine/provider.h); RECORD_NO_SHARE when it has none.
#define RECORD_NO_SHARE (-1)
#define RECORD_STRONGEST 8
enum record_rows { ROWS_PROMPT, ROWS_REPLY, ROWS_REPLY_MAX, ROWS_COUNT };
struct record_shares {
    int32_t of[ROWS_COUNT];
};
struct record_head {
    int layer, head; // from 0
    struct record_shares shares;
};
struct record_attention {
    const char *constraint;
    int32_t prompt_tokens, reply_tokens; // the span's share of the tokens that the rows see
    struct record_shares mean;           // over all heads of all layers
    struct record_head *strongest;       // by reply (without one: by prompt), descending
    int strongest_count;
    struct record_shares *all; // [layers][heads]; NULL: only a summary is kept
};
struct record_evidence {
    int layers, heads;
    struct record_attention *attention; // in the order of the plan's spans, once a constraint
    int attention_count;
};

// What a server said that answered; NULL: it did not say.
struct record_server {
    const char *model, *fingerprint;
    const char *program; // as its responses name it: "uvicorn"
};

struct record_outcome {
    int64_t trial;
    const char *key;
    int attempt; // from 1
    enum record_status status;
    const char *reason_code, *reason_text; // invalid, error
    struct str reply;
    struct str reasoning; // that a server gave apart from the reply; n 0: nothing
    // Of texts that are not kept (record_forget_reply); both of them are empty then.
    bool forgotten;
    char reply_sha256[HASH_HEX_SIZE], reasoning_sha256[HASH_HEX_SIZE];
    size_t reply_bytes, reasoning_bytes;
    int32_t *ids; // NULL when the provider has none
    size_t id_count;
    int tokens;             // of the reply; -1: a server did not say
    bool reasoning_counted; // of them, or beside them, what was thought
    int reasoning_tokens;
    uint32_t served_prompt_tokens; // of the prompt, as a server counts them; 0: none said so
    struct record_server server;   // of a reply that a server gave
    const char *finish; // "stop", "length", "reasoning_length", "stop_string", "filter", "error"
    size_t answer[2];   // byte range that checks look at
    struct record_verdict *verdicts;
    int verdict_count;
    // To be written with it; NULL: none. Of a record that was read: record_get_evidence.
    const struct record_evidence *evidence;
};

// ---- texts that must not be kept ----
// A trial without what stands in its prompt: values of variables and distractors, words.
void record_forget_prompt(struct record_trial *t, struct arena *a);
// An outcome without its reply, or (`prompts`) without what its verdict and its error quote of the
// prompt. In place, all three; new lists are in the arena.
void record_forget_reply(struct record_outcome *o, bool prompts, bool replies, struct arena *a);
// The same for a whole record in memory: nothing of a prompt or a reply is left in it.
void record_forget_texts(struct record *r, struct arena *a);

// ---- stored inputs ----
// A prompt is a list of parts; a part is literal text or a range of a stored filler.
struct record_part {
    bool control; // written by the chat template
    struct str text;
    const char *filler_sha256; // NULL: literal text; else `text` is that filler's bytes [from, to)
    size_t from, to;
};

// ---- writing ----
struct record_writer;

struct record_header {
    const char *folder;         // runs/NAME-<12 hex> or -o
    struct str experiment_yaml; // p NULL: not kept
    bool drops_prompts;         // there is no inputs/
    const json_t *resolved;
    // What is known of the identity before planning, or NULL: only to name the fields that differ
    // when the folder holds the run of another request.
    const json_t *identity;
    // Baselines that gates are judged against: kept beside the inputs, each under its SHA-256.
    const struct str *baselines;
    size_t baseline_count;
};

enum record_state { RECORD_NEW, RECORD_PLANNING, RECORD_RUNNING, RECORD_COMPLETE };

// Takes the folder: creates it exclusively, or opens an existing run of the same request. Foreign
// folders (no record, or another request) are refused with ERR_RECORD. Holds the lock until closed.
// *state: NEW or PLANNING (a run killed before its plan was hashed: planning starts over), RUNNING
// (plan and prompts are to be read, nothing regenerated), COMPLETE (every planned trial has an
// outcome).
int record_writer_open(const struct record_header *header, const char *request_sha256,
                       struct record_writer **out, enum record_state *state, struct err *e);
void record_writer_close(struct record_writer *w); // NULL is allowed

int record_put_filler(struct record_writer *w, struct str text, char sha256[HASH_HEX_SIZE],
                      struct err *e);
// sha256 is of the whole rendered text. A prompt stored already costs nothing.
int record_put_prompt(struct record_writer *w, const struct record_part *parts, size_t count,
                      char sha256[HASH_HEX_SIZE], struct err *e);
int record_put_plan(struct record_writer *w, const struct record_trial *t, struct err *e);
// Ends planning: syncs inputs and plan, returns the plan's hash; then identity.json and
// manifest.json are written, which starts the ledger.
int record_plan_done(struct record_writer *w, char plan_sha256[HASH_HEX_SIZE], struct err *e);
int record_begin(struct record_writer *w, const json_t *identity, const json_t *manifest,
                 struct err *e);
// On resume: compares identity with the stored one (all but what may change) and fails listing the
// fields that differ; a different build is only noted in sessions.jsonl.
int record_resume(struct record_writer *w, const json_t *identity, const json_t *manifest,
                  struct err *e);

// Appends an outcome when it is the next one in plan order, else parks it, synced, in pending/
// until its turn; then appends everything that has become next. Returns after the sync.
// The attempt's number is the writer's own count; `attempt` of the outcome is not looked at. A
// trial whose attempt ended in `error` may be put again once every trial has its first attempt.
int record_put_outcome(struct record_writer *w, const struct record_outcome *o,
                       const json_t *timing, struct err *e);
// The trials that still need a first attempt or, with `errors`, those that ended in `error` and may
// be tried again; ascending. Returns how many there are.
int64_t record_missing(const struct record_writer *w, bool errors, struct arena *a,
                       int64_t **trials);
// The outcome of a trial that waits for its turn, in the arena; *any false: none does.
int record_get_waiting(const struct record_writer *w, int64_t trial, struct arena *a,
                       struct record_outcome *out, bool *any, struct err *e);
// The number of the first trial without a recorded attempt; that of all trials when there is none.
int64_t record_next(const struct record_writer *w);
// Appends a second reply to the request of a trial that has one, synced (again.jsonl). `o` is ok.
int record_put_again(struct record_writer *w, const struct record_outcome *o, struct err *e);
int record_note_session(struct record_writer *w, const char *event, const char *detail,
                        struct err *e);

// ---- reading ----
// Everything of a run in memory: plan, the outcome that counts for each trial (highest attempt),
// and identity. Damage is refused with file and line; a torn last ledger line is reported as
// missing.
struct record {
    const char *folder;
    json_t *identity, *manifest, *resolved;
    char identity_sha256[HASH_HEX_SIZE], ledger_sha256[HASH_HEX_SIZE];
    struct record_trial *trials;
    int64_t trial_count;
    struct record_outcome **outcomes; // [trial_count], NULL: not yet run
    int64_t done_count, attempt_count;
    bool drops_prompts, drops_replies; // by the experiment's `retain`
    bool partial;                      // --only or --limit
    bool torn; // the ledger ends in a line that was cut; it is left out here
    // Empty: no model was watched.
    char evidence_sha256[HASH_HEX_SIZE];
    char again_sha256[HASH_HEX_SIZE]; // empty: nothing was asked twice
    // of the reader itself
    size_t ledger_bytes;                    // up to the end of the last whole line
    char last_sha256[HASH_HEX_SIZE];        // of that line, or of the identity
    struct record_evidence_lines *evidence; // NULL: no model was watched
    struct record_again *again;             // NULL: nothing was asked twice
    struct record_map *keys;
    struct record_inputs *inputs;        // NULL: the record was passed on without its prompts
    const struct record_prompt *prompts; // [trial_count], taken; NULL: none were
    struct record_map *prompt_trials;    // of taken prompts: hash to trial
};
int record_open(const char *folder, struct arena *a, struct record **out, struct err *e);
void record_close(struct record *r);
int64_t record_find(const struct record *r, const char *key); // trial number, or -1
// Of the reply's text, whether or not it is kept.
void record_reply_sha256(const struct record_outcome *o, char hex[HASH_HEX_SIZE]);
// Are reply and reasoning the same?
bool record_same_words(const struct record_outcome *a, const struct record_outcome *b);
// Did two trials end alike, with one reply?
bool record_same_reply(const struct record_outcome *a, const struct record_outcome *b);

// The second reply to a trial's request; NULL: it was asked once.
const struct record_outcome *record_get_again(const struct record *r, int64_t trial);
// Are the texts of two ok outcomes, what was thought among it, equal byte for byte? And what the
// checks said?
bool record_same_text(const struct record_outcome *a, const struct record_outcome *b);
bool record_same_verdicts(const struct record_outcome *a, const struct record_outcome *b);
// How a served model replied to requests that it got twice; asked 0: to none.
struct record_noise {
    int asked, same_text, same_verdicts;
};
struct record_noise record_noise(const struct record *r, const char *model);

// The constraints that stand in a trial's prompt, each once, in the order of their first spans;
// returns how many there are.
int record_standing(const struct record_trial *t, struct arena *a, const char ***out);
// What was recorded of the attention in a trial, in the arena; NULL: nothing.
int record_get_evidence(const struct record *r, int64_t trial, struct arena *a,
                        const struct record_evidence **out, struct err *e);
// Would both be the same line of a record?
bool record_same_evidence(const struct record_evidence *a, const struct record_evidence *b);

// What a record does not keep of its plan, made again: trials with their variables, and their
// prompts. They must be the recorded ones by key and hashes (ERR_RECORD). Borrowed.
struct record_prompt {
    const struct record_part *parts;
    size_t count;
};
int record_take_plan(struct record *r, struct record_trial *trials,
                     const struct record_prompt *prompts, int64_t count, struct err *e);

// The prompt of a trial, byte for byte, as parts (fillers resolved) and as one text.
int record_get_prompt(const struct record *r, const char *prompt_sha256, struct arena *a,
                      struct record_part **parts, size_t *count, struct str *text, struct err *e);

// Where a record keeps a baseline of its gates.
char *record_baseline_path(const char *folder, const char *sha256, struct arena *a);

// False for a copy of a record that was published without its inputs/.
bool record_has_prompts(const struct record *r);

// Chain, plan coverage, inputs: everything of `lacuna verify` but re-scoring. Findings are appended
// to `findings`, one a line; *sound says whether there were none. `prompts` false leaves the stored
// prompts alone, for a copy that was published without its inputs/.
int record_verify(const char *folder, bool prompts, struct buf *findings, bool *sound,
                  struct err *e);

#endif
