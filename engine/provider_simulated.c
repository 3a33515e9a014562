#include "engine/provider_simulated.h"

#include "engine/base/clock.h"
#include "engine/provider_simulated_file.h"
#include "engine/provider_words.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct flight {
    struct arena *arena; // of this request
    int64_t ticket;
    struct str reply;
    const char *error; // NULL: there is a reply
    enum provider_finish finish;
    struct provider_generation generation;
    uint64_t began_ns;
};

struct simulated {
    struct provider base;
    struct arena *arena;
    struct subject subject;
    struct words *words;
    struct flight *flights; // a ring
    int first, count;
    bool plan_only;
    atomic_bool cancelled;
};

static struct simulated *simulated_of(struct provider *p) {
    return (struct simulated *)p;
}

static int simulated_render(struct provider *p, const struct provider_message *messages,
                            size_t count, struct arena *a, struct provider_piece **pieces,
                            size_t *piece_count, struct err *e) {
    (void)p;
    return words_render(messages, count, a, pieces, piece_count, e);
}

static int simulated_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                              struct arena *a, struct provider_ids *out, struct err *e) {
    return words_tokenize(simulated_of(p)->words, pieces, count, a, out, e);
}

static struct str simulated_id_bytes(struct provider *p, int32_t id) {
    return words_bytes(simulated_of(p)->words, id);
}

// ---- what the subject says ---------------------------------------------------------------------

// The draw that decides: the repeat's with the chance sqrt(agreement), so that two trials share it
// with the chance `agreement`; else the prompt's likewise; else the trial's own. Each is uniform,
// so the trial's chance stays what it is.
static double decisive_draw(const struct subject *s, const struct subject_trial *t, const char *id,
                            struct rng *own, struct arena *a) {
    bool repeat = rng_unit(own) < sqrt(s->agreement);
    bool prompt = rng_unit(own) < sqrt(s->prompt_agreement);
    if (!repeat && !prompt) return rng_unit(own);
    struct rng shared = rng_open(s->seed, str_to_c(a, repeat ? t->repeat : t->prompt), id);
    return rng_unit(&shared);
}

static void say(struct buf *out, struct str text) {
    if (text.n == 0) return;
    if (out->n > 0) buf_add_char(out, ' ');
    buf_add_str(out, text);
}

static int speak_of(const struct subject *s, const struct subject_constraint *c,
                    const struct subject_trial *t, struct str prompt, struct arena *a,
                    struct buf *out, struct err *e) {
    double chance;
    TRY(subject_chance(c, t, prompt, &chance, e));
    struct rng own = rng_open(s->seed, t->key, c->id);
    bool met = decisive_draw(s, t, c->id, &own, a) < chance;
    bool violated = rng_unit(&own) < c->violated_share;
    bool anyway = str_equal_c(t->arm, "absent") && c->said_anyway.count > 0;
    const struct subject_texts *texts = met        ? (anyway ? &c->said_anyway : &c->met)
                                        : violated ? &c->violated
                                                   : &c->omitted;
    if (texts->count == 0) return 0;
    struct str text = texts->texts[rng_below(&own, (uint64_t)texts->count)];
    say(out, copy_text(text, &c->copy, prompt, &own, a));
    return 0;
}

static int speak(const struct subject *s, const char *key, struct str prompt, struct arena *a,
                 struct flight *out, struct err *e) {
    struct subject_trial t;
    struct buf text = {0};
    int result = subject_trial_read(key, &t, e);
    out->finish = FINISH_STOP;
    struct rng cut = rng_open(s->seed, key, "the end of the reply");
    if (result == 0 && rng_unit(&cut) < subject_line_at(&s->cut, t.length, 0)) {
        out->finish = FINISH_LENGTH;
        out->reply = str_from(s->cut_reply);
        return 0;
    }
    say(&text, str_from(s->begin));
    for (int i = 0; result == 0 && i < s->constraint_count; i++)
        result = speak_of(s, &s->constraints[i], &t, prompt, a, &text, e);
    say(&text, str_from(s->end));
    out->reply = buf_take(&text, a);
    return result;
}

// ---- requests ----------------------------------------------------------------------------------

static int simulated_submit(struct provider *p, const struct provider_request *request,
                            bool *accepted, struct err *e) {
    struct simulated *s = simulated_of(p);
    *accepted = false;
    if (s->plan_only)
        FAIL(e, ERR_PROVIDER,
             "the simulated subject was opened for planning only, so it answers nothing");
    if (s->count == s->subject.in_flight || atomic_load(&s->cancelled)) return 0;
    struct arena *a = arena_create("request");
    struct flight *flight = &s->flights[(s->first + s->count++) % s->subject.in_flight];
    *flight = (struct flight){.arena = a,
                              .ticket = request->ticket,
                              .generation = provider_generation_copy(request->generation, a),
                              .began_ns = clock_ns()};
    struct err wrong = {0};
    if (speak(&s->subject, request->key, words_prompt(request, a), a, flight, &wrong) != 0)
        flight->error = arena_strdup(a, wrong.text);
    *accepted = true;
    return 0;
}

static int simulated_next(struct provider *p, struct arena *a, struct provider_completion *out,
                          bool *any, struct err *e) {
    struct simulated *s = simulated_of(p);
    *any = false;
    if (s->count == 0 || atomic_load(&s->cancelled)) return 0;
    struct flight *flight = &s->flights[s->first];
    *out = (struct provider_completion){.ticket = flight->ticket, .stop_id = -1};
    int result = 0;
    if (flight->error != NULL)
        words_refuse(out, "simulated", arena_strdup(a, flight->error));
    else
        result = words_complete(s->words, &flight->generation, str_copy(a, flight->reply),
                                flight->finish, true, a, out, e);
    out->wall_ms = CLOCK_MS(clock_ns() - flight->began_ns);
    arena_destroy(flight->arena);
    s->first = (s->first + 1) % s->subject.in_flight;
    s->count--;
    *any = result == 0;
    return result;
}

static void simulated_cancel(struct provider *p) {
    atomic_store(&simulated_of(p)->cancelled, true);
}

static void simulated_close(struct provider *p) {
    struct simulated *s = simulated_of(p);
    for (int i = 0; i < s->count; i++)
        arena_destroy(s->flights[(s->first + i) % s->subject.in_flight].arena);
    free(s->flights);
    words_close(s->words);
    json_decref(p->what.identity);
    json_decref(p->what.manifest);
    arena_destroy(s->arena);
    free(s);
}

static const struct provider_ops SIMULATED_OPS = {
    .kind = "simulated",
    .render = simulated_render,
    .tokenize = simulated_tokenize,
    .id_bytes = simulated_id_bytes,
    .submit = simulated_submit,
    .next = simulated_next,
    .cancel = simulated_cancel,
    .close = simulated_close,
};

int provider_simulated_open(const struct provider_options *o, struct provider **out,
                            struct err *e) {
    struct simulated *s = calloc(1, sizeof *s);
    if (s == NULL) mem_exhausted("the simulated subject", sizeof *s);
    s->base.ops = &SIMULATED_OPS;
    s->arena = arena_create("model");
    s->words = words_open();
    s->plan_only = o->plan_only;
    if (subject_read(o->simulated, s->arena, &s->subject, e) != 0) {
        simulated_close(&s->base);
        return -1;
    }
    s->flights = calloc((size_t)s->subject.in_flight, sizeof *s->flights);
    if (s->flights == NULL) mem_exhausted("the subject's requests", sizeof *s->flights);
    s->base.what =
        words_identity(o, "simulated", "simulated subject", o->simulated, s->subject.sha256);
    uint32_t context = s->subject.context_tokens;
    if (context == 0 || (o->context_tokens != 0 && o->context_tokens < context))
        context = o->context_tokens;
    s->base.can = (struct provider_capabilities){.exact_ids = true,
                                                 .deterministic = true,
                                                 .reads_key = true,
                                                 .in_flight = s->subject.in_flight,
                                                 .context_tokens = context};
    *out = &s->base;
    return 0;
}
