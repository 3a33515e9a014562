// The subject file of a simulated subject and the chances in it (format:
// engine/provider_simulated.h).
#ifndef LACUNA_ENGINE_PROVIDER_SIMULATED_FILE_H
#define LACUNA_ENGINE_PROVIDER_SIMULATED_FILE_H

#include "engine/provider.h"
#include "engine/provider_copy.h"

#define SIMULATED_IN_FLIGHT_MOST 1024

struct subject_point {
    double at, value;
};
struct subject_line { // straight between its points
    struct subject_point *points;
    int count;
};
struct subject_place {
    const char *place;
    double chance;
};
struct subject_curve {
    struct subject_line by_depth; // per cent
    struct subject_place *places;
    int place_count;
    struct subject_line by_length; // factor by prompt tokens
    double half_length;            // 0: none
    double elsewhere;              // -1: not given
    double brief, absent;
};

struct subject_texts {
    struct str *texts;
    int count;
};
struct subject_constraint {
    const char *id;
    struct subject_curve curve;
    struct str *rows; // none: every row moves it
    int row_count;
    const char *find; // NULL: the depth is the key's
    struct copy_markers copy;
    struct subject_texts met, omitted, violated, said_anyway;
    double violated_share;
};
struct subject {
    char sha256[HASH_HEX_SIZE];
    uint64_t seed;
    uint32_t context_tokens;
    int in_flight;
    double agreement, prompt_agreement;
    struct subject_line cut; // none: 0
    const char *cut_reply, *begin, *end;
    struct subject_constraint *constraints;
    int constraint_count;
};
int subject_read(const char *path, struct arena *a, struct subject *out, struct err *e);

// The value at `at`; `otherwise` for a line without points.
double subject_line_at(const struct subject_line *line, double at, double otherwise);

// What a trial's key says.
struct subject_trial {
    struct str arm, row, place, repeat, prompt; // prompt: the key without its sample
    const char *key;
    double length; // 0: the arm has none
};
// ERR_INPUT when it is not a key.
int subject_trial_read(const char *key, struct subject_trial *out, struct err *e);
// The chance that this trial honours the constraint; ERR_INPUT when the file has none for its
// place.
int subject_chance(const struct subject_constraint *c, const struct subject_trial *t,
                   struct str prompt, double *out, struct err *e);

#endif
