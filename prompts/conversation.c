#include "prompts/conversation.h"

#include "prompts/turns.h"

#include <assert.h>
#include <string.h>

// ---- counts ----

struct chat_unit {
    const struct filler_item *item;
    uint64_t before; // tokens of the exchanges before this one
    uint32_t tokens;
    uint32_t *begin, *end; // [turn]: of user turns, tokens up to where its text begins and ends
};

struct chat_units {
    struct provider *p;
    struct filler *f;
    struct arena *arena;
    struct chat_unit **list;
    size_t count;
    uint64_t tokens;
    uint32_t frame; // tokens of what stands around an exchange while it is counted
};

struct chat_units *chat_units_open(struct provider *p, struct filler *f, struct arena *a) {
    struct chat_units *u = arena_alloc(a, sizeof *u);
    *u = (struct chat_units){.p = p, .f = f, .arena = a};
    return u;
}

struct filler *chat_units_filler(const struct chat_units *u) {
    return u->f;
}

static int pieces_count(struct chat_units *u, const struct provider_piece *pieces, size_t count,
                        struct arena *a, uint32_t *tokens, struct err *e) {
    struct provider_ids ids = {0};
    if (count > 0) TRY(u->p->ops->tokenize(u->p, pieces, count, a, &ids, e));
    *tokens = (uint32_t)ids.count;
    return 0;
}

// The turns between other ones, rendered.
static int turns_render(struct chat_units *u, const struct provider_message *turns, size_t count,
                        struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                        struct err *e) {
    const struct provider_message user = {.role = STR("user"), .text = STR("a")};
    const struct provider_message assistant = {.role = STR("assistant"), .text = STR("a")};
    struct provider_message *list = arena_array(a, count + 3, sizeof *list);
    list[0] = user;
    list[1] = assistant;
    if (count > 0) memcpy(list + 2, turns, count * sizeof *list);
    list[count + 2] = user;
    return u->p->ops->render(u->p, list, count + 3, a, pieces, piece_count, e);
}

// The piece that carries a turn's text.
static int piece_of(const struct provider_piece *pieces, size_t count, struct str text, size_t *out,
                    struct err *e) {
    for (size_t i = 0; i < count; i++)
        if (pieces[i].text.n > 0 && pieces[i].text.p >= text.p &&
            pieces[i].text.p < text.p + text.n) {
            *out = i;
            return 0;
        }
    FAIL(e, ERR_CONFIG,
         "the chat template does not carry a turn's text through unchanged; choose another "
         "models[].template");
}

static int unit_measure(struct chat_units *u, struct chat_unit *x, struct arena *a, struct err *e) {
    const struct exchange *exchange = x->item->exchange;
    const struct provider_message *turns = filler_chat_turns(u->f, x->item, a);
    struct provider_piece *pieces;
    size_t count, first = 0, k;
    uint32_t all, origin = 0, tokens;
    TRY(turns_render(u, turns, exchange->count, a, &pieces, &count, e));
    TRY(pieces_count(u, pieces, count, a, &all, e));
    TRY(piece_of(pieces, count, turns[0].text, &first, e));
    TRY(pieces_count(u, pieces, first, a, &origin, e));
    x->begin = arena_array(u->arena, exchange->count, sizeof *x->begin);
    x->end = arena_array(u->arena, exchange->count, sizeof *x->end);
    for (size_t i = 0; i < exchange->count; i++) {
        if (!str_equal_c(turns[i].role, "user")) continue;
        TRY(piece_of(pieces, count, turns[i].text, &k, e));
        TRY(pieces_count(u, pieces, k, a, &tokens, e));
        x->begin[i] = tokens - origin;
        TRY(pieces_count(u, pieces, k + 1, a, &tokens, e));
        x->end[i] = tokens - origin;
    }
    x->tokens = all > u->frame ? all - u->frame : 1;
    return 0;
}

static int unit_take(struct chat_units *u, struct chat_unit **out, struct arena *a, struct err *e) {
    struct provider_piece *pieces;
    size_t count;
    const struct filler_item *item;
    *out = NULL;
    TRY(filler_get(u->f, u->count, &item, e));
    if (item == NULL) return 0;
    if (u->frame == 0) {
        TRY(turns_render(u, NULL, 0, a, &pieces, &count, e));
        TRY(pieces_count(u, pieces, count, a, &u->frame, e));
    }
    struct chat_unit *x = arena_alloc(u->arena, sizeof *x);
    *x = (struct chat_unit){.item = item, .before = u->tokens};
    TRY(unit_measure(u, x, a, e));
    u->tokens += x->tokens;
    *out = x;
    return 0;
}

static int unit_at(struct chat_units *u, size_t i, struct chat_unit **out, struct err *e) {
    while (i >= u->count) {
        struct arena *a = arena_create("exchange");
        struct chat_unit *x;
        int result = unit_take(u, &x, a, e);
        arena_destroy(a);
        if (result != 0) return -1;
        *out = NULL;
        if (x == NULL) return 0;
        u->list = arena_more(u->arena, u->list, u->count, sizeof *u->list);
        u->list[u->count++] = x;
    }
    *out = u->list[i];
    return 0;
}

int chat_units_fit(struct chat_units *u, int64_t room, size_t *units, int64_t *tokens,
                   struct err *e) {
    *units = 0;
    *tokens = 0;
    for (;;) {
        struct chat_unit *x;
        TRY(unit_at(u, *units, &x, e));
        if (x == NULL || (int64_t)(x->before + x->tokens) > room) return 0;
        *tokens = (int64_t)(x->before + x->tokens);
        ++*units;
    }
}

int chat_units_tokens(struct chat_units *u, size_t i, uint32_t *tokens, struct err *e) {
    struct chat_unit *x;
    TRY(unit_at(u, i, &x, e));
    *tokens = x != NULL ? x->tokens : 0;
    return 0;
}

// ---- where constraints may stand ----

// A place in a user turn, and the tokens of filler before it.
struct spot {
    size_t message;
    bool end;
    uint64_t at;
};

struct making {
    const struct prompt_request *r;
    size_t slot;  // index of the chat message
    size_t units; // exchanges
    size_t turns;
    struct spot *spots; // ascending
    size_t spot_count;
    size_t last_user; // message of the conversation's last user turn
    uint64_t filler;  // tokens
    struct arena *a;
};

static int slot_find(const struct prompt_request *r, size_t *out, struct err *e) {
    *out = r->message_count;
    for (size_t m = 0; m < r->message_count; m++)
        if (str_equal_c(r->messages[m].role, PROMPT_CHAT_ROLE)) *out = m;
    if (*out + 1 >= r->message_count || !str_equal_c(r->messages[*out + 1].role, "user"))
        FAIL(e, ERR_CONFIG,
             "prompt.messages: behind the message with role: chat a user message must stand");
    return 0;
}

static void messages_make(struct making *m, struct conversation *out) {
    const struct prompt_request *r = m->r;
    const struct chat_units *u = r->chat;
    for (size_t i = 0; i < m->units; i++) m->turns += u->list[i]->item->exchange->count;
    struct provider_message *list = arena_array(m->a, r->message_count + m->turns, sizeof *list);
    m->spots = arena_array(m->a, 2 * m->turns + 1, sizeof *m->spots);
    size_t n = m->slot;
    if (n > 0) memcpy(list, r->messages, n * sizeof *list);
    for (size_t i = 0; i < m->units; i++) {
        const struct chat_unit *x = u->list[i];
        const struct provider_message *turns = filler_chat_turns(u->f, x->item, m->a);
        for (size_t k = 0; k < x->item->exchange->count; k++, n++) {
            list[n] = turns[k];
            if (!str_equal_c(turns[k].role, "user")) continue;
            m->last_user = n;
            m->spots[m->spot_count++] = (struct spot){n, false, x->before + x->begin[k]};
            m->spots[m->spot_count++] = (struct spot){n, true, x->before + x->end[k]};
        }
        m->filler = x->before + x->tokens;
    }
    // The end of the last user turn is the closing unit's.
    if (m->spot_count > 0) m->spot_count--;
    memcpy(list + n, r->messages + m->slot + 1, (r->message_count - m->slot - 1) * sizeof *list);
    list[0].tools = r->messages[0].tools; // also where the chat message itself was the first
    list[0].tool_count = r->messages[0].tool_count;
    out->request.messages = list;
    out->request.message_count = r->message_count - 1 + m->turns;
}

// The spot nearest to a depth; of equally near ones the first.
static const struct spot *spot_find(const struct making *m, int32_t depth) {
    if (depth <= 0) return &m->spots[0];
    if (depth >= PROMPT_DEPTH_MOST) return &m->spots[m->spot_count - 1];
    const uint64_t target = (uint64_t)depth * m->filler;
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < m->spot_count; i++) {
        uint64_t at = m->spots[i].at * PROMPT_DEPTH_MOST;
        uint64_t distance = at > target ? at - target : target - at;
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    return &m->spots[best];
}

static struct prompt_insert insert_make(const struct making *m, const struct prompt_insert *given) {
    struct prompt_insert x = *given;
    if (prompt_in_message(x.anchor)) {
        if (x.anchor == PROMPT_IN_PLACE && x.message > m->slot) x.message += m->turns - 1;
        return x;
    }
    const int32_t depth = x.anchor == PROMPT_BEFORE_FILLER  ? 0
                          : x.anchor == PROMPT_AFTER_FILLER ? PROMPT_DEPTH_MOST
                                                            : x.depth;
    const struct spot *spot = spot_find(m, depth);
    const uint64_t real = m->filler > 0 ? (spot->at * PROMPT_DEPTH_MOST + m->filler / 2) / m->filler
                                        : (uint64_t)depth;
    x.depth = x.anchor == PROMPT_AT_DEPTH ? (int32_t)real : PROMPT_DEPTH_NONE;
    x.anchor = spot->end ? PROMPT_TURN_END : PROMPT_TURN_BEGIN;
    x.message = spot->message;
    return x;
}

// The order of reading where places are equal: what stands in messages, before the filler, by
// depth, behind the filler.
static int64_t insert_rank(const struct prompt_insert *x) {
    if (x->anchor == PROMPT_BEFORE_FILLER) return 0;
    if (x->anchor == PROMPT_AT_DEPTH) return 1 + (int64_t)x->depth;
    return x->anchor == PROMPT_AFTER_FILLER ? INT64_MAX : -1;
}

static void inserts_make(struct making *m, struct str closing, struct conversation *out) {
    const struct prompt_request *r = m->r;
    size_t count = r->insert_count;
    struct prompt_insert *list = arena_array(m->a, count + 1, sizeof *list);
    out->origin = arena_array(m->a, count + 1, sizeof *out->origin);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (;
             at > 0 && insert_rank(&r->inserts[out->origin[at - 1]]) > insert_rank(&r->inserts[i]);
             at--)
            out->origin[at] = out->origin[at - 1];
        out->origin[at] = i;
    }
    for (size_t i = 0; i < count; i++) list[i] = insert_make(m, &r->inserts[out->origin[i]]);
    if (closing.n > 0) {
        out->origin[count] = count;
        list[count++] = (struct prompt_insert){.id = "closing unit",
                                               .text = closing,
                                               .anchor = PROMPT_TURN_END,
                                               .message = m->last_user};
    }
    out->request.inserts = list;
    out->request.insert_count = count;
}

int conversation_make(const struct prompt_request *r, size_t units, struct str closing,
                      uint32_t closing_tokens, struct arena *a, struct conversation *out,
                      struct err *e) {
    struct making m = {.r = r, .units = units, .a = a};
    assert(closing.n == 0 || units > 0);
    *out = (struct conversation){.request = *r};
    out->request.chat = NULL;
    out->request.whole = true;
    TRY(slot_find(r, &m.slot, e));
    messages_make(&m, out);
    m.filler += closing.n > 0 ? closing_tokens : 0;
    m.spots[m.spot_count++] = (struct spot){m.slot + m.turns, false, m.filler};
    inserts_make(&m, closing, out);
    return 0;
}
