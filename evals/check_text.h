// The text that a composite check looks at: the reply's answer, a rewriting of it, or one line of
// it. Places in it lead back to bytes of the answer.
#ifndef LACUNA_EVALS_CHECK_TEXT_H
#define LACUNA_EVALS_CHECK_TEXT_H

#include "evals/check_spec.h"
#include "evals/value.h"

struct check_text {
    struct str text;
    size_t base;                 // of text.p[0] in the answer, where nothing was rewritten
    const uint32_t *from, *to;   // rewritten: the bytes of the answer behind each byte; else NULL
    unsigned rewritten;          // CHECK_* bits
    bool open;                   // the reply was cut and ends here: more could follow
    bool masked;                 // echoes are filled with \x1A
    struct value_text folded[2]; // for values, by ignore_case; made when first asked for
    bool has_folded[2];
};

// The whole answer as it stands.
struct check_text check_text_whole(struct str answer, bool open, bool masked);
// A part of it, [begin, end) in its own bytes.
struct check_text check_text_part(const struct check_text *t, size_t begin, size_t end);
// Rewritten by the CHECK_* bits, in this order:
//   strip_markdown  without the marks of emphasis (* ` ~~, and _ at the edge of a word), of
//   headings
//                   (#) and quotations (>) at line starts; [text](address) becomes the text
//   nfkc            Unicode's compatibility composition (UAX 15), cluster by cluster
//   fold_case       Unicode's full case folding, composed
//   fold_space      any run of white space becomes one space, none at the ends
struct check_text check_text_rewrite(const struct check_text *t, unsigned rewriting,
                                     struct arena *a);

// [begin, end) of the text as bytes of the answer.
void check_text_range(const struct check_text *t, const size_t range[2], size_t answer[2]);
const struct value_text *check_text_folded(struct check_text *t, bool ignore_case, struct arena *a);

#endif
