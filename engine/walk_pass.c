// Passes of the session over the leaves in flight.
#include "engine/walk_internal.h"

#include "engine/base/clock.h"

// One call of the session: item i belongs to leaves[i].
struct pass {
    struct walk *walk;
    struct leaf **leaves;
    int count;
    uint32_t rows;
};

static int take_token(void *context, struct session *s, const struct session_row *row,
                      struct err *e) {
    (void)s, (void)e;
    const struct pass *p = context;
    p->leaves[row->item]->chosen = row->chosen;
    return 0;
}

// Reply token i is drawn with number i of its stream, whatever else is sampled beside it.
static struct token_draw draw_of(const struct leaf *l) {
    return (struct token_draw){.temperature = l->generation.temperature,
                               .top_p = l->generation.top_p,
                               .u = rng_unit_at(&l->sampling, (uint64_t)l->reply.tokens)};
}

// Up to `most` rows of a leaf: the token chosen last, or the next ones of its prompt.
static struct session_item item_of(const struct leaf *l, uint32_t most) {
    struct session_item item = {.sequence = l->sequence,
                                .ids = &l->last,
                                .count = 1,
                                .logits = SESSION_LAST,
                                .draw = draw_of(l)};
    if (l->watch.item.count > 0) item.watch = &l->watch.item;
    if (l->state == LEAF_GROWING) return item;
    uint32_t read = l->sequence->length, left = (uint32_t)l->ids.count - read;
    item.ids = l->ids.ids + read;
    item.count = left < most ? left : most;
    if (item.count < left) {
        item.logits = SESSION_NONE;
        item.watch = NULL;
    }
    return item;
}

// What the pass has done for a leaf, after it succeeded.
static void leaf_advance(struct walk *w, struct leaf *l, const struct session_item *item) {
    if (item->logits == SESSION_NONE) return; // more of the prompt is to be read
    l->state = LEAF_GROWING;
    watch_add(&l->watch);
    l->last = l->chosen;
    continuation_add(&l->reply, l->last);
    if (l->reply.ended) walk_leaf_end(w, l);
}

static int pass_run(struct pass *p, struct err *e) {
    struct walk *w = p->walk;
    struct session_sink sink = {take_token, p};
    uint64_t wall = clock_ns(), cpu = clock_cpu_ns();
    TRY(session_forward(w->session, w->items, (uint32_t)p->count, &sink, e));
    wall = clock_ns() - wall;
    cpu = clock_cpu_ns() - cpu;
    for (int i = 0; i < p->count; i++) {
        struct leaf *l = p->leaves[i];
        uint64_t *spent = l->state == LEAF_READING ? &l->prefill_ns : &l->decode_ns;
        *spent += wall * w->items[i].count / p->rows;
        l->cpu_ns += cpu * w->items[i].count / p->rows;
        leaf_advance(w, l, &w->items[i]);
    }
    return 0;
}

// Each leaf by itself, so that one that fails does not take the others with it. An interruption
// leaves the rest as they are.
static bool pass_apart(struct pass *all) {
    struct walk *w = all->walk;
    for (int i = 0; i < all->count; i++) {
        struct leaf *l = all->leaves[i];
        struct pass one = {.walk = w, .leaves = &l, .count = 1};
        w->items[0] = item_of(l, session_plan(w->session)->chunk_tokens);
        one.rows = w->items[0].count;
        if (pass_run(&one, &l->failure) == 0) continue;
        if (l->failure.code == ERR_CANCELLED) return false;
        l->failed = true;
        walk_leaf_end(w, l);
    }
    return true;
}

static void pass_add(struct pass *p, int leaves, uint32_t most_rows) {
    for (int i = 0; i < leaves && p->rows < most_rows; i++) {
        struct session_item *item = &p->walk->items[p->count];
        *item = item_of(p->leaves[p->count], most_rows - p->rows);
        p->rows += item->count;
        p->count++;
    }
}

bool walk_pass(struct walk *w) {
    uint32_t most = session_plan(w->session)->chunk_tokens;
    struct pass pass = {.walk = w, .leaves = w->listed};
    int growing = walk_leaves(w, LEAF_GROWING, w->listed);
    pass_add(&pass, growing, most);
    pass_add(&pass, walk_leaves(w, LEAF_READING, w->listed + growing), most);
    struct err failure = {0};
    if (pass_run(&pass, &failure) == 0) return true;
    return failure.code != ERR_CANCELLED && pass_apart(&pass);
}
