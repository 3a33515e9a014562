// Shares of attention on ranges of a prompt, from the op up to the walk: against the
// double-precision reference (tests/oracle), in every way that a row can be passed, and without a
// bit of difference for the logits.
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/rng.h"
#include "engine/walk.h"
#include "tests/support/engine_probe.h"
#include "tests/support/golden_models.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHARES_MOST = 4 * 8 * GOLDEN_RANGES_MOST };

static struct probe open_model(const struct golden *g, const char *name, const char *numerics,
                               uint32_t chunk) {
    const struct session_options o = {.backend = "cpu",
                                      .numerics = numerics,
                                      .threads = 1,
                                      .context_tokens = 64,
                                      .chunk_tokens = chunk,
                                      .sequences = 3,
                                      .pages_least = 6,
                                      .watched = 2 * GOLDEN_RANGES_MOST};
    return probe_open(test_data(g->a, arena_printf(g->a, "engine/golden/%s.gguf", name)), &o);
}

// Passes `count` ids behind what the sequence holds and watches the last one; beside them, with
// `company`, another sequence that watches as well.
static void pass(struct probe *p, const struct golden *g, struct kv_sequence *s, uint32_t count,
                 struct kv_sequence *company, float *shares) {
    float others[SHARES_MOST];
    struct err e = {0};
    const struct session_watch watch = {g->ranges, g->range_count, shares};
    const struct session_watch other = {g->ranges + 1, 2, others};
    const struct session_item items[] = {{.sequence = company,
                                          .ids = g->ids + 5,
                                          .count = 3,
                                          .logits = SESSION_ALL,
                                          .watch = &other},
                                         {.sequence = s,
                                          .ids = g->ids + s->length,
                                          .count = count,
                                          .logits = SESSION_LAST,
                                          .watch = &watch}};
    bool alone = company == NULL;
    ASSERT_OK(session_forward(p->session, items + alone, alone ? 1 : 2, NULL, &e), e);
}

static size_t shares_of(const struct probe *p, const struct golden *g) {
    size_t n = (size_t)p->model->config.L * p->model->config.H * g->range_count;
    assert_true(n <= SHARES_MOST);
    return n;
}

struct error {
    double worst, sum;
    size_t n;
};

// Errors of all rows, decoded one by one; each row passed by a prefill of all tokens before it, and
// in company, must have the same bits.
static void add_errors(const struct golden *g, const char *name, const char *numerics,
                       struct error *out) {
    struct str file;
    struct err e = {0};
    struct probe p = open_model(g, name, numerics, 17);
    size_t n = shares_of(&p, g);
    const char *path = test_data(g->a, arena_printf(g->a, "engine/golden/%s.shares", name));
    ASSERT_OK(file_read(path, 1 << 20, g->a, &file, &e), e);
    assert_int_equal(file.n, g->count * n * sizeof(float));
    const float *reference = (const float *)file.p; // the arena aligns
    struct kv_sequence *s = probe_sequence(&p);
    for (uint32_t row = 0; row < g->count; row++) {
        float shares[SHARES_MOST], again[SHARES_MOST];
        pass(&p, g, s, 1, NULL, shares);
        for (size_t i = 0; i < n; i++) {
            double error = fabs((double)shares[i] - (double)reference[row * n + i]);
            out->worst = fmax(out->worst, error);
            out->sum += error;
            out->n++;
        }
        struct kv_sequence *whole = probe_sequence(&p);
        struct kv_sequence *company = row % 3 == 0 ? probe_sequence(&p) : NULL;
        pass(&p, g, whole, row + 1, company, again);
        if (memcmp(shares, again, n * sizeof *shares) != 0)
            fail_msg("%s: row %u has other shares when it is prefilled", name, row);
        kv_sequence_close(session_kv(p.session), whole);
        kv_sequence_close(session_kv(p.session), company);
    }
    kv_sequence_close(session_kv(p.session), s);
    probe_close(&p);
}

static void test_reference(void **state) {
    const struct golden *g = *state;
    size_t i;
    json_t *name;
    struct error f32 = {0}, bf16 = {0};
    json_array_foreach(json_object_get(g->index, "models"), i, name) {
        add_errors(g, json_string_value(name), "f32", &f32);
        add_errors(g, json_string_value(name), "bf16-1", &bf16);
    }
    if (!(f32.worst < 2e-5)) fail_msg("f32: a share is off by %g", f32.worst);
    if (!(bf16.worst < 6e-2 && bf16.sum / (double)bf16.n < 1e-3))
        fail_msg("bf16-1: a share is off by %g, the mean by %g", bf16.worst,
                 bf16.sum / (double)bf16.n);
}

// ---- off = on ----------------------------------------------------------------------------------

// Prefills and decodes with and without a watch, in chunks of several sizes: the logits' bits.
static void test_off_is_on(void **state) {
    (void)state;
    enum { TOKENS = 1100, FIRST = 1050, WATCHED = 5 };
    const char *path =
        probe_model("watched", &(struct tiny_model_options){.seed = 9, .window = 700});
    static const uint32_t chunks[] = {512, 129, 7};
    static int32_t ids[TOKENS];
    static uint64_t hashes[6][TOKENS];
    for (int run = 0; run < 6; run++) {
        struct session_options o = {
            .threads = 1 + run % 2, .context_tokens = 1200, .chunk_tokens = chunks[run / 2]};
        o.watched = run % 2 == 1 ? WATCHED : 0;
        struct probe p = probe_open(path, &o);
        float shares[SHARES_MOST];
        struct rng r = rng_open(3, "test", "ranges");
        struct backend_key_range ranges[WATCHED];
        for (int i = 0; i < WATCHED; i++) {
            ranges[i].first = (uint32_t)rng_below(&r, FIRST);
            ranges[i].end = ranges[i].first + (uint32_t)rng_below(&r, FIRST - ranges[i].first);
        }
        struct session_watch watch = {ranges, WATCHED, shares};
        probe_ids(4, p.model->config.V, ids, TOKENS);
        struct kv_sequence *s = probe_sequence(&p);
        for (uint32_t at = 0; at < TOKENS; at += at == 0 ? FIRST : 1)
            probe_feed_watched(&p, s, ids + at, at == 0 ? FIRST : 1, run % 2 == 1 ? &watch : NULL,
                               hashes[run] + at);
        assert_int_equal(probe_differences(hashes[0], hashes[run], TOKENS), 0);
        kv_sequence_close(session_kv(p.session), s);
        probe_close(&p);
    }
}

// ---- the walk ----------------------------------------------------------------------------------

enum { PROMPT = 30, REPLY = 9, SUBJECTS = 2, SPANS = 3 };
static const struct provider_span SPAN[SPANS] = {{0, 3, 6}, {1, 14, 1}, {0, 20, 6}};

static struct str token_bytes(const void *context, int32_t id) {
    static char text[101][8];
    (void)context;
    snprintf(text[id], sizeof text[id], "%d ", id);
    return str_from(text[id]);
}
static const struct continuation_vocabulary vocabulary = {
    .bytes = token_bytes, .size = 101, .longest_bytes = 8};

static const struct provider_generation greedy = {.max_tokens = REPLY, .top_p = 1};

// Requests in flight: the watched one is number 0, the others share some of its prompt.
static void ask(const struct golden *g, struct walk *w, int number, int max_tokens) {
    static struct provider_generation generation[3];
    struct err e = {0};
    bool accepted;
    generation[number] = greedy;
    generation[number].max_tokens = max_tokens;
    struct provider_request r = {.ticket = number,
                                 .key = "test",
                                 .ids = {(int32_t *)(uintptr_t)g->ids, PROMPT - (size_t)number},
                                 .generation = &generation[number],
                                 .spans = SPAN,
                                 .span_count = number == 2 ? 1 : SPANS,
                                 .subject_count = SUBJECTS};
    ASSERT_OK(walk_submit(w, &r, &accepted, &e), e);
    assert_true(accepted);
}

// The completion of request 0, which must be among those in flight.
static struct provider_completion answer(struct walk *w, struct arena *a) {
    struct provider_completion c, found = {.ticket = -1};
    while (walk_next(w, a, &c))
        if (c.ticket == 0) found = c;
    assert_int_equal(found.ticket, 0);
    assert_true(found.ok);
    return found;
}

// The same numbers from rows that are watched one by one.
static void assert_attention(const struct golden *g, struct probe *p,
                             const struct provider_completion *c) {
    size_t heads = (size_t)p->model->config.L * p->model->config.H, rows = c->ids.count;
    double prompt[SUBJECTS][64], sum[SUBJECTS][64] = {{0}}, most[SUBJECTS][64] = {{0}};
    double tokens = 0;
    struct kv_sequence *s = probe_sequence(p);
    struct backend_key_range ranges[SPANS];
    float shares[SHARES_MOST];
    for (int i = 0; i < SPANS; i++)
        ranges[i] =
            (struct backend_key_range){SPAN[i].first_token, SPAN[i].first_token + SPAN[i].tokens};
    const struct session_watch watch = {ranges, SPANS, shares};
    for (size_t row = 0; row < rows; row++) {
        uint64_t hashes[PROMPT];
        const int32_t *ids = row == 0 ? g->ids : c->ids.ids + row - 1;
        probe_feed_watched(p, s, ids, row == 0 ? PROMPT : 1, &watch, hashes);
        for (size_t h = 0; h < heads; h++) {
            const float *of = shares + h * SPANS;
            double both[SUBJECTS] = {(double)of[0] + (double)of[2], (double)of[1]};
            for (int k = 0; k < SUBJECTS; k++) {
                if (row == 0) prompt[k][h] = both[k];
                if (row > 0) sum[k][h] += both[k];
                if (row > 0 && both[k] > most[k][h]) most[k][h] = both[k];
            }
        }
        tokens += row > 0 ? 12.0 / (double)(PROMPT + row) : 0;
    }
    kv_sequence_close(session_kv(p->session), s);
    assert_int_equal(c->layers * c->heads, heads);
    assert_true(c->attention[0].prompt_tokens == 12.0 / PROMPT);
    assert_true(c->attention[1].prompt_tokens == 1.0 / PROMPT);
    for (int k = 0; k < SUBJECTS; k++) {
        assert_memory_equal(c->attention[k].prompt, prompt[k], heads * sizeof(double));
        assert_true((c->attention[k].reply_mean == NULL) == (rows == 1));
        if (rows == 1) continue;
        assert_true(c->attention[0].reply_tokens == tokens / (double)(rows - 1));
        for (size_t h = 0; h < heads; h++) sum[k][h] /= (double)(rows - 1);
        assert_memory_equal(c->attention[k].reply_mean, sum[k], heads * sizeof(double));
        assert_memory_equal(c->attention[k].reply_max, most[k], heads * sizeof(double));
    }
}

// Alone and in company, a reply of many tokens and of one, which has no row of its own.
static void test_walk(void **state) {
    const struct golden *g = *state;
    for (int in_flight = 1; in_flight <= 3; in_flight++)
        for (int max_tokens = 1; max_tokens <= REPLY; max_tokens += REPLY - 1) {
            struct session_options o = {.threads = 1, .context_tokens = 64};
            walk_session_options(&o, 64, in_flight);
            o.watched = SPANS * (uint32_t)in_flight;
            const char *name = "engine/golden/heads-4-of-2-e16-bias.gguf";
            struct probe p = probe_open(test_data(g->a, name), &o);
            struct walk *w = walk_open(p.session, &vocabulary, in_flight);
            struct arena *a = arena_create("test");
            for (int i = in_flight - 1; i >= 0; i--) ask(g, w, i, max_tokens);
            struct provider_completion c = answer(w, a);
            walk_close(w);
            assert_attention(g, &p, &c);
            arena_destroy(a);
            probe_close(&p);
        }
}

// What the session was not opened for, or what lies outside the prompt, is refused.
static void test_refusals(void **state) {
    const struct golden *g = *state;
    struct session_options o = {.threads = 1, .context_tokens = 64};
    walk_session_options(&o, 64, 2);
    o.watched = 2 * 2;
    struct probe p = probe_open(test_data(g->a, "engine/golden/heads-4-of-2-e16-bias.gguf"), &o);
    struct walk *w = walk_open(p.session, &vocabulary, 2);
    struct err e = {0};
    bool accepted;
    struct provider_request r = {.key = "test",
                                 .ids = {(int32_t *)(uintptr_t)g->ids, PROMPT},
                                 .generation = &greedy,
                                 .spans = SPAN,
                                 .span_count = SPANS,
                                 .subject_count = SUBJECTS};
    ASSERT_FAILS(walk_submit(w, &r, &accepted, &e), e, ERR_CONFIG, "open for 2");
    r.span_count = 2;
    r.ids.count = 14;
    ASSERT_FAILS(walk_submit(w, &r, &accepted, &e), e, ERR_CONFIG, "outside the prompt");
    r.ids.count = PROMPT;
    r.subject_count = 1;
    ASSERT_FAILS(walk_submit(w, &r, &accepted, &e), e, ERR_CONFIG, "outside the prompt");
    walk_close(w);
    probe_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reference, golden_open, golden_close),
        cmocka_unit_test(test_off_is_on),
        cmocka_unit_test_setup_teardown(test_walk, golden_open, golden_close),
        cmocka_unit_test_setup_teardown(test_refusals, golden_open, golden_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
