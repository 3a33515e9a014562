#include "evals/evidence.h"
#include "evals/plan.h"
#include "evals/run_setup.h"

#include <string.h>

static int check_ids(const struct record *r, const struct record_trial *t,
                     const struct provider_ids *ids, struct err *e) {
    char hex[HASH_HEX_SIZE];
    hash_ids(ids->ids, ids->count, hex);
    if (ids->count == t->prompt_tokens && strcmp(hex, t->ids_sha256) == 0) return 0;
    FAIL(e, ERR_RECORD,
         "%s: the prompt of %s gives %zu tokens (ids %.12s...) where the plan says %u (%.12s...); "
         "the tokenizer of this build is another one: start a new run",
         r->folder, t->key, ids->count, hex, t->prompt_tokens, t->ids_sha256);
}

int run_offer_make(const struct experiment *x, const struct record *r, struct provider *p,
                   const struct record_trial *t, int64_t ticket, struct arena *a,
                   struct run_offer *out, struct err *e) {
    struct record_part *parts;
    size_t count;
    struct str text;
    TRY(record_get_prompt(r, t->prompt_sha256, a, &parts, &count, &text, e));
    struct provider_piece *pieces = arena_array(a, count, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct provider_piece){parts[i].text, parts[i].control};
    const struct experiment_generation *g = &x->generation;
    const struct experiment_model *m = &x->models[experiment_model_index(x, t->model)];
    out->reasoning = plan_reasoning_tags(m, t);
    out->generation =
        (struct provider_generation){.max_tokens = t->reply_tokens_max,
                                     .reasoning_tokens = m->reasoning_tokens,
                                     .reasoning = m->reasoning.open.n > 0 ? &out->reasoning : NULL,
                                     .temperature = g->temperature,
                                     .top_p = g->top_p,
                                     .stop = g->stop,
                                     .stop_count = g->stop_count};
    out->request = (struct provider_request){.ticket = ticket,
                                             .key = t->key,
                                             .pieces = pieces,
                                             .piece_count = count,
                                             .prompt_tokens = t->prompt_tokens,
                                             .generation = &out->generation,
                                             .sampling = plan_sampling_stream(x, t)};
    if (strcmp(evidence_word(x, p), "off") != 0) evidence_ask(t, a, &out->request);
    if (!p->can.exact_ids) return 0;
    TRY(p->ops->tokenize(p, pieces, count, a, &out->request.ids, e));
    return check_ids(r, t, &out->request.ids, e);
}
