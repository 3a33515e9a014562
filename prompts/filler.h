// Filler: the long text around the constraints, as an endless (files: a finite) stream of whole
// units.
//
// A stream is drawn from one named random stream, rng_open(seed, "repeat N" or "case ID",
// "filler"), and from nothing else. Unit i does not depend on how many units are taken, so the
// filler of a shorter prompt is a prefix of the filler of a longer one.
//
// Join rules (DESIGN section 4.2): a joining space belongs to the segment that follows it, a line
// break to the one before it. A unit therefore carries its space in `lead` and its line breaks in
// `tail`.
#ifndef LACUNA_PROMPTS_FILLER_H
#define LACUNA_PROMPTS_FILLER_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/rng.h"
#include "engine/base/str.h"
#include "engine/provider.h"

#include <stdbool.h>

struct filler_item {
    struct str lead; // space that joins it to the unit before it
    struct str text; // the unit itself
    struct str tail; // line breaks that part it from the unit behind it
    // Where lead + text + tail stand in filler_text(): [from, to).
    size_t from, to;
    const struct exchange *exchange; // of kind chat; else NULL
    uint32_t sprinkle; // 0: the filler's own; else 1 + the index of the sprinkle it came from
};

struct filler;

// Whether there are prose and noise in the language (BCP 47 tag): English, Chinese, Arabic.
bool filler_language_written(const char *language);

// Fluent everyday prose from a grammar: no digits, weekdays or names. No sentence comes twice.
// With its lead a unit has at most 64 bytes, hence at most 64 tokens in any byte-level tokenizer.
#define FILLER_PROSE_UNIT_BYTES 64
struct filler *filler_prose_open(const char *language, struct rng rng, struct arena *a);

// Fixed sentences, all of them once per pass, each pass in an order drawn anew. `count` 0: the
// language's built-in ones. Sentences are borrowed.
struct filler *filler_noise_open(const struct str *sentences, size_t count, const char *language,
                                 struct rng rng, struct arena *a);

// "word-word: word" lines of seeded random words without digits. No key comes twice.
struct filler *filler_pairs_open(struct rng rng, struct arena *a);

// Lines of JSON, one pair of UUIDs each. No key comes twice.
struct filler *filler_json_open(struct rng rng, struct arena *a);

// Lists of made-up words. COMMON: "17. dapor 18. ...", ten words that come ten times as often as
// each of the others; 99 in a block. FREQUENT: bare words with the counts of Zipf's law with
// exponent 2; 100 in a block. The answers are the ten common words, or the three most frequent.
enum filler_words { FILLER_WORDS_COMMON, FILLER_WORDS_FREQUENT };
#define FILLER_COMMON_ANSWERS 10
#define FILLER_FREQUENT_ANSWERS 3
#define FILLER_ANSWERS_MOST 10
struct filler *filler_words_open(enum filler_words kind, struct rng rng, struct arena *a);
// What a filler of this stream has for answers, without its text; returns how many.
int filler_words_answers(enum filler_words kind, struct rng rng, struct arena *a,
                         struct str out[FILLER_ANSWERS_MOST]);

// The user's own texts. Loaded and split once, shared by the streams of all repeats.
enum filler_split { FILLER_SPLIT_SENTENCE, FILLER_SPLIT_PARAGRAPH, FILLER_SPLIT_DOCUMENT };
struct filler_texts;
// `wrapper` (or empty) stands around each unit: {{text}} once, {{n}} for the unit's number from 1.
// Texts are UTF-8 (a byte order mark is dropped); anything else is ERR_CONFIG naming file and byte.
int filler_texts_load(const char *const *paths, size_t count, enum filler_split split,
                      struct str wrapper, struct arena *a, struct filler_texts **out,
                      struct err *e);
size_t filler_texts_units(const struct filler_texts *t);
// In file order, or with `shuffle` in an order drawn from `rng`. It ends; nothing comes twice.
struct filler *filler_files_open(const struct filler_texts *texts, bool shuffle, bool spaced,
                                 struct rng rng, struct arena *a);

// Exchanges of conversations (prompts/turns.h), borrowed; in order, or with `shuffle` in one drawn
// from `rng`. They end; none comes twice.
struct filler *filler_chat_open(const struct exchange *list, size_t count, bool shuffle,
                                struct rng rng, struct arena *a);
// An exchange's turns, their texts as ranges of filler_text(): valid until the next unit.
struct provider_message *filler_chat_turns(const struct filler *f, const struct filler_item *item,
                                           struct arena *a);

// Other sentences among a filler's units, each a unit of its own: of `per_1k_tokens` (1 to 1000)
// one in every 1000 / per_1k_tokens tokens, at a place drawn from `rng`, never before the first
// unit. Tokens are estimated from the letters, so that a text does not depend on a model.
struct filler_sprinkle {
    uint32_t per_1k_tokens;
    int (*draw)(void *context, struct str *text, struct err *e); // the next one; called in order
    void *context;
    struct rng rng;
};
struct filler *filler_mixed_open(struct filler *base, const struct filler_sprinkle *list,
                                 size_t count, struct arena *a);

// Unit i. *out is NULL behind the end of a finite stream. Units stay where they are (arena).
int filler_get(struct filler *f, size_t i, const struct filler_item **out, struct err *e);
// All units taken so far, joined: what the record stores once per repeat. Valid until the next
// unit.
struct str filler_text(const struct filler *f);
// The joins of a foreign sentence (constraint, closing unit) among this filler's units.
struct str filler_lead(const struct filler *f);
struct str filler_tail(const struct filler *f);

// What stands around the words of the closing unit, as a part of its text, to have the form of this
// filler's units; mostly nothing.
struct filler_frame {
    struct str open, close;
};
struct filler_frame filler_closing_frame(const struct filler *f);

// Whether the language (BCP 47 tag, "en", "zh-Hans") puts spaces between sentences.
bool filler_language_spaced(const char *language);

#endif
