// Models behind a server: what is known of them, and how long their prompts were by the server's
// own count.
#include "evals/served.h"
#include "evals/summarize_grids.h"

#include <string.h>

struct counted {
    int prompts, told;
    uint32_t least, most;
    int64_t planned, sum; // of those that were told
};

static void count(struct counted *c, const struct tally_trial *trial) {
    const struct record_outcome *o = trial->outcome;
    c->prompts++;
    if (o == NULL || o->served_prompt_tokens == 0) return;
    const uint32_t n = o->served_prompt_tokens;
    if (c->told == 0 || n < c->least) c->least = n;
    if (c->told == 0 || n > c->most) c->most = n;
    c->told++;
    c->planned += trial->planned->prompt_tokens;
    c->sum += n;
}

static const char *how_counted(const json_t *models, const char *id) {
    size_t i;
    json_t *model;
    json_array_foreach(models, i, model) {
        const char *known = json_string_value(json_object_get(model, "id"));
        const char *word = json_string_value(json_object_get(model, "length"));
        if (known == NULL || word == NULL || strcmp(known, id) != 0) continue;
        if (strcmp(word, "exact") == 0) return "exact: the token ids that were sent";
        if (strcmp(word, "counted") == 0)
            return "counted, by the server's tokenizer or one that stands for it";
    }
    return "estimated, at four bytes a token";
}

static void add_row(struct grids *l, struct summary_grid *g, const char *length,
                    const struct counted *c) {
    const char *const cells[] = {
        length,
        arena_printf(l->arena, "%d", c->prompts),
        c->told == 0          ? "not told"
        : c->least == c->most ? arena_printf(l->arena, "%u", c->least)
                              : arena_printf(l->arena, "%u to %u", c->least, c->most),
        c->told == 0
            ? "-"
            : arena_printf(l->arena, "%+.1f %%",
                           100 * ((double)c->sum - (double)c->planned) / (double)c->planned),
    };
    grids_row(l, g, cells);
}

// ---- what answered -----------------------------------------------------------------------------

static void note_all(const struct tally *t, int model, struct arena *a, struct served_list *out) {
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct record_outcome *o = t->trials[i].outcome;
        if (t->trials[i].model == model && o != NULL) served_note(out, &o->server, i, a);
    }
}

static const char *or_none(const char *text) {
    return text != NULL ? text : "-";
}

static void add_answering(const struct tally *t, int model, struct grids *l) {
    static const char *const heads[] = {"model",   "fingerprint", "server",
                                        "replies", "first trial", "last trial"};
    struct served_list list = {0};
    note_all(t, model, l->arena, &list);
    if (list.count == 0) return;
    struct summary_grid *g =
        grids_add(l, arena_printf(l->arena, "What answered: %s", t->x->models[model].id),
                  "As the server calls the model, its own state and its program.", heads, 6);
    for (int i = 0; i < list.count; i++) {
        const struct served_seen *s = &list.seen[i];
        const char *const cells[] = {or_none(s->by.model),
                                     or_none(s->by.fingerprint),
                                     or_none(s->by.program),
                                     arena_printf(l->arena, "%lld", (long long)s->replies),
                                     t->trials[s->first].planned->key,
                                     t->trials[s->last].planned->key};
        grids_row(l, g, cells);
    }
}

// ---- its own noise -----------------------------------------------------------------------------

static void add_share(struct grids *l, struct summary_grid *g, const char *what, int same, int n) {
    const char *const cells[] = {what, grids_fraction(l, same, n),
                                 n > 0 ? grids_interval(l, stats_wilson(same, n)) : "-"};
    grids_row(l, g, cells);
}

static int same_of_constraint(const struct record *r, const char *model, const char *constraint,
                              int *n) {
    int same = 0;
    *n = 0;
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *first = r->outcomes[i], *again = record_get_again(r, i);
        if (again == NULL || first == NULL || strcmp(r->trials[i].model, model) != 0) continue;
        for (int k = 0; k < first->verdict_count && k < again->verdict_count; k++) {
            if (strcmp(first->verdicts[k].constraint, constraint) != 0) continue;
            ++*n;
            same += first->verdicts[k].verdict == again->verdicts[k].verdict;
        }
    }
    return same;
}

static const char *noise_sentence(const struct record_noise *n, bool greedy, struct arena *a) {
    const struct stats_interval text = stats_wilson(n->same_text, n->asked);
    const struct stats_interval verdicts = stats_wilson(n->same_verdicts, n->asked);
    const char *seed = greedy ? "" : " (by the same seed)";
    const char *meaning =
        n->same_text < n->asked
            ? "Replies of this server are not reproducible: that one differs between two runs says "
              "nothing by itself, and no equality of bytes is claimed."
            : arena_printf(
                  a,
                  "No noise was seen; as far as so few requests can tell, up to %.0f %% of "
                  "replies may have it.",
                  100 * (1 - text.low));
    return arena_printf(
        a,
        "of %d requests that were sent twice%s %d got the same text (95 %% interval "
        "%.0f to %.0f %%) and %d the same verdicts (%.0f to %.0f %%). %s",
        n->asked, seed, n->same_text, 100 * text.low, 100 * text.high, n->same_verdicts,
        100 * verdicts.low, 100 * verdicts.high, meaning);
}

// Of replies that are sampled: each is sent a seed, which servers may take and not use.
static const char *seed_words(const struct record_noise *n, double temperature, struct arena *a) {
    if (temperature == 0) return "";
    if (n->asked == 0) return " Seed honoured: unknown (`repeat_check` tells).";
    if (n->same_text == n->asked)
        return arena_printf(a, " Seed honoured: yes, in all of %d requests that were sent twice.",
                            n->asked);
    return arena_printf(
        a, " Seed honoured: no, %d of %d requests that were sent twice got another text.",
        n->asked - n->same_text, n->asked);
}

static void add_noise(const struct tally *t, const struct record *r, int model, struct grids *l) {
    static const char *const heads[] = {"the same", "requests", "95 % interval"};
    const struct experiment_model *m = &t->x->models[model];
    if (m->repeat_check == 0) return;
    struct summary_grid *g = grids_add(
        l, arena_printf(l->arena, "Noise of the server: %s", m->id),
        "Requests that were sent a second time, behind all trials. The second replies are "
        "in no rate.",
        heads, 3);
    const struct record_noise n = record_noise(r, m->id);
    add_share(l, g, "text", n.same_text, n.asked);
    add_share(l, g, "verdicts", n.same_verdicts, n.asked);
    for (int c = 0; t->x->constraint_count > 1 && c < t->x->constraint_count; c++) {
        int judged, same = same_of_constraint(r, m->id, t->x->constraints[c].id, &judged);
        add_share(l, g, arena_printf(l->arena, "verdict on %s", t->x->constraints[c].id), same,
                  judged);
    }
    grids_say(l, g,
              n.asked > 0 ? noise_sentence(&n, t->x->generation.temperature == 0, l->arena)
                          : "no request has been sent twice yet.");
}

const char *served_warning(const struct tally *t, int model, struct arena *a) {
    struct served_list list = {0};
    note_all(t, model, a, &list);
    if (list.count < 2) return NULL;
    struct buf words = {0};
    buf_printf(&words, "%s was not answered by one thing throughout", t->x->models[model].id);
    for (int i = 0; i < list.count; i++)
        buf_printf(&words, "%s %s (%lld replies)", i == 0 ? ":" : ";",
                   served_words(&list.seen[i].by, a), (long long)list.seen[i].replies);
    buf_add_c(&words, ". A difference between their trials may be theirs.");
    return buf_take(&words, a).p;
}

// ---- the model ---------------------------------------------------------------------------------

static void add_model(const struct tally *t, const struct record *r, int model, struct grids *l) {
    static const char *const heads[] = {"length", "prompts", "by the server's count",
                                        "mean difference from ours"};
    const struct experiment_model *m = &t->x->models[model];
    const struct record_noise noise = record_noise(r, m->id);
    struct summary_grid *g = grids_add(
        l, arena_printf(l->arena, "Served: %s", m->id),
        arena_printf(l->arena,
                     "%s at %s. Its bits are not under our control: the same request may get "
                     "another reply. Sent by api %s%s%s. Lengths are %s.%s",
                     m->endpoint.name, m->endpoint.url,
                     m->endpoint.api != NULL ? m->endpoint.api : "chat",
                     m->endpoint.body != NULL ? " with " : "",
                     m->endpoint.body != NULL ? m->endpoint.body : "",
                     how_counted(json_object_get(r->identity, "models"), m->id),
                     seed_words(&noise, t->x->generation.temperature, l->arena)),
        heads, 4);
    for (int length = -1; length < t->length_count; length++) {
        struct counted c = {0};
        for (int64_t i = 0; i < t->trial_count; i++)
            if (t->trials[i].model == model && t->trials[i].length == length)
                count(&c, &t->trials[i]);
        if (c.prompts == 0) continue;
        add_row(l, g, length < 0 ? "short" : arena_printf(l->arena, "%d", t->lengths[length]), &c);
    }
    add_answering(t, model, l);
    add_noise(t, r, model, l);
}

void grids_served(const struct tally *t, const struct record *r, struct grids *out) {
    for (int i = 0; i < t->x->model_count; i++)
        if (t->x->models[i].endpoint.url != NULL) add_model(t, r, i, out);
}
