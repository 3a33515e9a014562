// How a constraint stands out from the text around it: by digits where there are no others, and by
// words that the question repeats, which a search for words would find without understanding
// (Modarressi et al., "NoLiMa: Long-Context Evaluation Beyond Literal Matching", ICML 2025).
#ifndef LACUNA_EVALS_SALIENCE_H
#define LACUNA_EVALS_SALIENCE_H

#include "engine/base/arena.h"
#include "engine/base/str.h"

// Where the first digit of any script stands; text.n when there is none.
size_t salience_first_digit(struct str text);

// The content words that `text` shares with `question`, each once, in lower case, in the order of
// `text`: runs of letters of at least three that are no common English function word; of Chinese
// characters every two neighbours. Terminated strings in `a`; returns how many.
int salience_shared_words(struct str text, struct str question, struct arena *a,
                          const char ***words);

#endif
