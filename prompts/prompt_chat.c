// Prompts around a filler of exchanges: which exchanges, and the closing unit that makes the length
// exact where it can.
#include "prompts/conversation.h"
#include "prompts/prompt_impl.h"

#define CORRECTIONS_MOST 16

struct meeting {
    struct prompt_builder *b;
    const struct prompt_request *r;
    struct conversation *c;
    struct frame *f;
    struct layout *l;
    struct prompt *x;
    struct arena *a;
};

// The prompt with so many exchanges and this closing unit.
static int attempt(const struct meeting *m, size_t units, struct str closing, uint32_t tokens,
                   struct err *e) {
    *m->l = (struct layout){.unit_count = units, .closing = closing, .closing_tokens = tokens};
    struct prompt_builder *b = m->b;
    TRY(conversation_make(m->r, units, closing, tokens, b->scratch, m->c, e));
    TRY(frame_make(b->p, &m->c->request, b->scratch, m->f, e));
    return prompt_join(b, m->f, m->l, chat_units_filler(m->r->chat), m->x, m->a, e);
}

// ---- what cannot be ----

static double share_of(int64_t tokens, const struct prompt_request *r) {
    return 100.0 * (double)tokens / r->length + 0.05;
}

// Says what tolerance is needed here, and what is enough wherever the files' exchanges are used.
static int fail_rest(const struct meeting *m, size_t units, int64_t rest, struct err *e) {
    uint32_t next, tokens, longest = 0;
    TRY(chat_units_tokens(m->r->chat, units, &next, e));
    if (next == 0)
        FAIL(e, ERR_CONFIG,
             "the filler is too small: behind all %zu exchanges %lld tokens remain; add files or "
             "shorten the length (nothing is ever repeated)",
             units, (long long)rest);
    for (size_t i = 0;; i++) {
        TRY(chat_units_tokens(m->r->chat, i, &tokens, e));
        if (tokens == 0) break;
        if (tokens > longest) longest = tokens;
    }
    FAIL(e, ERR_CONFIG,
         "%lld tokens remain behind the last exchange that fits, the next one has %u and a closing "
         "unit at most %d; set lengths.tolerance to %.1f%% or more for this prompt, %.1f%% is "
         "enough for all (the longest exchange has %u)",
         (long long)rest, next, CLOSING_TOKENS_MOST, share_of(rest - CLOSING_TOKENS_MOST, m->r),
         share_of((int64_t)longest - CLOSING_TOKENS_MOST, m->r), longest);
}

static int fail_room(const struct meeting *m, int64_t base, struct err *e) {
    uint32_t first;
    TRY(chat_units_tokens(m->r->chat, 0, &first, e));
    FAIL(e, ERR_CONFIG,
         "no room for filler: template, messages and constraints need %lld tokens and the first "
         "exchange %u, but the length is %d; make the length greater or the texts shorter",
         (long long)base, first, m->r->length);
}

// ---- the closing unit ----

// Builds closing units until the whole has the length; *found false when fewer exchanges are
// needed. With `rest` beyond a closing unit the prompt stays shorter by tolerance.
static int closing_meet(const struct meeting *m, size_t units, int64_t tokens, int64_t rest,
                        bool *found, struct err *e) {
    const struct prompt_request *r = m->r;
    const int64_t allowed = (int64_t)r->length * r->tolerance_ppm / 1000000;
    struct rng rng = r->closing_rng;
    int64_t want = rest < CLOSING_TOKENS_MOST ? rest : CLOSING_TOKENS_MOST, off = 0;
    *found = false;
    if (rest - CLOSING_TOKENS_MOST > allowed) return fail_rest(m, units, rest, e);
    for (int i = 0; i < CORRECTIONS_MOST; i++, rng_u32(&rng)) {
        struct str closing = STR("");
        if (want > 0)
            TRY(closing_build(m->b->counter, r->closing, rng, STR(""), STR(""), STR(""),
                              (uint32_t)want, (struct filler_frame){0}, m->b->scratch, &closing,
                              e));
        TRY(attempt(m, units, closing, (uint32_t)want, e));
        m->x->filler_tokens = (uint32_t)(tokens + (closing.n > 0 ? want : 0));
        off = (int64_t)r->length - m->x->tokens;
        const bool longest = want == CLOSING_TOKENS_MOST && rest >= CLOSING_TOKENS_MOST;
        *found = off == 0 || !m->b->p->can.exact_ids ||
                 (off > 0 && off <= allowed && (longest || i + 1 == CORRECTIONS_MOST));
        if (*found || (off < 0 && want == 0)) return 0;
        want += off;
        if (want < 0) want = 0;
        if (want > CLOSING_TOKENS_MOST) want = CLOSING_TOKENS_MOST;
    }
    FAIL(e, ERR_CONFIG,
         "a prompt of exactly %d tokens cannot be built: its joins change the count (last attempt "
         "%+lld); change the length by a few tokens or set lengths.tolerance",
         r->length, (long long)-off);
}

// As many exchanges as are needed to have `filler_tokens`, one at the least.
static int short_meet(const struct meeting *m, struct err *e) {
    size_t units;
    int64_t tokens;
    uint32_t more;
    TRY(chat_units_fit(m->r->chat, m->r->filler_tokens, &units, &tokens, e));
    if (tokens < m->r->filler_tokens) {
        TRY(chat_units_tokens(m->r->chat, units, &more, e));
        if (more == 0)
            FAIL(e, ERR_CONFIG, "the filler is too small: %lld tokens are available and %d needed",
                 (long long)tokens, m->r->filler_tokens);
        tokens += more;
        units++;
    }
    TRY(attempt(m, units, STR(""), 0, e));
    m->x->filler_tokens = (uint32_t)tokens;
    return 0;
}

int prompt_chat_meet(struct prompt_builder *b, const struct prompt_request *r,
                     struct conversation *c, struct frame *f, struct layout *l, struct prompt *x,
                     struct arena *a, struct err *e) {
    const struct meeting m = {b, r, c, f, l, x, a};
    if (r->like != NULL) { // depths stay as the other model counted them
        TRY(attempt(&m, r->like->unit_count, r->like->closing, r->like->closing_tokens, e));
        x->filler_tokens = r->like->filler_tokens;
        return 0;
    }
    if (r->length < 0) return short_meet(&m, e);
    size_t units;
    int64_t tokens;
    TRY(attempt(&m, 0, STR(""), 0, e));
    const int64_t base = x->tokens, room = r->length - base;
    TRY(chat_units_fit(r->chat, room, &units, &tokens, e));
    for (bool found = false; units > 0; units--) {
        TRY(closing_meet(&m, units, tokens, room - tokens, &found, e));
        if (found) return 0;
        uint32_t last;
        TRY(chat_units_tokens(r->chat, units - 1, &last, e));
        tokens -= last;
    }
    return fail_room(&m, base, e);
}
