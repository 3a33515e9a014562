#include "evals/answer.h"

#include "evals/reply.h"

static void keep_stretch(struct str reply, size_t begin, size_t end, size_t answer[2]) {
    if (reply_blank(str_slice(reply, begin, end))) return;
    answer[0] = begin;
    answer[1] = end;
}

void answer_find(const struct reasoning_tags *tags, struct str reply, size_t answer[2]) {
    struct reasoning_block block = {.closed = !tags->opened};
    size_t at = 0, behind = 0;
    answer[0] = tags->open.n == 0 ? 0 : reply.n;
    answer[1] = reply.n;
    if (tags->open.n == 0) return;
    while (reasoning_next(tags, reply, &at, &block)) {
        keep_stretch(reply, behind, block.begin, answer);
        behind = block.end;
    }
    if (block.closed)
        keep_stretch(reply, behind, reply.n, answer);
    else
        answer[0] = answer[1] = reply.n;
}
