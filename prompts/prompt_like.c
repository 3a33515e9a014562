// A prompt with the texts of one that was built for another model (request.like): the same messages
// in this model's template, of whatever length they have in its tokens.
#include "prompts/prompt_impl.h"

int prompt_like_take(struct prompt_builder *b, const struct prompt_request *r,
                     const struct frame *f, struct layout *l, struct prompt *x, struct arena *a,
                     struct err *e) {
    *l = *r->like;
    return prompt_join(b, f, l, units_filler(r->units), x, a, e);
}

// The bytes of the text in which the filler stands.
static void filler_range(const struct frame *f, const struct layout *l, size_t *from, size_t *to) {
    size_t at = 0;
    for (size_t i = 0; i < f->before_count; i++) at += f->before[i].text.n;
    *from = SIZE_MAX;
    *to = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct element *e = &l->list[i];
        size_t next = at + e->lead.n + e->text.n + e->tail.n;
        if (e->in_filler && *from == SIZE_MAX) *from = at;
        if (e->in_filler) *to = next;
        at = next;
    }
}

void prompt_like_depths(struct prompt_builder *b, const struct frame *f, const struct layout *l,
                        struct prompt *x) {
    size_t from, to, at = 0, k = 0;
    int64_t filler = 0;
    filler_range(f, l, &from, &to);
    // First the filler's tokens before each span, then their share.
    for (size_t i = 0; i < x->ids.count; i++) {
        while (k < x->span_count && i >= x->spans[k].first_token + x->spans[k].tokens) k++;
        struct prompt_span *s =
            k < x->span_count && i >= x->spans[k].first_token ? &x->spans[k] : NULL;
        if (s != NULL && i == s->first_token && s->depth != PROMPT_DEPTH_NONE)
            s->depth = (int32_t)filler;
        filler += at >= from && at < to && s == NULL;
        at += b->p->ops->id_bytes(b->p, x->ids.ids[i]).n;
    }
    x->filler_tokens = (uint32_t)filler;
    for (k = 0; k < x->span_count && filler > 0; k++) {
        int32_t *depth = &x->spans[k].depth;
        if (*depth != PROMPT_DEPTH_NONE)
            *depth = (int32_t)(((int64_t)*depth * PROMPT_DEPTH_MOST + filler / 2) / filler);
    }
}
