// Byte strings with a length, growable buffers, and the few UTF-8 helpers that everybody needs.
#ifndef LACUNA_ENGINE_BASE_STR_H
#define LACUNA_ENGINE_BASE_STR_H

#include "engine/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A borrowed slice. May hold any bytes, NUL included; not NUL-terminated.
struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

struct str str_from(const char *text); // NULL gives the empty string
bool str_equal(struct str a, struct str b);
bool str_equal_c(struct str a, const char *b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_slice(struct str s, size_t begin, size_t end); // asserts begin <= end <= n
struct str str_trim(struct str s);                            // ASCII white space at both ends
// At most the first `most` bytes, never a part of a UTF-8 character.
struct str str_head(struct str s, size_t most);
struct str str_copy(struct arena *a, struct str s); // the copy has a NUL behind it
char *str_to_c(struct arena *a, struct str s);
#define STR_NONE ((size_t)-1)
size_t str_find(struct str s, struct str needle, size_t from); // byte offset, or STR_NONE
size_t str_count(struct str s, struct str needle);             // non-overlapping occurrences

// A growable buffer on the heap, always NUL-terminated when p is not NULL. Zero-initialise it.
struct buf {
    char *p;
    size_t n;
    size_t capacity;
};

void buf_reserve(struct buf *b, size_t extra);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *b, const char *format, ...);
void buf_clear(struct buf *b); // n = 0, memory kept
void buf_free(struct buf *b);
struct str buf_take(struct buf *b, struct arena *a); // moves the text, with a NUL, to the arena
struct str buf_str(const struct buf *b);

// UTF-8 (RFC 3629). `utf8_decode` reads one code point at s[at] and returns its length 1..4; an
// ill-formed sequence gives 0xFFFD and the length of its maximal ill-formed part (Unicode 3.9,
// "substitution of maximal subparts"), never 0 while at < s.n.
size_t utf8_decode(struct str s, size_t at, uint32_t *code_point);
size_t utf8_encode(uint32_t code_point, char out[4]);
bool utf8_valid(struct str s);
size_t utf8_first_bad(struct str s); // offset of the first ill-formed byte, or s.n

// The candidate nearest to `word` by edit distance, or NULL when none is near ("did you mean").
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

#endif
