// Several models over one text, or over one length.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/plan.h"
#include "evals/tally.h"
#include "tests/support/fake_provider.h"
#include "tests/support/planned.h"

#include <string.h>

static struct arena *arena;
// Long tokens; short ones behind a start token; and the first again, as another quantization has.
static struct provider *coarse, *fine, *twin;

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    coarse = fake_provider_open(&(struct fake_options){.context_tokens = 4096});
    twin = fake_provider_open(&(struct fake_options){.context_tokens = 4096});
    fine = fake_provider_open(
        &(struct fake_options){.start = true, .context_tokens = 4096, .token_bytes = 3});
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_provider_close(coarse);
    fake_provider_close(twin);
    fake_provider_close(fine);
    arena_destroy(arena);
    return 0;
}

static const char text[] =
    "lacuna: 1\n"
    "name: matrix\n"
    "seed: 3\n"
    "models:\n"
    "  - {id: fine, path: a.gguf, context_tokens: 4096}\n"
    "  - {id: coarse, path: b.gguf, context_tokens: 4096}\n"
    "  - {id: twin, path: c.gguf, context_tokens: 4096}\n"
    "generation: {max_tokens: 32}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are careful.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nState the number.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is {{code}}.\", value: \"{{code}}\",\n"
    "     vars: {code: {kind: digits, count: 5}}}\n"
    "placements:\n"
    "  - {id: row, move: [order], depths: [start, middle, end, start+end], anchors: [in_system]}\n"
    "lengths: {tokens: [256, 400]}\n"
    "repeats: 2\n"
    "arms: [placed, absent, short]\n";

static int load(const char *measured_by, const char *only, struct experiment **x, struct err *e) {
    const char *path = path_join(arena, test_folder(), "matrix.yaml");
    const char *set[] = {arena_printf(arena, "lengths.measured_by=%s", measured_by)};
    test_write(path, str_from(text));
    const struct experiment_overrides o = {.set = set, .set_count = 1, .only = only, .limit = -1};
    return experiment_load(path, &o, arena, x, e);
}

static struct plan make(const char *measured_by, const char *only, struct experiment **x) {
    struct err e = {0};
    struct plan p;
    struct provider *providers[] = {fine, coarse, twin};
    ASSERT_OK(load(measured_by, only, x, &e), e);
    ASSERT_OK(plan_make(*x, providers, NULL, arena, &p, &e), e);
    return p;
}

// The trial of another model that is the same otherwise.
static const struct record_trial *of_model(const struct plan *p, const struct record_trial *t,
                                           const char *model) {
    return planned_find(p, arena_printf(arena, "%s%s", model, strchr(t->key, '/')));
}

static struct str prompt_text(const struct experiment *x, const struct record_trial *t) {
    struct err e = {0};
    struct record_trial again;
    struct record_part *parts;
    size_t count;
    struct provider *providers[] = {fine, coarse, twin};
    ASSERT_OK(plan_prompt(x, providers, t->key, arena, &again, &parts, &count, &e), e);
    struct buf b = {0};
    for (size_t i = 0; i < count; i++)
        if (!parts[i].control) buf_add_str(&b, parts[i].text);
    struct str s = str_copy(arena, buf_str(&b));
    buf_free(&b);
    return s;
}

static void one_text_for_all(void **state) {
    (void)state;
    struct experiment *x;
    struct plan p = make("coarse", NULL, &x);
    assert_int_equal(p.trial_count, 3 * 2 * (2 * (5 + 1) + 1));
    int longer = 0, compared = 0;
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        if (strcmp(t->model, "fine") != 0) continue;
        const struct record_trial *c = of_model(&p, t, "coarse"), *w = of_model(&p, t, "twin");
        assert_string_equal(t->text_sha256, c->text_sha256);
        assert_string_equal(t->text_sha256, w->text_sha256);
        if (c->length > 0) assert_int_equal(c->prompt_tokens, c->length);
        assert_int_equal(t->length, c->length);
        longer += t->prompt_tokens > c->prompt_tokens;
        assert_string_equal(c->ids_sha256, w->ids_sha256);
        assert_string_not_equal(c->ids_sha256, t->ids_sha256);
        assert_int_equal(t->span_count, c->span_count);
        for (int k = 0; k < t->span_count; k++) {
            assert_string_equal(t->spans[k].place, c->spans[k].place);
            assert_int_equal(t->spans[k].bytes, c->spans[k].bytes);
            // Real depths by each model's own tokens: near each other, exact at the ends.
            int32_t mine = tally_depth(t->spans[k].depth), other = tally_depth(c->spans[k].depth);
            assert_true((mine == DEPTH_NONE) == (other == DEPTH_NONE));
            if (other == 0 || other == DEPTH_MOST) assert_int_equal(mine, other);
            if (other > 0) assert_true(mine - other < 6000 && other - mine < 6000);
        }
        if (t->repeat == 1 && compared++ % 5 == 0)
            assert_true(str_equal(prompt_text(x, t), prompt_text(x, c)));
    }
    assert_int_equal(longer, p.trial_count / 3);
    experiment_close(x);
}

// The same texts when the measuring model itself is not planned.
static void selection_changes_no_text(void **state) {
    (void)state;
    struct experiment *x, *y;
    struct plan whole = make("coarse", NULL, &x), part = make("coarse", "model=fine,repeat=1", &y);
    assert_int_equal(part.trial_count, 2 * (5 + 1) + 1);
    for (int64_t i = 0; i < part.trial_count; i++) {
        const struct record_trial *t = of_model(&whole, &part.trials[i], "fine");
        assert_string_equal(part.trials[i].ids_sha256, t->ids_sha256);
        assert_string_equal(part.trials[i].text_sha256, t->text_sha256);
    }
    experiment_close(x);
    experiment_close(y);
}

// A model that measures for itself gives what it gives alone, whichever comes first in the file.
static void each_has_its_own_length(void **state) {
    (void)state;
    struct experiment *x, *y;
    struct plan each = make("each", NULL, &x), one = make("fine", NULL, &y);
    for (int64_t i = 0; i < each.trial_count; i++) {
        const struct record_trial *t = &each.trials[i];
        if (t->length > 0) assert_int_equal(t->prompt_tokens, t->length);
        if (strcmp(t->model, "fine") != 0) continue;
        assert_string_equal(t->ids_sha256, of_model(&one, t, "fine")->ids_sha256);
        assert_string_not_equal(t->text_sha256, of_model(&each, t, "coarse")->text_sha256);
        assert_string_equal(t->text_sha256, of_model(&one, t, "coarse")->text_sha256);
        if (t->length > 0)
            assert_true(of_model(&one, t, "coarse")->prompt_tokens < t->prompt_tokens);
    }
    experiment_close(x);
    experiment_close(y);
}

// Equal ids in two models are two completions.
static void equal_ids_are_no_equal_replies(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    struct plan p = make("each", "arm=placed", &x);
    assert_int_equal(p.equal_groups, 0);
    struct tally t;
    ASSERT_OK(tally_make(x, p.trials, p.trial_count, NULL, arena, &t, &e), e);
    struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
    assert_int_equal(tally_planned(&t, &f, 0).n, 3 * 2 * 2 * 5);
    for (f.model = 0; f.model < 3; f.model++)
        assert_int_equal(tally_planned(&t, &f, 0).n, 2 * 2 * 5);
    experiment_close(x);
}

// Exchanges as filler: the same ones, in another template.
static void one_conversation_for_all(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    struct plan p;
    struct buf turns = {0};
    for (int i = 0; i < 60; i++)
        buf_printf(&turns,
                   "{\"role\": \"user\", \"content\": \"Is parcel %c%c ready today?\"}\n"
                   "{\"role\": \"assistant\", \"content\": \"Yes, it waits on shelf %c.\"}\n",
                   'A' + i % 26, 'a' + i / 26, 'A' + i * 7 % 26);
    test_write(path_join(arena, test_folder(), "turns.jsonl"), buf_str(&turns));
    buf_free(&turns);
    const char *path = path_join(arena, test_folder(), "matrix.yaml");
    test_write(path, str_from(text));
    const char *set[] = {
        "lengths={tokens: [400], measured_by: coarse, tolerance: 10%}",
        ("prompt.messages=[{role: system, text: Be careful.}, {role: chat, text: '{{filler}}'}, "
         "{role: user, text: State the number.}]"),
        "prompt.filler={kind: chat, paths: [turns.jsonl], shuffle: true}",
        "placements=[{id: row, move: [order], depths: [start, middle, end]}]"};
    const struct experiment_overrides o = {.set = set, .set_count = 4, .limit = -1};
    struct provider *providers[] = {fine, coarse, twin};
    ASSERT_OK(experiment_load(path, &o, arena, &x, &e), e);
    ASSERT_OK(plan_make(x, providers, NULL, arena, &p, &e), e);
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i], *c = of_model(&p, t, "coarse");
        assert_string_equal(t->text_sha256, c->text_sha256);
        assert_true(strcmp(t->model, "fine") != 0 || t->prompt_tokens > c->prompt_tokens);
        for (int k = 0; k < t->span_count; k++)
            assert_string_equal(t->spans[k].depth, c->spans[k].depth);
    }
    experiment_close(x);
}

static void models_are_checked(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    ASSERT_FAILS(load("course", NULL, &x, &e), e, ERR_CONFIG, "there is no model 'course'");
    // What does not fit is known once the text is.
    struct provider *small = fake_provider_open(
        &(struct fake_options){.start = true, .context_tokens = 440, .token_bytes = 3});
    struct provider *providers[] = {small, coarse, twin};
    struct plan p;
    ASSERT_OK(load("coarse", NULL, &x, &e), e);
    ASSERT_FAILS(plan_make(x, providers, NULL, arena, &p, &e), e, ERR_CONFIG,
                 "more than the context of 440");
    experiment_close(x);
    fake_provider_close(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_text_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(selection_changes_no_text, setup, teardown),
        cmocka_unit_test_setup_teardown(each_has_its_own_length, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_ids_are_no_equal_replies, setup, teardown),
        cmocka_unit_test_setup_teardown(one_conversation_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(models_are_checked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
