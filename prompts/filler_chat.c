// Chat: whole exchanges of conversations. A unit's text is that of its turns and of the tools they
// call, a line break between them; what shows a turn is the chat template's matter.
#include "prompts/filler_impl.h"
#include "prompts/turns.h"

struct chat {
    const struct exchange *list;
    size_t count;
    uint32_t *order; // NULL: file order
};

static int chat_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)e;
    const struct chat *s = f->state;
    if (f->count == s->count) {
        *end = true;
        return 0;
    }
    const struct exchange *x = &s->list[s->order != NULL ? s->order[f->count] : f->count];
    struct buf text = {0};
    for (size_t i = 0; i < x->count; i++) {
        const struct provider_message *m = &x->turns[i].m;
        if (i > 0) buf_add_char(&text, '\n');
        buf_add_str(&text, m->text);
        for (size_t k = 0; k < m->call_count; k++) {
            buf_add_char(&text, '\n');
            buf_add_str(&text, m->calls[k].arguments);
        }
    }
    out->text = buf_take(&text, f->arena);
    out->exchange = x;
    return 0;
}

struct provider_message *filler_chat_turns(const struct filler *f, const struct filler_item *item,
                                           struct arena *a) {
    const struct exchange *x = item->exchange;
    const struct str all = filler_text(f);
    struct provider_message *turns = arena_array(a, x->count, sizeof *turns);
    size_t at = item->from + item->lead.n;
    for (size_t i = 0; i < x->count; i++) {
        turns[i] = x->turns[i].m;
        turns[i].text = str_slice(all, at, at + turns[i].text.n);
        at += turns[i].text.n + 1;
        struct provider_call *calls = arena_array(a, turns[i].call_count + 1, sizeof *calls);
        for (size_t k = 0; k < turns[i].call_count; k++) {
            calls[k] = turns[i].calls[k];
            calls[k].arguments = str_slice(all, at, at + calls[k].arguments.n);
            at += calls[k].arguments.n + 1;
        }
        turns[i].calls = calls;
    }
    return turns;
}

struct filler *filler_chat_open(const struct exchange *list, size_t count, bool shuffle,
                                struct rng rng, struct arena *a) {
    struct chat *s = arena_alloc(a, sizeof *s);
    s->list = list;
    s->count = count;
    struct filler *f = filler_create(rng, a, s, chat_next);
    f->lead = STR("");
    f->tail = STR("\n");
    if (shuffle) {
        s->order = arena_array(a, count, sizeof *s->order);
        for (uint32_t i = 0; i < count; i++) s->order[i] = i;
        rng_shuffle(&f->rng, s->order, (uint32_t)count);
    }
    return f;
}
