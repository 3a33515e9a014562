#include "engine/provider_fixture.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/provider_fixture_rules.h"
#include "engine/provider_words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct flight {
    struct arena *arena; // of this request; NULL: free
    int64_t ticket;
    struct str prompt;
    const struct fixture_rule *rule; // NULL: an empty reply
    struct provider_generation generation;
    struct rng sampling;
    uint64_t began_ns;
};

struct fixture {
    struct provider base;
    struct arena *arena;
    struct fixture_rules rules;
    struct words *words;
    struct flight *flights; // in the order they were submitted
    int flight_count;
    struct rng order;
    bool plan_only;
    atomic_bool cancelled;
    int cancel_pipe[2]; // wakes a wait from a signal handler
};

static struct fixture *fixture_of(struct provider *p) {
    return (struct fixture *)p;
}

static int fixture_render(struct provider *p, const struct provider_message *messages, size_t count,
                          struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                          struct err *e) {
    (void)p;
    return words_render(messages, count, a, pieces, piece_count, e);
}

static int fixture_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                            struct arena *a, struct provider_ids *out, struct err *e) {
    struct fixture *f = fixture_of(p);
    if (f->rules.exact_ids) return words_tokenize(f->words, pieces, count, a, out, e);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += pieces[i].text.n;
    *out = (struct provider_ids){NULL, (bytes + 3) / 4};
    return 0;
}

static struct str fixture_id_bytes(struct provider *p, int32_t id) {
    return words_bytes(fixture_of(p)->words, id);
}

static int fixture_submit(struct provider *p, const struct provider_request *request,
                          bool *accepted, struct err *e) {
    struct fixture *f = fixture_of(p);
    *accepted = false;
    if (f->plan_only)
        FAIL(e, ERR_PROVIDER, "the fixture was opened for planning only, so it answers nothing");
    if (f->flight_count == f->rules.in_flight || atomic_load(&f->cancelled)) return 0;
    struct flight *flight = &f->flights[f->flight_count++];
    struct arena *a = arena_create("request");
    *flight = (struct flight){.arena = a,
                              .ticket = request->ticket,
                              .prompt = words_prompt(request, a),
                              .generation = provider_generation_copy(request->generation, a),
                              .sampling = request->sampling,
                              .began_ns = clock_ns()};
    flight->rule = fixture_rules_find(&f->rules, request->key, flight->prompt);
    *accepted = true;
    return 0;
}

// ---- completing --------------------------------------------------------------------------------

// Waits, unless cancelled; returns false when it was.
static bool wait_ms(struct fixture *f, uint64_t ms) {
    uint64_t end = clock_ns() + ms * 1000000u;
    for (;;) {
        if (atomic_load(&f->cancelled)) return false;
        uint64_t now = clock_ns();
        if (now >= end) return true;
        struct pollfd wake = {.fd = f->cancel_pipe[0], .events = POLLIN};
        poll(&wake, 1, (int)((end - now + 999999u) / 1000000u));
    }
}

static bool flight_hangs(const struct flight *flight) {
    return flight->rule != NULL && flight->rule->hangs;
}

// Those that hang come last.
static int choose_flight(struct fixture *f) {
    int ready[FIXTURE_IN_FLIGHT_MOST], count = 0;
    for (int i = 0; i < f->flight_count; i++)
        if (!flight_hangs(&f->flights[i])) ready[count++] = i;
    if (count == 0) return 0;
    return f->rules.shuffled ? ready[rng_below(&f->order, (uint64_t)count)] : ready[0];
}

static int answer(struct fixture *f, const struct flight *flight, struct arena *a,
                  struct provider_completion *out, struct err *e) {
    const struct fixture_rule *rule = flight->rule;
    struct str text =
        rule == NULL ? STR("") : fixture_rule_reply(rule, flight->prompt, &flight->sampling, a);
    return words_complete(f->words, &flight->generation, text,
                          rule == NULL ? FINISH_STOP : rule->finish, f->rules.exact_ids, a, out, e);
}

static int fixture_next(struct provider *p, struct arena *a, struct provider_completion *out,
                        bool *any, struct err *e) {
    struct fixture *f = fixture_of(p);
    *any = false;
    if (f->flight_count == 0) return 0;
    int chosen = choose_flight(f);
    struct flight *flight = &f->flights[chosen];
    const struct fixture_rule *rule = flight->rule;
    bool hangs = flight_hangs(flight);
    if (rule != NULL && !wait_ms(f, (uint64_t)(hangs ? rule->hang_ms : rule->delay_ms))) return 0;
    if (atomic_load(&f->cancelled)) return 0;
    *out = (struct provider_completion){.ticket = flight->ticket, .stop_id = -1};
    int result = 0;
    if (hangs)
        words_refuse(out, "hang", arena_printf(a, "no reply within %d ms", rule->hang_ms));
    else if (rule != NULL && rule->error != NULL)
        words_refuse(out, "fixture", arena_strdup(a, rule->error));
    else
        result = answer(f, flight, a, out, e);
    out->wall_ms = CLOCK_MS(clock_ns() - flight->began_ns);
    arena_destroy(flight->arena);
    memmove(flight, flight + 1, (size_t)(f->flight_count - chosen - 1) * sizeof *flight);
    f->flight_count--;
    *any = result == 0;
    return result;
}

static void fixture_cancel(struct provider *p) {
    struct fixture *f = fixture_of(p);
    atomic_store(&f->cancelled, true);
    int saved = errno;
    // The pipe is non-blocking; when it is full, somebody has woken the wait already.
    ssize_t done = write(f->cancel_pipe[1], "", 1);
    (void)done;
    errno = saved;
}

static void fixture_close(struct provider *p) {
    struct fixture *f = fixture_of(p);
    for (int i = 0; i < f->flight_count; i++) arena_destroy(f->flights[i].arena);
    free(f->flights);
    for (int i = 0; i < 2; i++)
        if (f->cancel_pipe[i] >= 0) close(f->cancel_pipe[i]);
    words_close(f->words);
    json_decref(p->what.identity);
    json_decref(p->what.manifest);
    arena_destroy(f->arena);
    free(f);
}

// ---- opening -----------------------------------------------------------------------------------

static const struct provider_ops FIXTURE_OPS = {
    .kind = "fixture",
    .render = fixture_render,
    .tokenize = fixture_tokenize,
    .id_bytes = fixture_id_bytes,
    .submit = fixture_submit,
    .next = fixture_next,
    .cancel = fixture_cancel,
    .close = fixture_close,
};

static void describe(struct fixture *f, const struct provider_options *o) {
    struct provider *p = &f->base;
    p->what = words_identity(o, "fixture", "scripted fixture", o->fixture, f->rules.sha256);
    uint32_t context = f->rules.context_tokens;
    if (context == 0 || (o->context_tokens != 0 && o->context_tokens < context))
        context = o->context_tokens;
    p->can = (struct provider_capabilities){.exact_ids = f->rules.exact_ids,
                                            .deterministic = true,
                                            .reads_key = true,
                                            .in_flight = f->rules.in_flight,
                                            .context_tokens = context};
}

int provider_fixture_open(const struct provider_options *options, struct provider **out,
                          struct err *e) {
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) mem_exhausted("the fixture", sizeof *f);
    f->base.ops = &FIXTURE_OPS;
    f->arena = arena_create("model");
    f->words = words_open();
    f->plan_only = options->plan_only;
    f->cancel_pipe[0] = f->cancel_pipe[1] = -1;
    int result = fixture_rules_read(options->fixture, f->arena, &f->rules, e);
    if (result == 0 && pipe2(f->cancel_pipe, O_NONBLOCK | O_CLOEXEC) != 0)
        result = ERR_SET(e, ERR_IO, "no pipe for the fixture: %s", strerror(errno));
    if (result != 0) {
        fixture_close(&f->base);
        return -1;
    }
    f->flights = calloc((size_t)f->rules.in_flight, sizeof *f->flights);
    if (f->flights == NULL) mem_exhausted("the fixture's requests", sizeof *f->flights);
    f->order = rng_open(f->rules.seed, "fixture", "order");
    describe(f, options);
    *out = &f->base;
    return 0;
}
