// The word lists of generated prose, one file a language; private to prompts/.
#ifndef LACUNA_PROMPTS_PROSE_H
#define LACUNA_PROMPTS_PROSE_H

#include <stdbool.h>
#include <stddef.h>

struct prose_list {
    const char *const *words;
    size_t count;
};
#define PROSE_LIST(array)                                                                          \
    { (array), sizeof(array) / sizeof(array)[0] }

// Slots of a pattern: W who, D did, P place, T when, A quality, N thing, S things, V scene; a small
// letter is another one of the same sort. All other characters stand for themselves.
enum prose_slot { PROSE_W, PROSE_D, PROSE_P, PROSE_T, PROSE_A, PROSE_N, PROSE_S, PROSE_V };
#define PROSE_SLOTS 8
#define PROSE_SLOT_LETTERS "WDPTANSV"

struct prose {
    const char *language;
    bool latin; // a letter is a slot only where no other letter is beside it; sentences are
                // capitalized
    struct prose_list lists[PROSE_SLOTS], patterns, noise;
};

extern const struct prose prose_en, prose_zh, prose_ar;
const struct prose *prose_find(const char *language); // by BCP 47 tag; NULL: there is none

#endif
