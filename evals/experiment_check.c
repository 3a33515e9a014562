// How the fields of an experiment must fit together.
#include "evals/experiment_internal.h"
#include "prompts/filler.h"
#include "prompts/prompt.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

static bool same_id(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

// The reply comes on top of the length; together they must fit into the window.
static void check_window(struct load *l, const char *what, int length, const char *path) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->model_count; i++) {
        const struct experiment_model *m = &x->models[i];
        // Tokens of a text that another model measured are known to the plan only.
        if (x->measured_by != NULL && !same_id(m->id, x->measured_by)) continue;
        const int reply = experiment_reply_tokens(x, i);
        const int64_t sum = (int64_t)length + reply;
        if (m->context_tokens == 0 || length <= 0 || sum <= (int64_t)m->context_tokens) continue;
        WRONG(path,
              "%s %d (chat template included) + %s %d = %lld, more than context_tokens %u of model "
              "'%s'; nothing is ever cut, so make one of them fit",
              what, length,
              m->reasoning_tokens > 0 ? "max_tokens of reasoning and answer"
                                      : "generation.max_tokens",
              reply, (long long)sum, m->context_tokens, m->id == NULL ? "?" : m->id);
        return;
    }
}

static void check_lengths(struct load *l) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->length_count; i++) {
        if (i > 0 && x->lengths[i] > 0 && x->lengths[i] <= x->lengths[i - 1])
            WRONG(AT("lengths.tokens[%d]", i), "%d follows %d; lengths must ascend", x->lengths[i],
                  x->lengths[i - 1]);
        check_window(l, "length", x->lengths[i], AT("lengths.tokens[%d]", i));
    }
    if (x->arms[ARM_SHORT]) check_window(l, "short_tokens", x->short_tokens, "short_tokens");
}

static void check_generation(struct load *l) {
    const struct experiment_generation *g = &l->x->generation;
    if (g->samples > 1 && g->temperature == 0)
        WRONG(
            "generation.samples",
            "%d samples at temperature 0 are all the same reply; set generation.temperature above "
            "0, or samples to 1",
            g->samples);
    for (int i = 0; i < g->stop_count; i++)
        if (g->stop[i].p != NULL && g->stop[i].n == 0)
            WRONG(AT("generation.stop[%d]", i), "an empty text would end every reply at once");
}

static void check_arms(struct load *l) {
    if (!l->x->arms[ARM_PLACED])
        WRONG("arms", "'placed' is missing: it is the measurement, the others stand beside it");
}

struct references {
    struct load *l;
    const struct experiment_constraint *constraint; // whose variables are known; NULL: none
    bool filler;                                    // {{filler}} is known
    int fillers;                                    // times it was seen
    bool *used;                                     // by variable of the constraint; or NULL
};

static int see_reference(void *context, struct str name, struct err *e) {
    struct references *r = context;
    if (r->filler && str_equal_c(name, "filler")) {
        r->fillers++;
        return 0;
    }
    if (r->filler && str_equal_c(name, "tools") && r->l->x->tool_count > 0) {
        r->l->x->tools_as_text = true;
        return 0;
    }
    const char *known[256];
    size_t count = 0;
    const size_t most = sizeof known / sizeof *known;
    const struct experiment_constraint *c = r->constraint;
    for (int i = 0; c != NULL && i < c->var_count; i++) {
        if (str_equal_c(name, c->vars[i].name)) {
            if (r->used != NULL) r->used[i] = true;
            return 0;
        }
        if (count < most) known[count++] = c->vars[i].name;
    }
    for (int i = 0; i < r->l->x->var_count; i++) {
        if (str_equal_c(name, r->l->x->vars[i].name)) return 0;
        if (count < most) known[count++] = r->l->x->vars[i].name;
    }
    for (int i = 0; i < r->l->column_count; i++) {
        if (str_equal_c(name, r->l->columns[i])) return 0;
        if (count < most) known[count++] = r->l->columns[i];
    }
    if (r->filler && count < most) known[count++] = "filler";
    // Without the cases at hand (a record that is read again) a name may be a column.
    if (r->l->x->cases_path != NULL && r->l->columns == NULL) return 0;
    struct buf text = {0};
    buf_printf(&text, "{{" STR_FMT "}} is not defined", STR_ARG(name));
    const char *near = str_nearest(str_to_c(r->l->arena, name), known, count);
    if (near != NULL) {
        buf_printf(&text, "; did you mean {{%s}}?", near);
    } else {
        for (size_t i = 0; i < count; i++)
            buf_printf(&text, "%s{{%s}}", i == 0 ? "; known here: " : ", ", known[i]);
        if (count == 0) buf_add_c(&text, "; no variable is known here");
    }
    ERR_SET(e, ERR_CONFIG, "%s", text.p);
    buf_free(&text);
    return -1;
}

// The message without the name that variables_each puts before it: the path says it better.
static const char *without_where(const struct err *e) {
    return strncmp(e->text, "text: ", 6) == 0 ? e->text + 6 : e->text;
}

static void check_references_of(struct references *r, struct str text, bool pattern,
                                const char *path, const char *origin) {
    struct load *l = r->l;
    struct err e = {0};
    if (text.p == NULL) return;
    if (variables_each(text, pattern, "text", see_reference, r, &e) == 0) return;
    WRONG(path, "%s%s", origin, without_where(&e));
}

static void check_references(struct references *r, struct str text, bool pattern,
                             const char *path) {
    check_references_of(r, text, pattern, path, "");
}

// Chat templates print any role, so a misspelt one would reach the model unnoticed.
static void check_role(struct load *l, struct str role, const char *path) {
    static const char *const known[] = {"system",    "user", "assistant",
                                        "developer", "tool", PROMPT_CHAT_ROLE};
    size_t count = sizeof known / sizeof *known;
    for (size_t i = 0; i < count; i++)
        if (role.p == NULL || str_equal_c(role, known[i])) return;
    const char *near = str_nearest(str_to_c(l->arena, role), known, count);
    diagnose_warning_at(l->d, l->root, path,
                        AT("an unusual role%s%s%s", near ? "; did you mean " : "", near ? near : "",
                           near ? "?" : ""));
}

static void check_messages(struct load *l) {
    const struct experiment *x = l->x;
    struct references r = {.l = l, .filler = true};
    bool missing = x->message_count == 0;
    for (int i = 0; i < x->message_count; i++) {
        // Variables of a rule are those of its constraint.
        const struct experiment_message *m = &x->messages[i];
        check_references_of(&r, experiment_without_rules(l, i), false, AT("%s.text", m->path),
                            m->origin);
        check_role(l, m->role, AT("%s.role", m->path));
        missing |= x->messages[i].text.p == NULL;
    }
    if (!missing && r.fillers == 0)
        WRONG("prompt.messages",
              "{{filler}} is missing: one message must hold it, where the long text goes");
    if (r.fillers > 1)
        WRONG("prompt.messages", "{{filler}} stands %d times; it must stand once over all messages",
              r.fillers);
}

// Filler of kind chat has a message of its own, whose place its exchanges take.
static void check_chat(struct load *l) {
    const struct experiment *x = l->x;
    const bool chat = x->filler.kind == FILLER_CHAT;
    bool any = false;
    for (int i = 0; i < x->message_count; i++) {
        const struct experiment_message *m = &x->messages[i];
        if (!str_equal_c(m->role, PROMPT_CHAT_ROLE)) continue;
        any = true;
        if (!chat)
            WRONG(AT("%s.role", m->path), "role chat is the place of a filler of kind chat");
        else if (!str_equal_c(m->text, PROMPT_SLOT))
            WRONG(AT("%s.text", m->path), "a message with role: chat holds {{filler}} and nothing "
                                          "else");
        else if (i + 1 == x->message_count || !str_equal_c(x->messages[i + 1].role, "user"))
            WRONG(AT("%s.role", m->path),
                  "a user message must follow: exchanges end with the assistant's turn");
        else if (i > 0 && str_equal_c(x->messages[i - 1].role, "user"))
            WRONG(AT("%s.role", m->path),
                  "no user message may stand before it: exchanges begin with the user's turn");
    }
    if (chat && !any && x->message_count > 0)
        WRONG("prompt.messages", "kind chat needs a message {role: chat, text: \"{{filler}}\"}, "
                                 "where the exchanges go");
}

static int see_wrapper_name(void *context, struct str name, struct err *e) {
    (void)context;
    if (str_equal_c(name, "text") || str_equal_c(name, "n")) return 0;
    FAIL(e, ERR_CONFIG, "{{" STR_FMT "}} is not defined; known here: {{text}}, {{n}}",
         STR_ARG(name));
}

static void check_filler(struct load *l) {
    const struct experiment_filler *f = &l->x->filler;
    const bool paths = f->kind == FILLER_FILES || f->kind == FILLER_CHAT;
    if (paths && f->path_count == 0)
        WRONG("prompt.filler.paths", "is missing: kinds files and chat need at least one path");
    if (!paths && f->path_count > 0)
        WRONG("prompt.filler.paths", "only kinds files and chat take paths");
    if (f->kind != FILLER_NOISE && f->sentence_count > 0)
        WRONG("prompt.filler.sentences", "only kind noise takes sentences");
    bool generated = f->kind == FILLER_PROSE || (f->kind == FILLER_NOISE && f->sentence_count == 0);
    if (generated && f->language != NULL && !filler_language_written(f->language))
        WRONG("prompt.filler.language",
              "there is no generated text in '%s', only in en, zh and ar; use kind files, or kind "
              "noise with sentences of your own",
              f->language);
    if (f->wrapper.n > 0 && f->kind != FILLER_FILES)
        WRONG("prompt.filler.wrapper", "only kind files takes a wrapper");
    struct err e = {0};
    if (f->wrapper.n > 0 && str_count(f->wrapper, STR("{{text}}")) != 1)
        WRONG("prompt.filler.wrapper", "{{text}} must stand in it once, where the unit goes");
    if (f->wrapper.n > 0 &&
        variables_each(f->wrapper, false, "text", see_wrapper_name, NULL, &e) != 0)
        WRONG("prompt.filler.wrapper", "%s", without_where(&e));
}

static void check_kind(struct load *l, const struct experiment_constraint *c, const char *path) {
    switch (c->kind) {
    case CONSTRAINT_STATE:
        if (c->value.p == NULL && c->met.p == NULL && c->check == NULL)
            WRONG(path,
                  "kind state needs value (or met, or check): what a reply that states it holds");
        break;
    case CONSTRAINT_FORMAT:
        if (c->met.p == NULL && c->check == NULL)
            WRONG(path, "kind format needs met (or check): the right shape");
        break;
    case CONSTRAINT_FORBID:
        if (c->violated.p == NULL && c->violated_check == NULL)
            WRONG(path, "kind forbid needs violated (or violated_check): what must not be done");
        else if (c->answered.p == NULL)
            WRONG(path, "kind forbid needs answered: a pattern which shows that the task was "
                        "attempted at all");
        if (c->met.p != NULL)
            WRONG(AT("%s.met", path), "kind forbid is met when it was answered and not violated");
        if (c->check != NULL)
            WRONG(AT("%s.check", path), "kind forbid is met when it was answered and not violated");
        break;
    }
    if (c->kind != CONSTRAINT_STATE && c->value.p != NULL)
        WRONG(AT("%s.value", path), "only kind state takes a value");
    if (c->value.p != NULL && str_trim(c->value).n == 0)
        WRONG(AT("%s.value", path), "an empty value stands in every reply");
}

// Wordings say the same thing: each has the variables that the first one has.
static void check_variants(struct load *l, const struct experiment_constraint *c,
                           const char *path) {
    struct mark mark;
    if (node_find(l->root, AT("%s.draw_variants", path), &mark) != NULL && c->variant_count == 0)
        WRONG(AT("%s.draw_variants", path), "there are no variants to draw from");
    for (int i = 1; i < c->variant_count; i++) {
        if (c->variants[i].p == NULL) continue;
        bool *used = arena_array(l->arena, (size_t)c->var_count + 1, sizeof *used);
        struct references r = {.l = l, .constraint = c, .used = used};
        const char *where = AT("%s.variants[%d]", path, i);
        if (str_trim(c->variants[i]).n == 0) WRONG(where, "is empty");
        check_references(&r, c->variants[i], false, where);
        for (int k = 0; k < c->var_count; k++)
            if (!used[k])
                diagnose_warning_at(l->d, l->root, where,
                                    AT("this wording does not use {{%s}}", c->vars[k].name));
        for (int k = 0; k < i; k++)
            if (c->variants[k].p != NULL && str_equal(c->variants[i], c->variants[k]))
                WRONG(where, "is the same text as variants[%d]", k);
    }
}

struct tree_texts {
    struct references *references;
    const char *path; // of the constraint
};

static int see_tree_text(void *context, const char *where, struct str text, bool pattern,
                         struct err *e) {
    (void)e;
    struct tree_texts *t = context;
    struct load *l = t->references->l;
    check_references(t->references, text, pattern, AT("%s.%s", t->path, where));
    return 0;
}

static void check_trees(struct references *r, const struct experiment_constraint *c,
                        const char *path) {
    struct load *l = r->l;
    struct tree_texts t = {r, path};
    struct err e = {0};
    experiment_check_tree(l, c->check, path, "check");
    experiment_check_tree(l, c->violated_check, path, "violated_check");
    check_spec_each(c->check, see_tree_text, &t, &e);
    check_spec_each(c->violated_check, see_tree_text, &t, &e);
    if (c->check != NULL && (c->value.p != NULL || c->met.p != NULL))
        WRONG(AT("%s.%s", path, c->value.p != NULL ? "value" : "met"),
              "check is given too; one of them must go (all: [...] takes several)");
    if (c->violated_check != NULL && c->violated.p != NULL)
        WRONG(AT("%s.violated", path), "violated_check is given too; one of them must go");
}

static void check_constraint(struct load *l, const struct experiment_constraint *c,
                             const char *path) {
    bool *used = arena_array(l->arena, (size_t)c->var_count + 1, sizeof *used);
    struct references r = {.l = l, .constraint = c, .used = used};
    const char *text_path = AT("%s.%s", path,
                               c->in_prompt           ? "in_prompt"
                               : c->variant_count > 0 ? "variants[0]"
                                                      : "text");
    if (c->text.p != NULL && str_trim(c->text).n == 0) WRONG(text_path, "is empty");
    check_references(&r, c->text, false, text_path);
    // A variable that only the checks use is drawn for nothing: the model never sees it.
    for (int i = 0; i < c->var_count && c->text.p != NULL; i++)
        if (!used[i])
            diagnose_warning_at(
                l->d, l->root, AT("%s.vars.%s", path, c->vars[i].name),
                "the constraint's text does not use it, so the model never sees it");
    check_variants(l, c, path);
    check_references(&r, c->value, false, AT("%s.value", path));
    check_references(&r, c->met, true, AT("%s.met", path));
    check_references(&r, c->violated, true, AT("%s.violated", path));
    check_references(&r, c->answered, true, AT("%s.answered", path));
    check_trees(&r, c, path);
    const struct {
        const char *name;
        const struct str *texts;
        int count;
    } lists[] = {{"met", c->example_met, c->example_met_count},
                 {"not", c->example_not, c->example_not_count},
                 {"violated", c->example_violated, c->example_violated_count}};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < lists[k].count; i++)
            check_references(&r, lists[k].texts[i], false,
                             AT("%s.examples.%s[%d]", path, lists[k].name, i));
    for (int i = 0; i < c->var_count; i++)
        experiment_check_variable(l, &c->vars[i], AT("%s.vars.%s", path, c->vars[i].name));
    if (c->example_violated_count > 0 && c->violated.p == NULL && c->violated_check == NULL)
        WRONG(AT("%s.examples.violated", path),
              "there is no violated or violated_check that they could prove");
}

static void check_constraints(struct load *l) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        const char *path = AT("constraints[%d]", i);
        if (same_id(c->id, "all")) WRONG(AT("%s.id", path), "'all' means all constraints");
        for (int k = 0; k < i; k++)
            if (same_id(c->id, x->constraints[k].id))
                WRONG(AT("%s.id", path), "'%s' is constraints[%d] already; ids must differ", c->id,
                      k);
        if (node_find(l->root, AT("%s.kind", path), &(struct mark){0}) != NULL)
            check_kind(l, c, path);
        check_constraint(l, c, path);
        if (c->contradicts == c)
            WRONG(AT("%s.contradicts", path), "'%s' cannot contradict itself", c->id);
        // Crossed wordings change together.
        for (int k = 0; k < i && c->cross_variants; k++)
            if (x->constraints[k].cross_variants &&
                x->constraints[k].variant_count != c->variant_count)
                WRONG(AT("%s.variants", path),
                      "%d wordings, but constraints[%d] has %d; crossed wordings change together, "
                      "so their numbers must agree",
                      c->variant_count, k, x->constraints[k].variant_count);
    }
}

// Every constraint has exactly one place in a row.
static void check_row(struct load *l, const struct experiment_placement *p, const char *path) {
    const struct experiment *x = l->x;
    int *times = arena_array(l->arena, (size_t)x->constraint_count + 1, sizeof *times);
    for (int i = 0; i < p->move_count; i++)
        if (++times[p->move[i]] == 2)
            WRONG(AT("%s.%s", path, p->scatter ? "scatter" : "move"), "'%s' stands in it twice",
                  x->constraints[p->move[i]].id);
    for (int i = 0; i < p->other_count; i++) {
        const int c = p->others[i].constraint;
        if (times[c]++ > 0)
            WRONG(AT("%s.others.%s", path, x->constraints[c].id),
                  "'%s' moves in this row; it cannot have a fixed place too", x->constraints[c].id);
    }
    struct buf missing = {0};
    for (int i = 0; i < x->constraint_count; i++)
        if (times[i] == 0 && x->constraints[i].id != NULL && !x->constraints[i].in_prompt)
            buf_printf(&missing, "%s'%s'", missing.n == 0 ? "" : ", ", x->constraints[i].id);
    if (missing.n > 0)
        WRONG(AT("%s.others", path),
              "no place for %s; every constraint must move or stand under others or rest (or be "
              "absent "
              "there)",
              missing.p);
    buf_free(&missing);
}

// What moves, and how.
static void check_moves(struct load *l, const struct experiment_placement *p, const char *path) {
    const char *move = AT("%s.move", path), *orders = AT("%s.orders", path);
    struct mark mark;
    const bool moved = node_find(l->root, move, &mark) != NULL;
    if (!p->scatter && !moved)
        WRONG(move, "is missing: expected the constraints that move (or scatter: those that "
                    "change places)");
    if (p->scatter && moved) WRONG(move, "scatter is given too; one of them must go");
    if (!p->scatter && node_find(l->root, orders, &mark) != NULL)
        WRONG(orders, "only scatter has orders");
    if (p->scatter && p->move_count > 0 && p->place_count > 0 && p->move_count != p->place_count)
        WRONG(AT("%s.scatter", path),
              "%d constraints over %d places; each takes one place, so their numbers must agree",
              p->move_count, p->place_count);
}

static bool has_message(const struct experiment *x, const char *role) {
    for (int i = 0; i < x->message_count; i++)
        if (str_equal_c(x->messages[i].role, role)) return true;
    return x->message_count == 0; // which is complained about elsewhere
}

static void check_place(struct load *l, int constraint, struct place place, const char *path) {
    const struct experiment_constraint *c = &l->x->constraints[constraint];
    for (int i = 0; i <= place.more_count; i++) {
        const struct place_spot spot = place_spot(&place, i);
        const struct place alone = {.anchor = spot.anchor, .depth = spot.depth};
        char text[PLACE_TEXT_SIZE];
        place_text(alone, text);
        const char *role = spot.anchor == PLACE_IN_SYSTEM    ? "system"
                           : spot.anchor == PLACE_FIRST_USER ? "user"
                           : spot.anchor == PLACE_LAST_USER  ? "user"
                                                             : NULL;
        if (role != NULL && !has_message(l->x, role))
            WRONG(path, "%s needs a message with role: %s in prompt.messages", text, role);
        if (spot.anchor == PLACE_IN_PLACE && !c->in_prompt)
            WRONG(path, "'%s' has a text of its own and no place in the messages (in_prompt)",
                  c->id);
    }
}

static void check_places(struct load *l, const struct experiment_placement *p, const char *path) {
    if (p->place_count == 0)
        WRONG(path, "needs depths (or anchors): where the moving constraints stand");
    for (int i = 0; i < p->place_count; i++) {
        char text[PLACE_TEXT_SIZE];
        place_text(p->places[i], text);
        for (int k = 0; k < i; k++)
            if (place_equal(p->places[i], p->places[k])) {
                WRONG(AT("%s.%s", path, place_is_depth(p->places[i]) ? "depths" : "anchors"),
                      "%s stands in the row twice", text);
                break;
            }
        for (int k = 0; k < p->move_count; k++)
            check_place(l, p->move[k], p->places[i], AT("%s.anchors", path));
    }
    for (int i = 0; i < p->other_count; i++)
        check_place(l, p->others[i].constraint, p->others[i].place,
                    AT("%s.others.%s", path, l->x->constraints[p->others[i].constraint].id));
}

// A constraint that every row leaves out would be judged nowhere.
static void check_left_out(struct load *l) {
    const struct experiment *x = l->x;
    for (int c = 0; c < x->constraint_count; c++) {
        bool held = false;
        for (int i = 0; i < x->placement_count && !held; i++)
            held = !placement_leaves_out(&x->placements[i], c);
        if (!held && x->placement_count > 0 && x->constraints[c].id != NULL)
            WRONG("placements", "every row leaves '%s' out; one must hold it",
                  x->constraints[c].id);
    }
}

static void check_placements(struct load *l) {
    const struct experiment *x = l->x;
    check_left_out(l);
    for (int i = 0; i < x->placement_count; i++) {
        const struct experiment_placement *p = &x->placements[i];
        const char *path = AT("placements[%d]", i);
        for (int k = 0; k < i; k++)
            if (same_id(p->id, x->placements[k].id))
                WRONG(AT("%s.id", path), "'%s' is placements[%d] already; ids must differ", p->id,
                      k);
        check_moves(l, p, path);
        check_row(l, p, path);
        check_places(l, p, path);
    }
}

static void check_repeats(struct load *l) {
    const struct experiment *x = l->x;
    if (x->effective_level <= 0 || x->effective_level >= 1)
        WRONG("effective_level",
              "a lower bound is never below 0 %% and never reaches 100 %%, so this "
              "says nothing; give a share between");
    if (x->cases_path == NULL && x->repeats == 0)
        WRONG("repeats", "is missing: expected a whole number (only cases give it by themselves)");
    if (l->columns != NULL && x->repeats > l->case_count)
        WRONG("repeats", "%d repeats, but the cases have %d rows; repeat r takes row r", x->repeats,
              l->case_count);
    for (int i = 0; i < l->column_count; i++)
        if (strcmp(l->columns[i], "filler") == 0 ||
            (x->tool_count > 0 && strcmp(l->columns[i], "tools") == 0))
            WRONG("cases.file", "a column is called '%s', a name that is taken", l->columns[i]);
}

void experiment_check(struct load *l) {
    experiment_check_models(l);
    check_generation(l);
    experiment_check_rules(l);
    check_messages(l);
    check_chat(l);
    check_filler(l);
    experiment_check_shared(l);
    check_constraints(l);
    experiment_check_distractors(l);
    check_placements(l);
    check_lengths(l);
    check_arms(l);
    check_repeats(l);
    experiment_check_analysis(l);
}
