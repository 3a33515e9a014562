// The plan: keys and order, what trials depend on and what not, what is stored.
#include "tests/evals/plan_varied.h"

static void cells_have_their_trials(void **state) {
    (void)state;
    struct experiment *x = load_set(NULL);
    struct plan p = make(x);
    assert_int_equal(p.trial_count, 3 * (2 * 3 + 2 + 1));
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        assert_int_equal(t->trial, i);
        assert_string_equal(t->model, "fake");
        if (t->length > 0) assert_int_equal(t->prompt_tokens, t->length);
        assert_int_equal(t->reply_tokens_max, 32);
        assert_int_equal(t->var_count, 3);
        assert_int_equal(t->template_tokens, 1 + 3 + 2 + 3 + 2 + 4);
        assert_int_equal(t->span_count, strcmp(t->arm, "absent") == 0 ? 0 : 3);
        for (int k = 0; k < t->span_count; k++)
            assert_true(t->spans[k].first_token + t->spans[k].tokens < t->prompt_tokens);
    }
    const struct record_trial *t = planned_find(&p, "fake/placed/512/order-moves@middle/1/0");
    assert_string_equal(t->depth, "50.000");
    assert_string_equal(t->placement, "order-moves");
    assert_int_equal(t->repeat, 1);
    assert_null(t->case_id);
    t = planned_find(&p, "fake/absent/256/-/2/0");
    assert_true(t->placement == NULL && t->depth == NULL);
    t = planned_find(&p, "fake/short/-/-/0/0");
    assert_int_equal(t->length, -1);
    static const char *const order[] = {"order", "day", "contact"};
    for (int k = 0; k < 3; k++) assert_string_equal(t->spans[k].constraint, order[k]);
    t = planned_find(&p, "fake/placed/256/order-moves@end/0/0");
    assert_string_equal(t->spans[2].constraint, "order");
    assert_string_equal(t->spans[2].depth, "100.000");
    experiment_close(x);
}

static int32_t *ids_again(const struct experiment *x, const char *key, size_t *count,
                          struct str *text) {
    struct err e = {0};
    struct record_trial t;
    struct record_part *parts;
    size_t n;
    struct provider *providers[] = {fake, fake};
    ASSERT_OK(plan_prompt(x, providers, key, arena, &t, &parts, &n, &e), e);
    struct provider_piece *pieces = arena_array(arena, n + 1, sizeof *pieces);
    struct buf b = {0};
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (struct provider_piece){parts[i].text, parts[i].control};
        buf_add_str(&b, parts[i].text);
    }
    *text = str_copy(arena, buf_str(&b));
    buf_free(&b);
    struct provider_ids ids;
    ASSERT_OK(fake->ops->tokenize(fake, pieces, n, arena, &ids, &e), e);
    char hex[HASH_HEX_SIZE];
    hash_ids(ids.ids, ids.count, hex);
    assert_string_equal(hex, t.ids_sha256);
    hash_bytes(text->p, text->n, hex);
    assert_string_equal(hex, t.prompt_sha256);
    *count = ids.count;
    return ids.ids;
}

// Execution order is the order of ids; shared_tokens is what a line has in common with the one
// before.
static void order_is_by_ids(void **state) {
    (void)state;
    struct experiment *x = load_set("repeats=2", "lengths.tokens=[200]", NULL);
    struct plan p = make(x);
    int32_t *last = NULL;
    size_t last_count = 0;
    int64_t shared_sum = 0;
    for (int64_t i = 0; i < p.trial_count; i++) {
        struct str text;
        size_t count, shared = 0;
        int32_t *ids = ids_again(x, p.trials[i].key, &count, &text);
        while (shared < count && shared < last_count && ids[shared] == last[shared]) shared++;
        assert_int_equal(p.trials[i].shared_tokens, shared);
        shared_sum += (int64_t)shared;
        if (i > 0) {
            assert_true(shared < count || count == last_count);
            if (shared < count && shared < last_count) assert_true(ids[shared] > last[shared]);
        }
        last = ids;
        last_count = count;
    }
    assert_int_equal(p.shared_tokens, shared_sum);
    experiment_close(x);
}

// Every trial of the smaller plan is in the greater one, with the same prompt and stream.
static void assert_contains(const struct plan *great, const struct plan *small) {
    for (int64_t i = 0; i < small->trial_count; i++) {
        const struct record_trial *t = &small->trials[i], *o = planned_find(great, t->key);
        assert_string_equal(t->ids_sha256, o->ids_sha256);
        assert_string_equal(t->prompt_sha256, o->prompt_sha256);
        assert_string_equal(t->seed, o->seed);
        for (int k = 0; k < t->var_count; k++)
            assert_true(str_equal(t->vars[k].value, o->vars[k].value));
    }
}

static void what_is_added_changes_nothing_else(void **state) {
    (void)state;
    struct experiment *x = load_set(NULL);
    struct plan p = make(x);
    struct experiment *more[] = {
        load_set("repeats=5", NULL),
        load_set("lengths.tokens=[256, 300, 512, 700]", NULL),
        load_set("placements[0].depths=[start, 10%, middle, 90%, end]", NULL),
        load_set("generation.temperature=0.7", "generation.samples=3", NULL),
    };
    for (size_t i = 0; i < 4; i++) {
        struct plan q = make(more[i]);
        assert_true(q.trial_count > p.trial_count);
        assert_contains(&q, &p);
        experiment_close(more[i]);
    }
    // Another seed changes everything.
    struct experiment *other = load_set("seed=8", NULL);
    struct plan q = make(other);
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *o = planned_find(&q, p.trials[i].key);
        assert_string_not_equal(o->ids_sha256, p.trials[i].ids_sha256);
        assert_string_not_equal(o->seed, p.trials[i].seed);
    }
    experiment_close(other);
    experiment_close(x);
}

static void one_draw_serves_all_cells_of_a_repeat(void **state) {
    (void)state;
    struct experiment *x = load_set("repeats=60", "lengths.tokens=[256]", NULL);
    struct plan p = make(x);
    const char *values[60] = {NULL};
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        struct str code = t->vars[0].value;
        assert_string_equal(t->vars[0].constraint, "order");
        assert_string_equal(t->vars[0].name, "code");
        assert_int_equal(code.n, 5);
        for (size_t k = 0; k < 5; k++) assert_true(code.p[k] >= '0' && code.p[k] <= '9');
        if (values[t->repeat] == NULL) values[t->repeat] = str_to_c(arena, code);
        assert_true(str_equal_c(code, values[t->repeat]));
    }
    int zeros = 0, same = 0;
    for (int i = 0; i < 60; i++) {
        zeros += values[i][0] == '0';
        for (int k = 0; k < i; k++) same += strcmp(values[i], values[k]) == 0;
    }
    assert_true(zeros >= 1 && zeros < 20 && same <= 1);
    experiment_close(x);
}

static void values_differ_between_constraints(void **state) {
    (void)state;
    // One digit each for order and day: ten values, and never the same two.
    struct experiment *x =
        load_set("constraints[0].vars.code={kind: digits, count: 1}",
                 "constraints[0].violated='(?<!\\d)\\d(?!\\d)'",
                 "constraints[1].vars.day={kind: choice, choices: ['1', '2', '3']}", "repeats=50",
                 "lengths.tokens=[256]", "arms=[placed]", NULL);
    struct plan p = make(x);
    for (int64_t i = 0; i < p.trial_count; i++)
        assert_false(str_equal(p.trials[i].vars[0].value, p.trials[i].vars[1].value));
    experiment_close(x);
}

static void streams_can_be_rebuilt_from_the_line(void **state) {
    (void)state;
    struct experiment *x =
        load_set("generation.temperature=0.7", "generation.samples=2", "arms=[placed]", NULL);
    struct plan p = make(x);
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        struct rng r = plan_sampling_stream(x, t);
        char scope[32], name[32], hex[40];
        snprintf(scope, sizeof scope, "repeat %d", t->repeat);
        snprintf(name, sizeof name, "sample %d", t->sample);
        struct rng direct = rng_open(7, scope, name);
        assert_memory_equal(r.key, direct.key, sizeof r.key);
        assert_memory_equal(r.stream, direct.stream, sizeof r.stream);
        snprintf(hex, sizeof hex, "%08x%08x%08x%08x", r.key[0], r.key[1], r.stream[0], r.stream[1]);
        assert_string_equal(t->seed, hex);
    }
    experiment_close(x);
}

// Two rows that put the constraint at the same place give equal trials, which are computed once.
static void equal_trials_are_grouped(void **state) {
    (void)state;
    struct experiment *x =
        load_set("placements=[{id: order-moves, move: [order], depths: [start, middle, end], "
                 "others: {day: 25%, contact: 75%}}, {id: twin, move: [order], "
                 "depths: [middle], others: {day: 25%, contact: 75%}}]",
                 "generation.temperature=0.5", "generation.samples=2", "arms=[placed]", NULL);
    struct plan p = make(x);
    assert_int_equal(p.trial_count, 3 * 2 * 2 * 4);
    assert_int_equal(p.equal_groups, 3 * 2 * 2);
    int64_t *groups = arena_array(arena, (size_t)p.trial_count, sizeof *groups);
    assert_int_equal(plan_equal_groups(p.trials, p.trial_count, groups), p.equal_groups);
    int members[12] = {0};
    for (int64_t i = 0; i < p.trial_count; i++) {
        if (groups[i] < 0) continue;
        members[groups[i]]++;
        assert_string_equal(p.trials[i].depth, "50.000");
        // Equal prompts follow one another key field by key field: placement before sample.
        if (p.trials[i].sample == 0 && strcmp(p.trials[i].placement, "twin") == 0) {
            assert_string_equal(p.trials[i - 1].placement, "order-moves");
            assert_int_equal(p.trials[i - 1].sample, 1);
            assert_int_equal(p.trials[i + 1].sample, 1);
            assert_int_equal(groups[i - 2], groups[i]);
        }
    }
    for (int g = 0; g < 12; g++) assert_int_equal(members[g], 2);
    experiment_close(x);
}

static void selection_cuts_the_plan(void **state) {
    (void)state;
    struct experiment *all = load_set(NULL);
    struct plan p = make(all);
    struct experiment *x = load_with(&(struct experiment_overrides){
        .only = "length=256,depth=middle,depth=end,repeat=1", .limit = -1});
    struct plan q = make(x);
    assert_true(q.partial && !p.partial);
    assert_int_equal(q.trial_count, 2);
    assert_contains(&p, &q);
    planned_find(&q, "fake/placed/256/order-moves@middle/1/0");
    experiment_close(x);
    x = load_with(&(struct experiment_overrides){.only = "arm=absent", .limit = 4});
    q = make(x);
    assert_int_equal(q.trial_count, 4);
    assert_contains(&p, &q);
    experiment_close(x);
    // The first trials of the whole plan, in its order.
    x = load_with(&(struct experiment_overrides){.limit = 7});
    q = make(x);
    assert_int_equal(q.trial_count, 7);
    for (int i = 0; i < 7; i++) assert_string_equal(q.trials[i].key, p.trials[i].key);
    experiment_close(x);
    experiment_close(all);
}

static void cases_take_the_place_of_repeats(void **state) {
    (void)state;
    file_put("tickets.csv",
             "ticket_id,city,mail\nT-1,Oslo,\"Hello, where?\"\nT.2,Lima,Hi\nT-3,Rome,Hey\n");
    const char *const set[] = {
        "cases={file: tickets.csv, id: ticket_id}",
        "repeats=3",
        "constraints[1].text=The place is {{city}}.",
        "constraints[1].vars={}",
        "constraints[1].value='{{city}}'",
        "prompt.messages[1].text='{{filler}} -- {{mail}} State number, day and person.'",
        "lengths.tokens=[256]"};
    struct experiment *x =
        load_with(&(struct experiment_overrides){.set = set, .set_count = 7, .limit = -1});
    struct plan p = make(x);
    const struct record_trial *t = planned_find(&p, "fake/placed/256/order-moves@middle/T.2/0");
    assert_string_equal(t->case_id, "T.2");
    assert_int_equal(t->repeat, 1);
    assert_int_equal(t->var_count, 3);
    assert_string_equal(t->vars[1].name, "city");
    assert_true(str_equal_c(t->vars[1].value, "Lima"));
    struct rng r = plan_sampling_stream(x, t), direct = rng_open(7, "case T.2", "sample 0");
    assert_memory_equal(r.key, direct.key, sizeof r.key);
    struct str text;
    size_t count;
    ids_again(x, "fake/placed/256/order-moves@end/T-1/0", &count, &text);
    assert_true(str_find(text, STR("The place is Oslo."), 0) != STR_NONE);
    assert_true(str_find(text, STR(" -- Hello, where? State"), 0) != STR_NONE);
    // A case keeps its draws when others are added before it.
    file_put("tickets.csv",
             "ticket_id,city,mail\nT-0,Bonn,Yo\nT-1,Oslo,\"Hello, where?\"\nT-3,Rome,Hey\n");
    struct experiment *y =
        load_with(&(struct experiment_overrides){.set = set, .set_count = 7, .limit = -1});
    struct plan q = make(y);
    const char *key = "fake/placed/256/order-moves@end/T-3/0";
    assert_string_equal(planned_find(&p, key)->ids_sha256, planned_find(&q, key)->ids_sha256);
    experiment_close(x);
    experiment_close(y);
}

static void blocks_move_together(void **state) {
    (void)state;
    struct experiment *x = load_set("placements[0]={id: block, move: [order, contact], depths: "
                                    "[25%, middle, end], others: {day: 25%}}",
                                    "lengths.tokens=[400]", NULL);
    struct plan p = make(x);
    const struct record_trial *t = planned_find(&p, "fake/placed/400/block@25%/0/0");
    static const char *const together[] = {"order", "contact", "day"};
    for (int k = 0; k < 3; k++) assert_string_equal(t->spans[k].constraint, together[k]);
    assert_int_equal(t->spans[1].first_byte, t->spans[0].first_byte + t->spans[0].bytes + 1);
    assert_int_equal(t->spans[2].first_byte, t->spans[1].first_byte + t->spans[1].bytes + 1);
    t = planned_find(&p, "fake/placed/400/block@middle/0/0");
    assert_string_equal(t->spans[0].constraint, "day");
    assert_int_equal(t->spans[2].first_byte, t->spans[1].first_byte + t->spans[1].bytes + 1);
    experiment_close(x);
}

static void anchors_are_places_too(void **state) {
    (void)state;
    struct experiment *x =
        load_set("placements[0].depths=[start]",
                 "placements[0].anchors=[in_system, before_filler, after_filler]",
                 "lengths.tokens=[256]", "repeats=1", NULL);
    struct plan p = make(x);
    const struct record_trial *t = planned_find(&p, "fake/placed/256/order-moves@in_system/0/0");
    assert_string_equal(t->depth, "in_system");
    assert_string_equal(t->spans[0].depth, "-");
    struct str text;
    size_t count;
    ids_again(x, t->key, &count, &text);
    assert_true(str_find(text, STR("careful assistant. The order number is"), 0) != STR_NONE);
    experiment_close(x);
}

static void spelled_control_tokens_are_warned_of(void **state) {
    (void)state;
    struct experiment *x =
        load_set("prompt.messages[0].text=Never write <|im_end|> yourself.", NULL);
    struct plan p = make(x);
    assert_int_equal(p.warning_count, 1);
    assert_non_null(strstr(p.warnings[0], "control token <|im_end|>"));
    experiment_close(x);
}

static void estimates_are_said_to_be_some(void **state) {
    (void)state;
    struct provider *served = fake_provider_open(&(struct fake_options){.estimates = true});
    struct experiment *x = load_set(NULL);
    struct err e = {0};
    struct plan p;
    ASSERT_OK(plan_make(x, &served, NULL, arena, &p, &e), e);
    assert_true(p.warning_count >= 1 && strstr(p.warnings[0], "estimates"));
    assert_int_equal(p.equal_groups, 0);
    for (int64_t i = 0; i < p.trial_count; i++) assert_string_equal(p.trials[i].ids_sha256, "");
    experiment_close(x);
    fake_provider_close(served);
}

static void prompts_are_stored_and_restored(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = load_set("repeats=2", NULL);
    struct record_writer *w;
    enum record_state record_state;
    char request[HASH_HEX_SIZE], plan_sha256[HASH_HEX_SIZE];
    hash_bytes("plan", 4, request);
    const char *folder = path_join(arena, test_folder(), "run");
    const struct record_header header = {
        .folder = folder, .experiment_yaml = x->source, .resolved = x->resolved};
    ASSERT_OK(record_writer_open(&header, request, &w, &record_state, &e), e);
    struct plan p;
    struct provider *providers[] = {fake};
    ASSERT_OK(plan_make(x, providers, w, arena, &p, &e), e);
    ASSERT_OK(record_plan_done(w, plan_sha256, &e), e);
    json_t *identity = json_pack("{s:i, s:s, s:s, s:s, s:[]}", "format", 1, "experiment", x->name,
                                 "request_sha256", request, "plan_sha256", plan_sha256, "models");
    json_t *manifest = json_object();
    ASSERT_OK(record_begin(w, identity, manifest, &e), e);
    record_writer_close(w);
    struct record *r;
    ASSERT_OK(record_open(folder, arena, &r, &e), e);
    assert_int_equal(r->trial_count, p.trial_count);
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_trial *t = &r->trials[i];
        assert_string_equal(t->key, p.trials[i].key);
        assert_string_equal(t->ids_sha256, p.trials[i].ids_sha256);
        struct record_part *parts;
        size_t count, id_count;
        struct str text, again;
        ASSERT_OK(record_get_prompt(r, t->prompt_sha256, arena, &parts, &count, &text, &e), e);
        ids_again(x, t->key, &id_count, &again);
        assert_true(str_equal(text, again));
        bool stored = false;
        for (size_t k = 0; k < count; k++) stored = stored || parts[k].filler_sha256 != NULL;
        assert_true(stored);
    }
    record_close(r);
    json_decref(identity);
    json_decref(manifest);
    experiment_close(x);
}

static void golden_plan(void **state) {
    (void)state;
    struct experiment *x = load_set(NULL);
    struct plan p = make(x);
    struct buf lines = {0};
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        buf_printf(&lines, "%s %s %s %s %u\n", t->key, t->ids_sha256, t->prompt_sha256, t->seed,
                   t->shared_tokens);
        for (int k = 0; k < t->span_count; k++)
            buf_printf(&lines, "%s %u %u %zu %zu %s\n", t->spans[k].constraint,
                       t->spans[k].first_token, t->spans[k].tokens, t->spans[k].first_byte,
                       t->spans[k].bytes, t->spans[k].depth);
    }
    char hex[HASH_HEX_SIZE];
    hash_bytes(lines.p, lines.n, hex);
    buf_free(&lines);
    assert_string_equal(hex, "fd9a341ae779cb5e68a6971bea9bddcbd726c9467b09c8cd407f2c9399f98f7e");
    experiment_close(x);
}

static void a_thousand_long_prompts_are_exact(void **state) {
    (void)state;
    struct experiment *x =
        load_set("repeats=250", "lengths.tokens=[2048]", "arms=[placed, absent]", NULL);
    struct plan p = make(x);
    assert_int_equal(p.trial_count, 1000);
    assert_int_equal(p.prompt_tokens, 2048000);
    experiment_close(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_their_trials),
        cmocka_unit_test(order_is_by_ids),
        cmocka_unit_test(what_is_added_changes_nothing_else),
        cmocka_unit_test(one_draw_serves_all_cells_of_a_repeat),
        cmocka_unit_test(values_differ_between_constraints),
        cmocka_unit_test(streams_can_be_rebuilt_from_the_line),
        cmocka_unit_test(equal_trials_are_grouped),
        cmocka_unit_test(selection_cuts_the_plan),
        cmocka_unit_test(cases_take_the_place_of_repeats),
        cmocka_unit_test(blocks_move_together),
        cmocka_unit_test(anchors_are_places_too),
        cmocka_unit_test(spelled_control_tokens_are_warned_of),
        cmocka_unit_test(estimates_are_said_to_be_some),
        cmocka_unit_test(prompts_are_stored_and_restored),
        cmocka_unit_test(golden_plan),
        cmocka_unit_test(a_thousand_long_prompts_are_exact),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
