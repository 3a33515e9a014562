// Regular expressions of the checks: PCRE2 with UTF, UCP and JIT under match and depth limits.
//
// Only "no match" means that something is not there. Every other negative code of PCRE2 is an error
// with a name, and a full JIT stack is tried again without JIT, so no verdict depends on JIT being
// built in. Text that is not valid UTF-8 is searched in its valid stretches. One thread owns a set.
#ifndef LACUNA_EVALS_PATTERN_H
#define LACUNA_EVALS_PATTERN_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdbool.h>

#define PATTERN_MATCH_LIMIT 1000000 // for each 4 KiB of text begun: a long filler is worth longer
#define PATTERN_DEPTH_LIMIT 100000

struct pattern;     // one compiled pattern, owned by its set
struct pattern_set; // patterns cached by text and flags, with the room that matching needs

struct pattern_flags {
    bool ignore_case, multiline, dotall;
};

struct pattern_set *pattern_set_open(void);
void pattern_set_close(struct pattern_set *s); // NULL is allowed; frees its patterns

// `where` ("constraint \"order\": violated") begins the message of a pattern that cannot compile:
// ERR_CONFIG with PCRE2's reason, the byte offset, and the pattern with the place marked.
int pattern_compile(struct pattern_set *s, struct str text, struct pattern_flags flags,
                    const char *where, const struct pattern **out, struct err *e);

enum pattern_result { PATTERN_FOUND, PATTERN_ABSENT, PATTERN_ERROR };

// The first match at or behind byte `from`: *match is its byte range. On PATTERN_ERROR *code is the
// error's name ("match_limit", "jit_stack", ...), static or in the set.
enum pattern_result pattern_find(const struct pattern *p, struct str subject, size_t from,
                                 size_t match[2], const char **code);

// Does the outcome hang on where the text ends? True for a pattern with an end anchor ($, \z, \Z)
// or a negative lookahead whose search reached the end of the subject.
bool pattern_looks_at_end(const struct pattern *p, struct str subject);
// Does the search from byte `from` on reach the end, so that more text could give another first
// match? Of any pattern.
bool pattern_reaches_end(const struct pattern *p, struct str subject, size_t from);

#endif
