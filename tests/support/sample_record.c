#include "tests/support/sample_record.h"

#include "engine/base/rng.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct str random_text(struct rng *r, struct arena *a, size_t most, bool any_byte) {
    size_t n = (size_t)rng_below(r, most + 1);
    char *p = arena_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = any_byte ? (char)rng_below(r, 256) : (char)(' ' + rng_below(r, 95));
    return (struct str){p, n};
}

static void make_prompt(struct sample *s, int i, struct rng *r) {
    struct arena *a = s->arena;
    struct record_part *p = arena_array(a, 3, sizeof *p);
    struct str filler = s->fillers[rng_below(r, 3)];
    char *sha256 = arena_alloc(a, HASH_HEX_SIZE);
    hash_bytes(filler.p, filler.n, sha256);
    p[0] = (struct record_part){.control = true, .text = STR("<|im_start|>user\n")};
    p[1].filler_sha256 = sha256;
    p[1].from = (size_t)rng_below(r, filler.n / 2);
    p[1].to = p[1].from + (size_t)rng_below(r, filler.n / 2);
    p[1].text = str_slice(filler, p[1].from, p[1].to);
    p[2].text = random_text(r, a, 60, i % 7 == 3);
    s->parts[i] = p;
    struct buf whole = {0};
    for (int k = 0; k < 3; k++) buf_add_str(&whole, p[k].text);
    s->prompts[i] = str_copy(a, buf_str(&whole));
    buf_free(&whole);
}

// Distractors in the filler, and what makes the constraint stand out.
static void make_surroundings(struct record_trial *t, struct arena *a) {
    t->distractors = arena_array(a, 2, sizeof *t->distractors);
    t->distractor_count = 2;
    for (int i = 0; i < 2; i++) {
        struct record_var *var = arena_alloc(a, sizeof *var);
        *var = (struct record_var){"order", "code", i == 0 ? STR("48213") : STR("ü")};
        t->distractors[i] = (struct record_distractor){"order", var, 1};
    }
    t->spans[0].only_digits = true;
    t->spans[0].question_words = arena_array(a, 1, sizeof *t->spans[0].question_words);
    t->spans[0].question_words[0] = "order";
    t->spans[0].question_word_count = 1;
}

static void make_trial(struct sample *s, int i, struct rng *r) {
    struct arena *a = s->arena;
    make_prompt(s, i, r);
    struct record_trial *t = &s->trials[i];
    bool brief = i % 5 == 4;
    *t = (struct record_trial){
        .trial = i,
        .key = arena_printf(a, "m/%s/%d/é-%d/%d/0", brief ? "short" : "placed", i, i, i % 3),
        .model = "m",
        .arm = brief ? "short" : "placed",
        .length = brief ? -1 : 512,
        .placement = brief ? NULL : "order-moves",
        .depth = brief ? NULL : "50.000",
        .repeat = i % 3,
        .case_id = i % 2 ? "T-17" : NULL,
        .prompt_tokens = (uint32_t)rng_below(r, 1000),
        .template_tokens = 31,
        .shared_tokens = (uint32_t)rng_below(r, 100),
        .reply_tokens_max = 96,
        .reasoning_opened = i % 4 == 2};
    hash_bytes(s->prompts[i].p, s->prompts[i].n, t->prompt_sha256);
    if (i % 4 != 3) hash_bytes(&i, sizeof i, t->ids_sha256);
    snprintf(t->seed, sizeof t->seed, "%016llx%016llx", (unsigned long long)rng_u64(r),
             (unsigned long long)rng_u64(r));
    t->vars = arena_array(a, 3, sizeof *t->vars);
    t->var_count = 3;
    t->vars[0] = (struct record_var){"order", "code", random_text(r, a, 8, false)};
    t->vars[1] = (struct record_var){"order", "place", STR("Zürich")};
    t->vars[2] = (struct record_var){"day", "day", STR("Monday")};
    t->spans = arena_array(a, 1, sizeof *t->spans);
    t->span_count = 1;
    t->spans[0] = (struct record_span){.constraint = "order",
                                       .first_token = 4,
                                       .tokens = 11,
                                       .first_byte = 17,
                                       .bytes = 26,
                                       .depth = "49.868",
                                       .place = "middle"};
    if (i % 3 == 1) make_surroundings(t, a);
}

static struct record_shares random_shares(struct rng *r, bool replied) {
    struct record_shares s;
    for (int i = 0; i < ROWS_COUNT; i++)
        s.of[i] = i == ROWS_PROMPT || replied ? (int32_t)rng_below(r, 1000001) : RECORD_NO_SHARE;
    return s;
}

static const struct record_evidence *make_evidence(struct rng *r, bool replied, struct arena *a) {
    enum { LAYERS = 2, HEADS = 3 };
    struct record_evidence *v = arena_alloc(a, sizeof *v);
    struct record_attention *t = arena_alloc(a, sizeof *t);
    *v = (struct record_evidence){LAYERS, HEADS, t, 1};
    *t = (struct record_attention){.constraint = "order",
                                   .prompt_tokens = (int32_t)rng_below(r, 1000001),
                                   .reply_tokens = replied ? 21484 : RECORD_NO_SHARE,
                                   .mean = random_shares(r, replied),
                                   .strongest_count = LAYERS * HEADS};
    t->all = arena_array(a, LAYERS * HEADS, sizeof *t->all);
    t->strongest = arena_array(a, LAYERS * HEADS, sizeof *t->strongest);
    for (int i = 0; i < LAYERS * HEADS; i++) {
        t->all[i] = random_shares(r, replied);
        t->strongest[i] = (struct record_head){i / HEADS, i % HEADS, t->all[i]};
    }
    return v;
}

static void make_outcome(struct sample *s, int i, struct rng *r, bool errors) {
    struct arena *a = s->arena;
    struct record_outcome *o = &s->outcomes[i];
    *o = (struct record_outcome){.trial = i, .key = s->trials[i].key, .attempt = 1};
    if (errors && rng_below(r, 4) == 0) {
        o->status = STATUS_ERROR;
        o->reason_code = "engine";
        o->reason_text = "the engine gave up at layer 3";
        return;
    }
    o->reply = random_text(r, a, 80, i % 3 == 0);
    static const char *const finishes[] = {"stop", "length", "reasoning_length"};
    o->finish = finishes[rng_below(r, 3)];
    o->reasoning_counted = i % 4 == 1;
    o->reasoning_tokens = o->reasoning_counted ? i % 3 : 0;
    o->id_count = (size_t)rng_below(r, 10);
    o->ids = i % 4 == 3 ? NULL : arena_array(a, o->id_count + 1, sizeof *o->ids);
    if (o->ids == NULL) o->id_count = 0;
    for (size_t k = 0; k < o->id_count; k++) o->ids[k] = (int32_t)rng_below(r, 49152);
    o->tokens = (int)o->id_count;
    o->answer[1] = o->reply.n;
    o->verdicts = arena_array(a, 2, sizeof *o->verdicts);
    o->verdict_count = 2;
    o->verdicts[0] = (struct record_verdict){.constraint = "order",
                                             .verdict = VERDICT_MET,
                                             .by = "value",
                                             .has_match = true,
                                             .match = {0, o->reply.n}};
    struct str *near = arena_array(a, 2, sizeof *near);
    near[0] = STR("Thursday");
    near[1] = STR("\xff");
    o->verdicts[1] = (struct record_verdict){
        .constraint = "day", .verdict = VERDICT_OMITTED, .near = near, .near_count = 2};
    o->evidence = make_evidence(r, i % 5 != 2, a);
    if (i % 3 != 1) return;
    o->verdicts[1].copied = near;
    o->verdicts[1].copied_count = 1;
}

void sample_make(struct sample *s, uint64_t seed, int trial_count, bool errors) {
    struct rng r = rng_open(seed, "test", "sample record");
    *s = (struct sample){.arena = arena_create("test"), .trial_count = trial_count};
    struct arena *a = s->arena;
    size_t count = (size_t)trial_count;
    for (int i = 0; i < 3; i++) {
        do {
            s->fillers[i] = random_text(&r, a, 4000, i == 1);
        } while (s->fillers[i].n < 1000);
    }
    s->trials = arena_array(a, count, sizeof *s->trials);
    s->parts = arena_array(a, count, sizeof *s->parts);
    s->prompts = arena_array(a, count, sizeof *s->prompts);
    s->outcomes = arena_array(a, count, sizeof *s->outcomes);
    for (int i = 0; i < trial_count; i++) make_trial(s, i, &r);
    for (int i = 0; i < trial_count; i++) make_outcome(s, i, &r, errors);
    hash_bytes(&seed, sizeof seed, s->request_sha256);
    s->resolved = json_pack("{s:i, s:s, s:[{s:s, s:s}]}", "lacuna", 1, "name", "sample",
                            "constraints", "id", "order", "value", "{{code}}");
    s->identity = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:s}]}", "format", 1,
                            "experiment", "sample", "request_sha256", s->request_sha256,
                            "checks_sha256", s->request_sha256, "analysis_sha256",
                            s->request_sha256, "evidence", "full", "numerics", "none", "backend",
                            "fixture", "models", "id", "m", "sha256", s->request_sha256);
    s->manifest = json_pack("{s:{s:s, s:s}}", "program", "version", "0", "commit", "c0ffee");
    assert(s->resolved != NULL && s->identity != NULL && s->manifest != NULL);
}

void sample_free(struct sample *s) {
    json_decref(s->resolved);
    json_decref(s->identity);
    json_decref(s->manifest);
    arena_destroy(s->arena);
}

static int plan(struct sample *s, struct record_writer *w, struct err *e) {
    char sha256[HASH_HEX_SIZE];
    for (int i = 0; i < 3; i++) TRY(record_put_filler(w, s->fillers[i], sha256, e));
    for (int i = 0; i < s->trial_count; i++) {
        TRY(record_put_prompt(w, s->parts[i], 3, sha256, e));
        assert(strcmp(sha256, s->trials[i].prompt_sha256) == 0);
        TRY(record_put_plan(w, &s->trials[i], e));
    }
    TRY(record_plan_done(w, sha256, e));
    json_object_set_new(s->identity, "plan_sha256", json_string(sha256));
    return record_begin(w, s->identity, s->manifest, e);
}

int sample_open(struct sample *s, const char *folder, struct record_writer **w, bool *complete,
                struct err *e) {
    struct record_header header = {.folder = folder,
                                   .experiment_yaml = STR("lacuna: 1\n"),
                                   .resolved = s->resolved,
                                   .identity = s->identity};
    enum record_state state;
    *complete = false;
    TRY(record_writer_open(&header, s->request_sha256, w, &state, e));
    int result = 0;
    if (state == RECORD_COMPLETE)
        *complete = true;
    else if (state == RECORD_RUNNING)
        result = record_resume(*w, s->identity, s->manifest, e);
    else
        result = plan(s, *w, e);
    if (result != 0 || *complete) {
        record_writer_close(*w);
        *w = NULL;
    }
    return result;
}

int sample_run(struct sample *s, const char *folder, uint64_t order_seed, struct err *e) {
    struct record_writer *w;
    bool complete;
    TRY(sample_open(s, folder, &w, &complete, e));
    if (complete) return 0;
    struct arena *a = arena_create("test");
    struct rng r = rng_open(order_seed, "test", "order");
    json_t *timing = json_pack("{s:i}", "wall_us", 17);
    int64_t *missing, count = record_missing(w, false, a, &missing);
    int result = 0;
    while (result == 0 && count > 0) {
        int64_t at = (int64_t)rng_below(&r, count < 4 ? (uint64_t)count : 4);
        result = record_put_outcome(w, &s->outcomes[missing[at]], timing, e);
        memmove(&missing[at], &missing[at + 1], (size_t)(count - at - 1) * sizeof *missing);
        count--;
    }
    json_decref(timing);
    record_writer_close(w);
    arena_destroy(a);
    return result;
}
