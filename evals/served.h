// What answers behind a served model's address, as far as the server says: its names of the model
// and of its own state (a fingerprint), and the program. None of it proves anything, but a change
// of it does: replies before and after are of two things.
#ifndef LACUNA_EVALS_SERVED_H
#define LACUNA_EVALS_SERVED_H

#include "engine/provider.h"
#include "reports/record.h"

// Borrowed from the completion.
struct record_server served_by(const struct provider_served *s);
bool served_same(const struct record_server *a, const struct record_server *b);
// "model small-2026, fingerprint fp_1, server uvicorn", fit for a terminal; in the arena.
const char *served_words(const struct record_server *s, struct arena *a);

// All that answered for one model, in the order in which they were first seen.
struct served_seen {
    struct record_server by;
    int64_t replies;
    int64_t first, last; // trials, in plan order
};
struct served_list {
    struct served_seen *seen;
    int count;
};
// Counts one reply; true: it is the first of its kind. Texts are copied into the arena. A reply of
// which nothing is known is counted nowhere.
bool served_note(struct served_list *l, const struct record_server *by, int64_t trial,
                 struct arena *a);
// The model's name in the first reply that has one; NULL: none does.
const char *served_model(const struct served_list *l);

#endif
