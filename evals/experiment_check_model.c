// How the fields of one model must fit together.
#include "evals/experiment_internal.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

static bool same_id(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

// A server may give what is thought apart; others give one text.
static void check_tags_given(struct load *l, const struct experiment_model *m, const char *path) {
    const struct reasoning_tags *t = &m->reasoning;
    if (t->open.p == NULL && t->close.p == NULL && m->endpoint.url != NULL) {
        if (t->opened) WRONG(AT("%s.opened_by_prompt", path), "needs the tags `open` and `close`");
        return;
    }
    if (t->open.p == NULL) WRONG(AT("%s.open", path), "is missing: the tag before what is thought");
    if (t->close.p == NULL) WRONG(AT("%s.close", path), "is missing: the tag behind it");
}

static void check_tag(struct load *l, struct str tag, const char *path) {
    if (str_trim(tag).n == 0) WRONG(path, "an empty tag stands everywhere");
    if (memchr(tag.p, '`', tag.n) != NULL)
        WRONG(path, "a tag in backticks is code, which opens and closes nothing");
}

static void check_reasoning(struct load *l, const struct experiment_model *m, const char *path) {
    const struct reasoning_tags *t = &m->reasoning;
    check_tags_given(l, m, path);
    if (t->open.p == NULL || t->close.p == NULL) return;
    check_tag(l, t->open, AT("%s.open", path));
    check_tag(l, t->close, AT("%s.close", path));
    if (str_equal(t->open, t->close))
        WRONG(AT("%s.close", path), "must differ from the tag that opens");
    else if (str_find(t->open, t->close, 0) != STR_NONE ||
             str_find(t->close, t->open, 0) != STR_NONE)
        WRONG(AT("%s.close", path), "one tag stands inside the other, so each would be both");
}

// One of the four says what the model is.
static void check_kind_of_model(struct load *l, const struct experiment_model *m,
                                const char *path) {
    const struct {
        const char *key, *value;
    } kinds[] = {{"path", m->path},
                 {"endpoint", m->endpoint.url},
                 {"fixture", m->fixture},
                 {"simulated", m->simulated}};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].value == NULL) continue;
        if (first != NULL)
            WRONG(AT("%s.%s", path, kinds[i].key), "%s is given too; one of them must go", first);
        else
            first = kinds[i].key;
    }
    if (first == NULL)
        WRONG(AT("%s.path", path), "is missing: a model needs a path (or an endpoint, a fixture or "
                                   "a simulated subject)");
}

// What decides on this machine decides nothing about a server.
static void check_endpoint(struct load *l, const struct experiment_model *m, const char *path) {
    const struct {
        const char *key;
        bool given;
    } local[] = {{"backend", m->backend != NULL && strcmp(m->backend, "auto") != 0},
                 {"numerics", m->numerics != NULL && strcmp(m->numerics, "bf16-1") != 0},
                 {"weights", m->weights != NULL && strcmp(m->weights, "auto") != 0},
                 {"beyond_trained", m->beyond_trained},
                 {"template", m->chat_template != NULL && m->endpoint.count_file == NULL},
                 {"pre_tokenizer", m->pre_tokenizer != NULL && m->endpoint.count_file == NULL}};
    if (m->endpoint.url == NULL) return;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (local[i].given)
            WRONG(AT("%s.%s", path, local[i].key),
                  "is of a model file; a server decides it itself");
    if (m->endpoint.api != NULL && strcmp(m->endpoint.api, "chat") != 0 &&
        m->endpoint.count_file == NULL)
        WRONG(AT("%s.count", path),
              "api %s needs a GGUF file here, by which prompts are rendered and tokenized",
              m->endpoint.api);
}

void experiment_check_models(struct load *l) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->model_count; i++) {
        const struct experiment_model *m = &x->models[i];
        for (int k = 0; k < i; k++)
            if (same_id(m->id, x->models[k].id))
                WRONG(AT("models[%d].id", i), "'%s' is models[%d] already; ids must differ", m->id,
                      k);
        if (same_id(m->id, "each"))
            WRONG(AT("models[%d].id", i), "'each' means every model (lengths.measured_by)");
        check_kind_of_model(l, m, AT("models[%d]", i));
        check_endpoint(l, m, AT("models[%d]", i));
        if (m->thinks) check_reasoning(l, m, AT("models[%d].reasoning", i));
    }
}
