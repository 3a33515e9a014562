// Where a model that thinks aloud does so: blocks of its reply between an opening and a closing
// tag.
//
// A block goes from an opening tag to the next closing one, tags included; an opening tag inside of
// it is text, and so is a closing one outside. Where the prompt has opened the first block, the
// reply begins inside of it; a closing tag before any opening one shows the same. A block that is
// never closed goes to the end.
//
// Outside of blocks a tag in Markdown's code is text: in a code span of one line, or in a fenced
// block, which goes to the end of the text where it is not closed (CommonMark 0.31.2, 4.5).
#ifndef LACUNA_ENGINE_BASE_REASONING_H
#define LACUNA_ENGINE_BASE_REASONING_H

#include "engine/base/str.h"

struct reasoning_tags {
    struct str open, close; // n 0: the model has none; none with a backtick or inside the other
    bool opened;            // by the prompt
};

struct reasoning_block {
    size_t begin, end; // bytes of the reply
    bool closed;       // false: the reply ends inside
};

// The next block that begins at or behind *at, which is 0 at first and then moves behind it. False:
// there is none.
bool reasoning_next(const struct reasoning_tags *tags, struct str reply, size_t *at,
                    struct reasoning_block *out);

// Does a prompt that ends in `tail` open a block? White space behind the tag does not count.
bool reasoning_opened_by(const struct reasoning_tags *tags, struct str tail);

// ---- while a reply grows ----

// A text of which more and more is known: whether it ends inside of a block.
struct reasoning_meter {
    const struct reasoning_tags *tags; // borrowed; NULL: none
    size_t at;                         // behind the last closed block
    bool inside, spelled; // spelled: an opening tag stands behind `at`, perhaps in code
    size_t begin;         // inside: where the block begins
    size_t searched;      // no next tag begins before this byte
};
void reasoning_start(struct reasoning_meter *m, const struct reasoning_tags *tags);
// `reply` is what is known now. An opening tag behind a backtick on its line counts once the line
// has ended without closing the code span. True: a block began or ended, look again whether another
// did.
bool reasoning_follow(struct reasoning_meter *m, struct str reply);

#endif
