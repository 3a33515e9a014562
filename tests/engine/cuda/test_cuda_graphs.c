// Decoding by recorded passes: the bits are those of passes that are launched op by op, whatever
// changes between two replays; nothing is allocated; and where a pass cannot be recorded, decoding
// goes on without.
#include "tests/kernels/sample_support.h"
#include "tests/support/engine_probe.h"
#include "tests/support/simt.h"
#include "tests/support/support.h"

#include "engine/backend_plugin.h"
#include "engine/backend_products.h"
#include "kernels/cuda/ops.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CONTEXT 700
#define SEQUENCES 3
#define WATCHED 8 // ranges
#define MOST 80   // rows of a scenario

// Prompts whose replies cross the border of a block of keys, and stay before it.
enum { LONG = 505, SHORT = 20 };

const struct cuda_ops *lacuna_cuda_ops(void);

static const char *model_path;
static int32_t ids[CONTEXT];

struct scenario {
    struct probe p;
    struct kv_sequence *s[SEQUENCES];
    uint64_t hashes[MOST]; // of all decoded rows
    uint32_t count;
    uint32_t passes; // that decode
};

static struct session_options options_of(bool graphs) {
    return (struct session_options){.backend = "cuda",
                                    .chunk_tokens = 512,
                                    .context_tokens = CONTEXT,
                                    .sequences = SEQUENCES,
                                    .pages_least = SEQUENCES + 4,
                                    .watched = WATCHED,
                                    .weights = "unpacked",
                                    .no_graphs = !graphs};
}

static void open_scenario(struct scenario *x, const struct session_options *o) {
    *x = (struct scenario){.p = probe_open(model_path, o)};
}

static void read_prompt(struct scenario *x, int which, uint32_t first, uint32_t count) {
    if (x->s[which] == NULL) x->s[which] = probe_sequence(&x->p);
    probe_feed(&x->p, x->s[which], ids + first, count, NULL);
}

// Some passes of one row for each of `n` sequences.
static void decode(struct scenario *x, const int *which, uint32_t n, uint32_t passes) {
    struct probe_part parts[SEQUENCES];
    struct err e = {0};
    for (uint32_t pass = 0; pass < passes; pass++) {
        assert_true(x->count + n <= MOST);
        for (uint32_t i = 0; i < n; i++) {
            struct kv_sequence *s = x->s[which[i]];
            parts[i] = (struct probe_part){s, ids + (3 * s->length + (uint32_t)which[i]) % 500, 1,
                                           &x->hashes[x->count++]};
        }
        ASSERT_OK(probe_feed_parts(&x->p, parts, n, &e), e);
        x->passes++;
    }
}

static int check_drawn(void *context, struct session *s, const struct session_row *row,
                       struct err *e) {
    (void)e;
    const struct session_item *item = (const struct session_item *)context + row->item;
    const float *z = session_row_logits(s, row);
    assert_int_equal(row->chosen, sample_restated(z, session_model(s)->V, &item->draw));
    return 0;
}

// The same, and a token is drawn behind each row.
static void decode_drawn(struct scenario *x, const int *which, uint32_t n, uint32_t passes) {
    struct session_item items[SEQUENCES];
    struct session_sink sink = {check_drawn, items};
    struct rng r = rng_open(4, "graphs", "draws");
    struct err e = {0};
    for (uint32_t pass = 0; pass < passes; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            struct kv_sequence *s = x->s[which[i]];
            items[i] = (struct session_item){.sequence = s,
                                             .ids = ids + s->length % 500,
                                             .count = 1,
                                             .logits = SESSION_LAST,
                                             .draw = {0.3 + rng_unit(&r), 0.9, rng_unit(&r)}};
        }
        ASSERT_OK(session_forward(x->p.session, items, n, &sink, &e), e);
    }
}

static void decode_watched(struct scenario *x, int which, uint32_t ranges, float *shares) {
    static const struct backend_key_range of[] = {{3, 40}, {500, 530}, {0, CONTEXT}};
    struct session_watch watch = {of, ranges, shares};
    struct kv_sequence *s = x->s[which];
    probe_feed_watched(&x->p, s, ids + s->length % 500, 1, &watch, &x->hashes[x->count++]);
    x->passes++;
}

// Alone and in company, over the border of a page, after forks and cuts, and again alone.
static void play(struct scenario *x, uint32_t prompt) {
    struct kv_pool *kv = session_kv(x->p.session);
    struct err e = {0};
    read_prompt(x, 0, 0, prompt);
    read_prompt(x, 1, 30, 3);
    decode(x, (int[]){0}, 1, 4);
    decode(x, (int[]){1, 0}, 2, 6);
    ASSERT_OK(kv_fork(kv, x->s[0], x->s[0]->length - 2, &x->s[2], &e), e);
    decode(x, (int[]){0, 1, 2}, 3, 6);
    decode(x, (int[]){0}, 1, 3);
    kv_truncate(kv, x->s[0], prompt / 5);
    decode(x, (int[]){2, 0}, 2, 4);
    decode(x, (int[]){0}, 1, 4);
    kv_sequence_close(kv, x->s[2]);
    ASSERT_OK(kv_fork(kv, x->s[1], 4, &x->s[2], &e), e);
    decode(x, (int[]){2}, 1, 4);
    decode(x, (int[]){1, 2}, 2, 3);
}

static uint32_t differences(const struct scenario *a, const struct scenario *b) {
    assert_int_equal(a->count, b->count);
    return probe_differences(a->hashes, b->hashes, a->count);
}

#ifndef LACUNA_GPU
static struct simt_counts counted(void) {
    return simt_counted();
}
static int live_graphs(void) {
    return simt_graphs();
}
#else // nobody counts
struct simt_counts {
    uint64_t graph_launches, allocations, pageable_copies;
};
static struct simt_counts counted(void) {
    return (struct simt_counts){0, 0, 0};
}
static int live_graphs(void) {
    return -1;
}
#endif

static void assert_replayed(const struct simt_counts *before, uint64_t replays) {
    if (live_graphs() >= 0)
        assert_int_equal(counted().graph_launches - before->graph_launches, replays);
}

static struct scenario reference, short_reference;

static int make_reference(void **state) {
    (void)state;
    model_path = probe_model(
        "graphs",
        &(struct tiny_model_options){
            .type = TENSOR_Q8_0, .D = 64, .H = 2, .G = 1, .F = 96, .biases = true, .seed = 6});
    probe_ids(2, 320, ids, CONTEXT);
    struct session_options o = options_of(false);
    struct simt_counts before = counted();
    open_scenario(&reference, &o);
    play(&reference, LONG);
    probe_close(&reference.p);
    open_scenario(&short_reference, &o);
    play(&short_reference, SHORT);
    probe_close(&short_reference.p);
    assert_replayed(&before, 0);
    return 0;
}

static void test_bits_do_not_change(void **state) {
    (void)state;
    struct scenario x;
    struct session_options o = options_of(true);
    struct simt_counts before = counted();
    open_scenario(&x, &o);
    play(&x, LONG);
    // Every form but for its first pass: 1, 2 or 3 rows over up to 512 or 1,024 keys.
    assert_replayed(&before, x.passes - 5);
    probe_close(&x.p);
    assert_int_equal(differences(&reference, &x), 0);
    if (live_graphs() >= 0) assert_int_equal(live_graphs(), 0);
}

static void test_watching(void **state) {
    (void)state;
    static const uint32_t ranges[] = {0, 3, 3, 0, 3, 1, 1, 3, 0};
    enum { COUNT = sizeof ranges / sizeof *ranges, SHARES = 2 * 2 * 3 };
    static float shares[2][COUNT][SHARES];
    struct scenario x[2];
    for (int graphs = 0; graphs < 2; graphs++) {
        struct session_options o = options_of(graphs != 0);
        struct simt_counts before = counted();
        open_scenario(&x[graphs], &o);
        read_prompt(&x[graphs], 0, 0, LONG);
        for (int i = 0; i < COUNT; i++)
            if (ranges[i] > 0)
                decode_watched(&x[graphs], 0, ranges[i], shares[graphs][i]);
            else
                decode(&x[graphs], (int[]){0}, 1, 1);
        // Forms: unwatched before and behind key 512, three ranges likewise, one range.
        assert_replayed(&before, graphs != 0 ? COUNT - 5 : 0);
        probe_close(&x[graphs].p);
    }
    assert_int_equal(differences(&x[0], &x[1]), 0);
    assert_memory_equal(shares[0], shares[1], sizeof shares[0]);
    assert_true(shares[0][1][0] > 0 && shares[0][1][0] < 1);
}

// One pass of `n` rows, of which the first `wanted` give their logits and the first watches so many
// ranges.
static void decode_some(struct scenario *x, uint32_t n, uint32_t wanted, uint32_t ranges) {
    static const struct backend_key_range of[WATCHED] = {{0, 9}, {1, 2}, {4, 90}};
    static float shares[2 * 2 * WATCHED];
    struct session_watch watch = {of, ranges, shares};
    struct session_item items[SEQUENCES];
    struct err e = {0};
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct session_item){.sequence = x->s[i],
                                         .ids = ids + (5 * x->s[i]->length + i) % 500,
                                         .count = 1,
                                         .logits = i < wanted ? SESSION_LAST : SESSION_NONE};
    if (ranges > 0) items[0].watch = &watch;
    ASSERT_OK(session_forward(x->p.session, items, n, NULL, &e), e);
}

// More forms than recordings are kept: the oldest go and are made anew.
static void test_many_forms(void **state) {
    (void)state;
    static struct scenario x[2];
    static const uint32_t sizes[] = {SEQUENCES, 1, SEQUENCES - 1};
    int which[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++) which[i] = i;
    for (int graphs = 0; graphs < 2; graphs++) {
        struct session_options o = options_of(graphs != 0);
        int forms = 0;
        open_scenario(&x[graphs], &o);
        for (int i = 0; i < SEQUENCES; i++) read_prompt(&x[graphs], i, (uint32_t)i, 2);
        for (uint32_t n = 1; n <= SEQUENCES; n++)
            for (uint32_t wanted = 0; wanted <= n; wanted++)
                for (uint32_t ranges = 0; ranges <= (wanted > 0 ? WATCHED : 0); ranges++) {
                    if (forms == CUDA_GRAPHS_MOST + 2) break;
                    for (int pass = 0; pass < 2; pass++) decode_some(&x[graphs], n, wanted, ranges);
                    forms++;
                }
        assert_int_equal(forms, CUDA_GRAPHS_MOST + 2);
        if (graphs != 0 && live_graphs() >= 0) assert_int_equal(live_graphs(), CUDA_GRAPHS_MOST);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            decode(&x[graphs], which, sizes[i], 3);
        probe_close(&x[graphs].p);
    }
    assert_int_equal(differences(&x[0], &x[1]), 0);
}

// Neither while tokens are drawn or the likeliest are taken, nor while all logits of a row come to
// the host.
static void test_nothing_is_allocated(void **state) {
    (void)state;
    struct scenario x;
    struct session_options o = options_of(true);
    open_scenario(&x, &o);
    read_prompt(&x, 0, 0, LONG);
    read_prompt(&x, 1, 30, 3);
    struct simt_counts before = counted();
    decode(&x, (int[]){0}, 1, 10); // over the border of a page
    decode(&x, (int[]){1, 0}, 2, 4);
    decode_drawn(&x, (int[]){1, 0}, 2, 4);
    assert_int_equal(counted().allocations, before.allocations);
    assert_int_equal(counted().pageable_copies, before.pageable_copies);
    probe_close(&x.p);
}

// cuBLASLt has a part in the products of the session.
static void assert_served(const struct probe *p) {
    json_t *products = backend_products_json(session_backend(p->session)->products);
    const json_t *choice;
    size_t i, served = 0;
    json_array_foreach(json_object_get(products, "choices"), i, choice) {
        const char *by = json_string_value(json_object_get(choice, "by"));
        served += strcmp(by, "cuBLASLt") == 0;
    }
    if (live_graphs() >= 0) assert_true(served > 0);
    json_decref(products);
}

// As many sequences as a product of cuBLASLt takes rows: admitted ones stand in the recording, with
// sums that wait for a bias or a residual. Some rows are held to own kernels that run for each
// alone.
static void test_admitted_products(void **state) {
    (void)state;
    enum { MANY = 256, LOOKED_AT = 3, PASSES = 4 };
    static const uint32_t looked_at[LOOKED_AT] = {0, 130, MANY - 1};
    static struct probe_part parts[MANY];
    uint64_t hashes[2][PASSES][LOOKED_AT];
    struct err e = {0};
    for (int many = 0; many < 2; many++) {
        struct session_options o = options_of(many != 0);
        uint32_t count = many != 0 ? MANY : LOOKED_AT;
        o.context_tokens = 16;
        o.sequences = o.pages_least = count;
        o.products = many != 0 ? "admitted" : "own";
        struct probe p = probe_open(model_path, &o);
        for (uint32_t i = 0; i < count; i++)
            parts[i] = (struct probe_part){.sequence = probe_sequence(&p), .count = 1};
        struct simt_counts before = counted();
        for (uint32_t pass = 0; pass < PASSES; pass++) {
            for (uint32_t i = 0; i < count; i++)
                parts[i].ids = ids + (many != 0 ? i : looked_at[i]) + MANY * (pass % 2);
            for (uint32_t i = 0; i < LOOKED_AT; i++)
                parts[many != 0 ? looked_at[i] : i].hashes = &hashes[many][pass][i];
            for (uint32_t i = 0; i < (many != 0 ? 1 : count); i++)
                ASSERT_OK(probe_feed_parts(&p, &parts[i], many != 0 ? MANY : 1, &e), e);
        }
        assert_replayed(&before, many != 0 ? PASSES - 1 : 0);
        if (many != 0) assert_served(&p);
        probe_close(&p);
    }
    assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
}

// ---- planted faults ----------------------------------------------------------------------------

static struct cuda_ops planted;
static uint32_t begun;
static uint32_t stale_position;

// The lists of a later pass are not sent: a replay reads those of the pass before.
static void begin_unsent(struct cuda_device *d, const struct cuda_pass *pass) {
    if (pass->rows > 1 || begun++ < 2) lacuna_cuda_ops()->begin(d, pass);
}

// The length that later passes tell is that of the first.
static void begin_stale_length(struct cuda_device *d, const struct cuda_pass *pass) {
    struct cuda_pass changed = *pass;
    struct cuda_span one = pass->spans[0];
    if (pass->rows == 1 && begun++ == 0) stale_position = one.first_position;
    if (pass->rows == 1) one.first_position = stale_position;
    if (pass->rows == 1) changed.wanted_spans = changed.spans = &one;
    lacuna_cuda_ops()->begin(d, &changed);
}

static uint32_t differences_with(void (*begin)(struct cuda_device *d,
                                               const struct cuda_pass *pass)) {
    struct scenario x;
    struct session_options o = options_of(true);
    planted = *lacuna_cuda_ops();
    planted.begin = begin;
    begun = 0;
    backend_plugin_use(&planted);
    open_scenario(&x, &o);
    backend_plugin_use(lacuna_cuda_ops());
    read_prompt(&x, 0, 0, SHORT);
    decode(&x, (int[]){0}, 1, 4); // as the reference begins
    probe_close(&x.p);
    return probe_differences(short_reference.hashes, x.hashes, x.count);
}

static void test_stale_lists_are_seen(void **state) {
    (void)state;
    assert_int_equal(differences_with(lacuna_cuda_ops()->begin), 0);
    assert_true(differences_with(begin_stale_length) > 0);
    assert_true(differences_with(begin_unsent) > 0);
}

// ---- where passes cannot be recorded -----------------------------------------------------------

#ifndef LACUNA_GPU
// What the program says while the scenario is played.
static struct str played_aloud(struct scenario *x, const struct session_options *o,
                               void (*change)(struct backend *b)) {
    const char *path = path_join(test_arena, test_folder(), "said");
    int kept = dup(STDERR_FILENO), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(kept >= 0 && to >= 0);
    open_scenario(x, o);
    if (change != NULL) change(session_backend(x->p.session));
    dup2(to, STDERR_FILENO);
    play(x, SHORT);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(to);
    probe_close(&x->p);
    return test_read(test_arena, path);
}

static void assert_said_once(struct str said, const char *why) {
    size_t at = str_find(said, STR("decoding goes on without CUDA graphs"), 0);
    assert_true(at != STR_NONE);
    assert_true(str_find(said, str_from(why), at) != STR_NONE);
    assert_true(str_find(said, STR("decoding goes on without"), at + 1) == STR_NONE);
}

static struct backend_ops waiting;
static const struct backend_ops *sound;

static void waiting_round(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                          void *out, uint32_t ldout) {
    sound->round(b, x, ldx, R, n, out, ldout);
    sound->sync(b);
}

static void make_wait(struct backend *b) {
    sound = b->ops;
    waiting = *sound;
    waiting.round = waiting_round;
    b->ops = &waiting;
}

static void test_without_graphs(void **state) {
    (void)state;
    struct scenario x;
    struct session_options o = options_of(true);
    struct simt_options kept = simt_get_options(), none = kept;
    none.graphs_most = 0;
    simt_set_options(&none);
    assert_said_once(played_aloud(&x, &o, NULL), "cudaErrorMemoryAllocation");
    assert_int_equal(differences(&short_reference, &x), 0);
    none.graphs_most = 2; // what could be recorded is replayed
    simt_set_options(&none);
    struct simt_counts before = counted();
    assert_said_once(played_aloud(&x, &o, NULL), "cudaErrorMemoryAllocation");
    assert_true(counted().graph_launches > before.graph_launches);
    assert_int_equal(differences(&short_reference, &x), 0);
    simt_set_options(&kept);
    assert_said_once(played_aloud(&x, &o, make_wait), "cudaErrorStreamCaptureUnsupported");
    assert_int_equal(differences(&short_reference, &x), 0);
}

// Products that cuBLASLt serves, with its workspace and sums that wait for a residual.
static void test_products_of_the_library(void **state) {
    (void)state;
    static struct scenario x[2];
    struct simt_counts before = counted();
    for (int graphs = 0; graphs < 2; graphs++) {
        struct session_options o = options_of(graphs != 0);
        o.products = "any";
        open_scenario(&x[graphs], &o);
        play(&x[graphs], SHORT);
        probe_close(&x[graphs].p);
    }
    assert_replayed(&before, x[1].passes - 3); // forms of 1, 2 and 3 rows
    assert_int_equal(differences(&x[0], &x[1]), 0);
    assert_true(differences(&x[0], &short_reference) > 0); // it did serve
}
#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_bits_do_not_change), TEST(test_watching),
        TEST(test_many_forms),         TEST(test_nothing_is_allocated),
        TEST(test_admitted_products),  TEST(test_stale_lists_are_seen),
#ifndef LACUNA_GPU
        TEST(test_without_graphs),     TEST(test_products_of_the_library),
#endif
    };
    simt_from_environment();
    backend_plugin_use(lacuna_cuda_ops());
    return cmocka_run_group_tests_name("cuda graphs", tests, make_reference, NULL);
}
