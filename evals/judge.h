// The verdicts of one reply: every constraint's check, with the trial's variables filled in. The
// run and every later scoring go through here, so that they cannot differ.
#ifndef LACUNA_EVALS_JUDGE_H
#define LACUNA_EVALS_JUDGE_H

#include "evals/check.h"

// A recorded reply as checks look at it. What was thought is the server's reasoning or, without it,
// what stands before the answer.
struct reply judge_reply_of(const struct record_outcome *o);

// `patterns` keeps what is compiled from trial to trial. Verdicts in the order of the experiment's
// constraints, in the arena.
int judge_reply(const struct experiment *x, struct check_set *patterns,
                const struct record_trial *trial, const struct reply *reply, struct arena *a,
                struct record_verdict **verdicts, int *count, struct err *e);

// How the constraint's `check` (or `violated_check`) comes to its outcome; nothing without one.
int judge_explain(const struct experiment *x, struct check_set *patterns,
                  const struct record_trial *trial, int constraint, const struct reply *reply,
                  bool violated, struct arena *a, struct check_trace *out, struct err *e);

// ERR_RECORD when the experiment, read from the record, no longer has the checks, gates and
// tolerances that the identity names.
int judge_trust(const struct record *r, const struct experiment *x, struct err *e);

// Can its replies be judged again? Not without replies, nor without checks and variables, which go
// with the prompts.
bool judge_can(const struct record *r);
// ERR_RECORD when they cannot; `what` cannot be done.
int judge_need(const struct record *r, const char *what, struct err *e);

// Scores every recorded reply again, where that can be, and compares: what differs from the
// recorded verdicts, and hashes of the identity that the experiment no longer has, are appended to
// `findings`, one a line.
int judge_again(const struct record *r, const struct experiment *x, struct buf *findings,
                bool *sound, struct err *e);

#endif
