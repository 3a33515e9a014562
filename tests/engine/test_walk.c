// The prompt walk: replies do not depend on order, company, memory or what failed beside them.
#include "engine/walk.h"
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include "engine/base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 14
#define CONTEXT 1200
#define MOST_TOKENS 40

static const char *model_path;
static uint32_t V;

static struct str token_bytes(const void *context, int32_t id) {
    static char text[320][8];
    (void)context;
    snprintf(text[id], sizeof text[id], "%d ", id);
    return str_from(text[id]);
}
static const int32_t STOPS[] = {2, 77};
static struct continuation_vocabulary vocabulary = {
    .bytes = token_bytes, .longest_bytes = 8, .stops = STOPS, .stop_count = 2};

// Prompts that share prefixes of many lengths, some equal, greedy and sampled ones.
struct request {
    int32_t ids[CONTEXT];
    struct provider_request r;
    struct provider_generation g;
};
static struct request requests[REQUESTS];
static const struct str STOP_STRING[] = {{"9 1", 3}};

static void make_requests(void) {
    static const uint32_t shared[REQUESTS] = {0,   1100, 1100, 700, 700, 700, 512,
                                              512, 300,  37,   37,  36,  0,   0};
    static const uint32_t own[REQUESTS] = {1150, 50, 50, 1, 20, 400, 1, 9, 212, 4, 4, 4, 3, 1};
    static int32_t trunk[CONTEXT];
    probe_ids(21, V, trunk, CONTEXT);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        struct request *q = &requests[i];
        memcpy(q->ids, trunk, sizeof trunk);
        probe_ids(i == 2 || i == 10 ? 30 + i - 1 : 30 + i, V, q->ids + shared[i], own[i]);
        q->g = (struct provider_generation){.max_tokens = 8 + (int)(i * 7 % 33),
                                            .temperature = i % 3 == 0 ? 0 : 0.9,
                                            .top_p = i % 2 == 0 ? 1 : 0.95,
                                            .stop = STOP_STRING,
                                            .stop_count = i % 4 == 1};
        q->r = (struct provider_request){
            .ticket = i,
            .key = "test",
            .ids = {q->ids, shared[i] + own[i]},
            .generation = &q->g,
            .sampling = rng_open(5, i < 5 ? "repeat 0" : "repeat 1", "sample 0")};
    }
}

struct outcome {
    bool ok;
    int32_t ids[MOST_TOKENS];
    size_t count;
    char text[8 * MOST_TOKENS];
    enum provider_finish finish;
    char reason[512];
    int shared_tokens;
};

struct rig {
    struct probe p;
    struct walk *w;
    atomic_bool cancel;
};

static void rig_open(struct rig *r, int in_flight, uint32_t more_pages) {
    struct session_options o = {.context_tokens = CONTEXT, .threads = 1};
    atomic_init(&r->cancel, false);
    o.cancel = &r->cancel;
    walk_session_options(&o, CONTEXT, in_flight);
    o.pages_least += more_pages;
    o.pages_most = 0;
    r->p = probe_open(model_path, &o);
    r->w = walk_open(r->p.session, &vocabulary, in_flight);
}

static void rig_close(struct rig *r) {
    struct kv_pool *kv = session_kv(r->p.session);
    walk_close(r->w);
    assert_int_equal(kv->free_count, kv->pages);
    probe_close(&r->p);
}

static bool take_next(struct rig *r, struct outcome *out) {
    struct arena *a = arena_create("reply");
    struct provider_completion c;
    bool any = walk_next(r->w, a, &c);
    if (any) {
        struct outcome *o = &out[c.ticket];
        *o = (struct outcome){
            .ok = c.ok, .count = c.ids.count, .finish = c.finish, .shared_tokens = c.shared_tokens};
        assert_int_equal(c.tokens, c.ids.count);
        memcpy(o->ids, c.ids.ids, c.ids.count * sizeof *o->ids);
        memcpy(o->text, c.text.p, c.text.n);
        if (!c.ok) snprintf(o->reason, sizeof o->reason, "%s", c.reason_text);
    }
    arena_destroy(a);
    return any;
}

static void run_in_order(struct rig *r, const uint32_t *order, uint32_t count,
                         struct outcome *out) {
    struct err e = {0};
    for (uint32_t i = 0; i < count; i++) {
        bool accepted = false;
        while (!accepted) {
            ASSERT_OK(walk_submit(r->w, &requests[order[i]].r, &accepted, &e), e);
            if (!accepted) assert_true(take_next(r, out));
        }
    }
    while (take_next(r, out)) {
    }
}

static void assert_same(const struct outcome *a, const struct outcome *b) {
    assert_true(a->ok && b->ok);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->ids, b->ids, sizeof a->ids);
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->finish, b->finish);
}

// Each request alone in a fresh engine.
static struct outcome alone[REQUESTS];

static int make_alone(void **state) {
    (void)state;
    model_path = probe_model("walk", &(struct tiny_model_options){.seed = 3, .type = TENSOR_F16});
    vocabulary.size = V = 320;
    make_requests();
    for (uint32_t i = 0; i < REQUESTS; i++) {
        struct rig r;
        rig_open(&r, 1, 0);
        run_in_order(&r, &i, 1, alone);
        rig_close(&r);
    }
    bool different = false, stopped[4] = {false};
    for (int i = 0; i < REQUESTS; i++) {
        different |= alone[i].count > 0 && alone[i].ids[0] != alone[0].ids[0];
        stopped[alone[i].finish] = true;
    }
    return different && stopped[FINISH_LENGTH] ? 0 : -1;
}

static void test_order_company_and_memory(void **state) {
    (void)state;
    struct rng random = rng_open(2, "test", "orders");
    for (int round = 0; round < 12; round++) {
        uint32_t order[REQUESTS];
        int in_flight = round == 0 ? 1 : 1 + (int)rng_below(&random, REQUESTS);
        uint32_t more_pages = round < 3 ? 0 : (uint32_t)rng_below(&random, 30);
        for (uint32_t i = 0; i < REQUESTS; i++) order[i] = round == 1 ? REQUESTS - 1 - i : i;
        if (round > 1) rng_shuffle(&random, order, REQUESTS);
        struct outcome got[REQUESTS];
        memset(got, 0, sizeof got);
        struct rig r;
        rig_open(&r, in_flight, more_pages);
        run_in_order(&r, order, REQUESTS, got);
        rig_close(&r);
        for (int i = 0; i < REQUESTS; i++) assert_same(&alone[i], &got[i]);
    }
}

// The replies, greedy and sampled, are those of earlier builds: a change here is a change of what a
// seed stands for.
static void test_replies_are_pinned(void **state) {
    (void)state;
    struct hash *h = hash_open();
    char hex[HASH_HEX_SIZE];
    for (int i = 0; i < REQUESTS; i++)
        hash_add(h, alone[i].ids, alone[i].count * sizeof *alone[i].ids);
    hash_close(h, hex);
    assert_string_equal(hex, "4880a6d25d7a1dcf52f42057972c380db5c38065ef7dcc7e2b8679432a6c5e3b");
}

// Ids that a request has in common with another; the last one is computed in any case.
static int common_prefix(const struct request *a, const struct request *b) {
    int n = 0, most = (int)b->r.ids.count - 1;
    while (n < most && n < (int)a->r.ids.count && a->ids[n] == b->ids[n]) n++;
    return n;
}

static int by_ids(const void *x, const void *y) {
    const struct request *a = &requests[*(const uint32_t *)x], *b = &requests[*(const uint32_t *)y];
    for (size_t i = 0; i < a->r.ids.count && i < b->r.ids.count; i++)
        if (a->ids[i] != b->ids[i]) return a->ids[i] < b->ids[i] ? -1 : 1;
    return (a->r.ids.count > b->r.ids.count) - (a->r.ids.count < b->r.ids.count);
}

// In the order of a plan, whatever the memory from the least upwards: each prompt shares what it
// has in common with the one before, and replies are as if alone.
static void test_sorted_prompts_share_at_any_budget(void **state) {
    (void)state;
    uint32_t order[REQUESTS];
    for (uint32_t i = 0; i < REQUESTS; i++) order[i] = i;
    qsort(order, REQUESTS, sizeof *order, by_ids);
    for (uint32_t more = 0; more <= 40; more = more < 8 ? more + 1 : more * 2) {
        struct outcome got[REQUESTS];
        memset(got, 0, sizeof got);
        struct rig r;
        rig_open(&r, more % 2 == 0 ? 8 : 2, more);
        run_in_order(&r, order, REQUESTS, got);
        rig_close(&r);
        for (int i = 0; i < REQUESTS; i++) {
            assert_same(&alone[order[i]], &got[order[i]]);
            int shared = i > 0 ? common_prefix(&requests[order[i - 1]], &requests[order[i]]) : 0;
            assert_int_equal(got[order[i]].shared_tokens, shared);
        }
    }
}

// Other orders find what is in flight or among the last few.
static void test_interleaved_prompts_share(void **state) {
    (void)state;
    // 1 and 3 begin alike, 12 and 0 have nothing in common with them or each other.
    static const uint32_t order[] = {1, 12, 3, 0, 2, 13, 4};
    struct outcome got[REQUESTS];
    struct rig r;
    rig_open(&r, 1, 20);
    run_in_order(&r, order, sizeof order / sizeof *order, got);
    rig_close(&r);
    assert_int_equal(got[12].shared_tokens, 0);
    assert_int_equal(got[3].shared_tokens, common_prefix(&requests[1], &requests[3]));
    assert_int_equal(got[2].shared_tokens, 1149); // equal prompts: all but the last token
    assert_true(got[4].shared_tokens >= 700);
}

// Counts the passes of a backend.
static const struct backend_ops *counted;
static struct backend_ops counting;
static int passes;

static void counting_begin(struct backend *b, const struct backend_pass *pass) {
    passes++;
    counted->begin(b, pass);
}

// Eight prompts with one beginning: the first is computed, then the tails of all others in the pass
// that continues its reply; and none decodes apart.
static void test_passes_are_filled(void **state) {
    (void)state;
    enum { PROMPTS = 8, TOKENS = 6 };
    struct continuation_vocabulary endless = vocabulary;
    endless.stop_count = 0;
    struct rig r;
    rig_open(&r, PROMPTS, 20);
    walk_close(r.w);
    r.w = walk_open(r.p.session, &endless, PROMPTS);
    struct backend *b = session_backend(r.p.session);
    counted = b->ops;
    counting = *counted;
    counting.begin = counting_begin;
    b->ops = &counting;
    passes = 0;
    static struct request q;
    struct err e = {0};
    for (uint32_t i = 0; i < PROMPTS; i++) {
        bool accepted = false;
        memcpy(q.ids, requests[1].ids, sizeof q.ids);
        probe_ids(50 + i, V, q.ids + 100, 5);
        q.g = (struct provider_generation){.max_tokens = TOKENS, .top_p = 1};
        q.r = (struct provider_request){
            .ticket = i, .key = "test", .ids = {q.ids, 105}, .generation = &q.g};
        ASSERT_OK(walk_submit(r.w, &q.r, &accepted, &e), e);
        assert_true(accepted);
    }
    struct outcome got[REQUESTS];
    for (int i = 0; i < PROMPTS; i++) {
        assert_true(take_next(&r, got));
        assert_int_equal(got[i].count, TOKENS);
        if (i > 0) assert_in_range(got[i].shared_tokens, 100, 104);
    }
    assert_false(take_next(&r, got));
    assert_int_equal(passes, 1 + TOKENS);
    b->ops = counted;
    rig_close(&r);
}

static void test_refusals(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, 2, 0);
    bool accepted;
    struct err e = {0};
    struct request q = requests[0];
    q.r.generation = &q.g;
    q.g.max_tokens = CONTEXT - 1150 + 1;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "1150 tokens");
    assert_non_null(strstr(e.text, "context of 1200"));
    q.r.ids.count = 0;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "no tokens");
    q.r.ids = (struct provider_ids){q.ids, 5};
    q.g.max_tokens = INT32_MAX;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "nothing is cut");
    q.g.max_tokens = 0;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "max_tokens");
    q.g.max_tokens = 1;
    q.g.top_p = 0;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "top_p");
    q.g.top_p = 1;
    q.g.stop = &(struct str){"", 0};
    q.g.stop_count = 1;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_CONFIG, "stop string 1 is empty");
    q.g.stop_count = 0;
    q.ids[4] = (int32_t)V;
    ASSERT_FAILS(walk_submit(r.w, &q.r, &accepted, &e), e, ERR_INPUT, "outside the vocabulary");
    // The whole context, to the last position, is usable.
    q = requests[0];
    q.r.generation = &q.g;
    q.g = (struct provider_generation){.max_tokens = CONTEXT - 1150, .top_p = 1};
    struct continuation_vocabulary endless = vocabulary;
    endless.stop_count = 0;
    walk_close(r.w);
    r.w = walk_open(r.p.session, &endless, 2);
    ASSERT_OK(walk_submit(r.w, &q.r, &accepted, &e), e);
    struct arena *a = arena_create("reply");
    struct provider_completion c;
    assert_true(walk_next(r.w, a, &c));
    assert_int_equal(c.finish, FINISH_LENGTH);
    assert_int_equal(c.tokens, CONTEXT - 1150);
    arena_destroy(a);
    rig_close(&r);
}

// A backend that fails on one position of one reply, in the middle of a batch.
static const struct backend_ops *sound;
static struct backend_ops failing;
static uint32_t fails_at;

static const struct backend_pass *failing_pass;

static void failing_begin(struct backend *b, const struct backend_pass *pass) {
    failing_pass = pass;
    sound->begin(b, pass);
}

static bool failing_fault(struct backend *b, struct backend_fault *out) {
    for (uint32_t i = 0; i < failing_pass->span_count; i++) {
        const struct backend_span *span = &failing_pass->spans[i];
        if (span->rows != 1 || span->first_position != fails_at) continue;
        *out = (struct backend_fault){.kind = BACKEND_FAULT_SCORE, .row = span->first_row};
        return true;
    }
    return sound->fault(b, out);
}

static void test_failure_stays_with_its_reply(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, 8, 30);
    struct backend *b = session_backend(r.p.session);
    sound = b->ops;
    failing = *sound;
    failing.begin = failing_begin;
    failing.fault = failing_fault;
    b->ops = &failing;
    fails_at = 722; // the third token behind request 4 (720 tokens)
    uint32_t order[REQUESTS];
    for (uint32_t i = 0; i < REQUESTS; i++) order[i] = i;
    struct outcome got[REQUESTS];
    memset(got, 0, sizeof got);
    run_in_order(&r, order, REQUESTS, got);
    rig_close(&r);
    assert_true(alone[4].count > 3);
    for (int i = 0; i < REQUESTS; i++) {
        bool reaches =
            requests[i].r.ids.count <= 722 && requests[i].r.ids.count + alone[i].count > 722;
        if (!reaches) {
            assert_same(&alone[i], &got[i]);
            continue;
        }
        assert_false(got[i].ok);
        assert_int_equal(got[i].finish, FINISH_ERROR);
        assert_non_null(strstr(got[i].reason, "layer 0, position 722"));
    }
    assert_false(got[4].ok);
}

static void test_interruption_keeps_what_is_in_flight(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, 4, 20);
    struct outcome got[REQUESTS];
    memset(got, 0, sizeof got);
    struct err e = {0};
    bool accepted;
    for (int i = 0; i < 4; i++) ASSERT_OK(walk_submit(r.w, &requests[i].r, &accepted, &e), e);
    assert_true(take_next(&r, got));
    atomic_store(&r.cancel, true);
    assert_false(take_next(&r, got));
    assert_false(take_next(&r, got));
    atomic_store(&r.cancel, false);
    while (take_next(&r, got)) {
    }
    for (int i = 0; i < 4; i++) assert_same(&alone[i], &got[i]);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies_are_pinned),
        cmocka_unit_test(test_order_company_and_memory),
        cmocka_unit_test(test_sorted_prompts_share_at_any_budget),
        cmocka_unit_test(test_interleaved_prompts_share),
        cmocka_unit_test(test_passes_are_filled),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failure_stays_with_its_reply),
        cmocka_unit_test(test_interruption_keeps_what_is_in_flight),
    };
    return cmocka_run_group_tests(tests, make_alone, NULL);
}
