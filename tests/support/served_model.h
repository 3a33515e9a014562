// A model behind an OpenAI-compatible server, for tests: it answers chat requests with the order
// number that its prompt states (in a stream when asked), and has faults on demand.
#ifndef LACUNA_TESTS_SERVED_MODEL_H
#define LACUNA_TESTS_SERVED_MODEL_H

#include "engine/base/arena.h"
#include "tests/support/http_server.h"

enum served_counts {
    SERVED_COUNTS_NOTHING, // there is no such route, and usage counts four bytes as a token
    SERVED_COUNTS_TEXTS,   // /tokenize takes texts; a word is a token
    SERVED_COUNTS_CHATS,   // and messages: three tokens each, and three for the reply's beginning
};

struct served_model {
    struct http_server *server;
    const char *reported;    // its name in replies
    const char *fingerprint; // likewise; "fp_1"
    const char *program;     // value of the header Server; NULL: http_server.h's own
    // Changes the answer to request `number`, which is whole otherwise; NULL: never.
    void (*fault)(void *context, int number, struct http_server_answer *answer);
    void *context;
    const char *wanted_key; // 401 without it; NULL: anyone is served
    enum served_counts counts;
    const char *tail;  // further text of each reply; NULL: none
    bool shuffled;     // replies come out of order
    bool keeps_bodies; // in:
    struct buf bodies; // of all requests, a line each
};
void served_model_open(struct served_model *m);
void served_model_close(struct served_model *m);

// Writes FOLDER/NAME.yaml, an experiment of 36 trials (with repeats 4) on that model. `settings`
// are further keys of its entry: "api_key_env: KEY, attempts: 2". Returns the path.
const char *served_experiment(struct arena *a, const char *folder, const char *name,
                              const struct served_model *m, int repeats, const char *settings);

#endif
