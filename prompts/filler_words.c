// Lists of made-up words of which some come more often than others, after the tasks of RULER (Hsieh
// et al., "RULER: What's the Real Context Size of Your Long-Context Language Models?", COLM 2024).
// Counts are kept by blocks, so that a shorter list is a prefix of a longer one and the share of
// each word is the same at every length.
#include "prompts/filler_impl.h"

#include <string.h>

#define BLOCK_MOST 100
#define COMMON_TIMES 3 // in a block, as often as each of the block's own words: ten times as often
#define COMMON_OTHERS 23
#define RANKS 8

// Zipf's law with exponent 2 over ranks 1 to 8, of 100 words; the rest are words that come once.
static const int rank_times[RANKS] = {61, 15, 7, 4, 2, 2, 1, 1};

struct words {
    enum filler_words kind;
    struct seen seen;
    struct str often[FILLER_ANSWERS_MOST]; // the answers first
    struct str block[BLOCK_MOST];
    size_t block_count, at;
};

// Consonant, vowel, consonant, vowel, consonant: no word twice.
static struct str word_draw(struct filler *f, struct words *w) {
    static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    for (;;) {
        char word[5];
        for (size_t i = 0; i < sizeof word; i++)
            word[i] = i % 2 == 0 ? consonants[rng_below(&f->rng, sizeof consonants - 1)]
                                 : vowels[rng_below(&f->rng, sizeof vowels - 1)];
        struct str s = {word, sizeof word};
        if (seen_add(&w->seen, s, f->arena)) return str_copy(f->arena, s);
    }
}

static void block_add(struct words *w, struct str word, int times) {
    for (int i = 0; i < times; i++) w->block[w->block_count++] = word;
}

static void block_draw(struct filler *f, struct words *w) {
    w->block_count = w->at = 0;
    if (w->kind == FILLER_WORDS_COMMON) {
        for (int i = 0; i < FILLER_COMMON_ANSWERS; i++) block_add(w, w->often[i], COMMON_TIMES);
        for (int i = 0; i < COMMON_OTHERS; i++) block_add(w, word_draw(f, w), COMMON_TIMES);
    } else {
        for (int i = 0; i < RANKS; i++) block_add(w, w->often[i], rank_times[i]);
        while (w->block_count < BLOCK_MOST) block_add(w, word_draw(f, w), 1);
    }
    uint32_t order[BLOCK_MOST];
    struct str drawn[BLOCK_MOST];
    for (uint32_t i = 0; i < w->block_count; i++) order[i] = i;
    rng_shuffle(&f->rng, order, (uint32_t)w->block_count);
    for (size_t i = 0; i < w->block_count; i++) drawn[i] = w->block[order[i]];
    memcpy(w->block, drawn, w->block_count * sizeof *drawn);
}

static int words_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)end;
    (void)e;
    struct words *w = f->state;
    if (w->at == w->block_count) block_draw(f, w);
    struct str word = w->block[w->at++];
    out->text = w->kind == FILLER_WORDS_COMMON
                    ? str_from(arena_printf(f->arena, "%zu. " STR_FMT, f->count + 1, STR_ARG(word)))
                    : word;
    return 0;
}

struct filler *filler_words_open(enum filler_words kind, struct rng rng, struct arena *a) {
    struct words *w = arena_alloc(a, sizeof *w);
    w->kind = kind;
    struct filler *f = filler_create(rng, a, w, words_next);
    f->lead = STR(" ");
    int often = kind == FILLER_WORDS_COMMON ? FILLER_COMMON_ANSWERS : RANKS;
    for (int i = 0; i < often; i++) w->often[i] = word_draw(f, w);
    return f;
}

int filler_words_answers(enum filler_words kind, struct rng rng, struct arena *a,
                         struct str out[FILLER_ANSWERS_MOST]) {
    const struct filler *f = filler_words_open(kind, rng, a);
    const struct words *w = f->state;
    memcpy(out, w->often, sizeof w->often);
    return kind == FILLER_WORDS_COMMON ? FILLER_COMMON_ANSWERS : FILLER_FREQUENT_ANSWERS;
}
