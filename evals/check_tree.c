#include "evals/check_tree.h"

#include "evals/check_json.h"
#include "evals/check_tree_internal.h"

#include <assert.h>
#include <string.h>

enum { NUMBER_BYTES = 8 }; // a space, a whole group of three and what stands behind it

// ---- logic ----

static void widen(struct check_outcome *out, const struct check_outcome *part) {
    if (!part->has_range) return;
    if (!out->has_range || part->range[0] < out->range[0]) out->range[0] = part->range[0];
    if (!out->has_range || part->range[1] > out->range[1]) out->range[1] = part->range[1];
    out->has_range = true;
}

// `deciding`: what one part alone gives the whole: CHECK_FAILS for all, CHECK_HOLDS for any.
static void judge_parts(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, enum check_truth deciding,
                        struct check_outcome *out) {
    struct check_outcome decided = {.truth = deciding}, all = {.settled = true};
    int holds = 0, errors = 0, decisive = 0;
    const char *error = NULL;
    for (int i = 0; i < t->part_count; i++) {
        struct check_outcome part;
        tree_judge(ev, &t->parts[i], text, &part);
        holds += part.truth == CHECK_HOLDS;
        if (part.truth == CHECK_ERRED) {
            if (errors++ == 0) error = part.error;
            continue;
        }
        all.settled = all.settled && part.settled;
        if (part.truth == CHECK_HOLDS) widen(&all, &part);
        if (part.truth != deciding) continue;
        // Of alternatives the one that stands first; a settled one before others.
        bool first = decisive++ == 0 || (part.settled && !decided.settled) ||
                     (part.settled == decided.settled && part.has_range && decided.has_range &&
                      part.range[0] < decided.range[0]);
        if (first) decided = part;
    }
    *out = decisive > 0 ? decided : all;
    out->truth = decisive > 0              ? deciding
                 : errors > 0              ? CHECK_ERRED
                 : deciding == CHECK_FAILS ? CHECK_HOLDS
                                           : CHECK_FAILS;
    out->error = error;
    if (out->truth == CHECK_FAILS) out->has_range = false;
    tree_explain(ev, "%s: %d of %d hold%s", check_verbs[t->spec->verb], holds, t->part_count,
                 errors > 0 ? ", some could not be decided" : "");
}

static void judge_not(struct evaluation *ev, const struct check_tree *t,
                      const struct check_text *text, struct check_outcome *out) {
    struct ranges *right = ev->right;
    struct check_outcome part;
    ev->right = NULL;
    tree_judge(ev, t->parts, text, &part);
    ev->right = right;
    *out =
        (struct check_outcome){.truth = part.truth, .settled = part.settled, .error = part.error};
    if (part.truth != CHECK_ERRED)
        out->truth = part.truth == CHECK_HOLDS ? CHECK_FAILS : CHECK_HOLDS;
    tree_explain(ev, "not:");
}

// ---- what is found ----

void tree_found(struct evaluation *ev, const struct check_text *text, const size_t match[2],
                bool settled, struct check_outcome *out) {
    *out = (struct check_outcome){.truth = CHECK_HOLDS, .settled = settled, .has_range = true};
    check_text_range(text, match, out->range);
    if (ev->right != NULL) ranges_add(ev->right, out->range, ev->arena);
}

void tree_failed(const struct check_text *text, struct check_outcome *out) {
    *out = (struct check_outcome){.truth = CHECK_FAILS, .settled = !text->open};
}

void tree_erred(const char *error, struct check_outcome *out) {
    *out = (struct check_outcome){.truth = CHECK_ERRED, .error = error};
}

// Every match from byte `from` on is a right one; the first is the outcome's.
static void judge_matches(struct evaluation *ev, const struct check_tree *t,
                          struct check_text *text, size_t from, struct check_outcome *out,
                          size_t first[2]) {
    struct ranges found = {0};
    const char *error = NULL;
    bool settled = true;
    if (t->value != NULL) {
        const struct value_text *folded = check_text_folded(text, t->value_folds, ev->arena);
        search_value(t->value, folded, from, &found, ev->arena);
    } else {
        error = search_pattern(t->pattern, text->text, from, &found, ev->arena);
        settled = !text->open || !pattern_looks_at_end(t->pattern, text->text);
    }
    if (error != NULL) {
        tree_erred(error, out);
    } else if (found.n == 0) {
        tree_failed(text, out);
    } else {
        memcpy(first, found.p[0], sizeof found.p[0]);
        for (size_t i = found.n; i-- > 0;) tree_found(ev, text, found.p[i], settled, out);
    }
    tree_explain(ev, "%s %s", tree_words(ev, t), tree_place(ev, out));
}

static void judge_found(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, struct check_outcome *out) {
    struct check_text copy = *text;
    size_t first[2];
    judge_matches(ev, t, &copy, 0, out, first);
}

static void judge_number(struct evaluation *ev, const struct check_tree *t,
                         const struct check_text *text, struct check_outcome *out) {
    struct check_text copy = *text;
    struct ranges found = {0};
    numbers_find(check_text_folded(&copy, false, ev->arena), t->number, &found, ev->arena);
    tree_failed(text, out);
    for (size_t i = found.n; i-- > 0;) {
        // Digits near the end of a reply that was cut may be the beginning of another number.
        bool settled = !text->open || found.p[i][1] + NUMBER_BYTES <= text->text.n;
        tree_found(ev, text, found.p[i], settled, out);
    }
    tree_explain(ev, "number " STR_FMT " %s", STR_ARG(t->value_text), tree_place(ev, out));
}

// One item of an order from byte `from` on; *match in the text's own bytes.
static void judge_item(struct evaluation *ev, const struct check_tree *t, struct check_text *text,
                       size_t from, struct check_outcome *out, size_t match[2]) {
    if (t->spec->verb != CHECK_ANY) {
        int step = tree_step(ev);
        judge_matches(ev, t, text, from, out, match);
        tree_step_done(ev, step, out);
        return;
    }
    tree_failed(text, out);
    for (int i = 0; i < t->part_count; i++) {
        struct check_outcome part;
        size_t at[2] = {0, 0};
        judge_item(ev, &t->parts[i], text, from, &part, at);
        bool better = part.truth == CHECK_HOLDS && (out->truth != CHECK_HOLDS || at[0] < match[0]);
        // An alternative that erred might have stood before the one that was found.
        if (part.truth == CHECK_ERRED || (out->truth != CHECK_ERRED && better)) {
            *out = part;
            memcpy(match, at, sizeof at);
        }
        if (out->truth == CHECK_ERRED) return;
    }
}

static void judge_order(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, struct check_outcome *out) {
    struct check_text copy = *text;
    struct check_outcome whole = {.truth = CHECK_HOLDS, .settled = true};
    size_t from = 0;
    for (int i = 0; i < t->part_count; i++) {
        struct check_outcome part;
        size_t match[2] = {0, 0};
        judge_item(ev, &t->parts[i], &copy, from, &part, match);
        if (part.truth != CHECK_HOLDS) {
            *out = part;
            tree_explain(ev, "order: item %d is not found behind the one before", i + 1);
            return;
        }
        whole.settled = whole.settled && part.settled;
        widen(&whole, &part);
        from = match[1];
    }
    *out = whole;
    tree_explain(ev, "order: all %d items, one behind the other", t->part_count);
}

// ---- counts ----

// How a number stands to its bounds. `sure` of it stay whatever follows in an open text.
static void judge_bounds(const struct check_bounds *b, int64_t count, int64_t sure, bool open,
                         struct check_outcome *out) {
    bool enough = !b->has_least || count >= b->least, few = !b->has_most || count <= b->most;
    *out = (struct check_outcome){.truth = enough && few ? CHECK_HOLDS : CHECK_FAILS};
    bool stays = (!b->has_least || sure >= b->least) && !b->has_most;
    out->settled = !open || stays || (b->has_most && sure > b->most);
}

static void judge_count_of(struct evaluation *ev, const struct check_tree *t,
                           const struct check_text *text, struct check_outcome *out) {
    const struct check_bounds *b = &t->spec->bounds;
    int64_t holds = 0, sure = 0, possible = t->part_count;
    const char *error = NULL;
    struct check_outcome spans = {0};
    for (int i = 0; i < t->part_count; i++) {
        struct check_outcome part;
        tree_judge(ev, &t->parts[i], text, &part);
        if (part.truth == CHECK_ERRED) {
            if (error == NULL) error = part.error;
            continue;
        }
        holds += part.truth == CHECK_HOLDS;
        sure += part.truth == CHECK_HOLDS && part.settled;
        possible -= part.truth == CHECK_FAILS && part.settled;
        if (part.truth == CHECK_HOLDS) widen(&spans, &part);
    }
    judge_bounds(b, holds, holds, false, out);
    // Settled where every number from `sure` to `possible` gives the same.
    bool always = (!b->has_least || sure >= b->least) && (!b->has_most || possible <= b->most);
    bool never = (b->has_least && possible < b->least) || (b->has_most && sure > b->most);
    out->settled = always || never;
    if (error != NULL && !out->settled) tree_erred(error, out);
    if (out->truth == CHECK_HOLDS) widen(out, &spans);
    tree_explain(ev, "count: %lld of %d checks hold, wanted %s", (long long)holds, t->part_count,
                 tree_bounds(ev, b));
}

// How many of the matches stay whatever follows: those before the first whose search saw the end.
static int64_t sure_matches(const struct check_tree *t, struct str text,
                            const struct ranges *found) {
    size_t sure = 0, from = 0;
    if (t->value != NULL) return (int64_t)found->n;
    while (sure < found->n && !pattern_reaches_end(t->pattern, text, from))
        from = found->p[sure++][1];
    return (int64_t)sure;
}

static void judge_count(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, struct check_outcome *out) {
    struct check_text copy = *text;
    struct ranges found = {0};
    const char *error = NULL;
    if (t->value != NULL)
        search_value(t->value, check_text_folded(&copy, t->value_folds, ev->arena), 0, &found,
                     ev->arena);
    else
        error = search_pattern(t->pattern, text->text, 0, &found, ev->arena);
    if (error != NULL) {
        tree_erred(error, out);
    } else {
        int64_t count = (int64_t)found.n;
        int64_t sure = text->open ? sure_matches(t, text->text, &found) : count;
        judge_bounds(&t->spec->bounds, count, sure, text->open, out);
        struct check_outcome part = {.truth = CHECK_HOLDS, .has_range = true};
        for (size_t i = 0; i < found.n && out->truth == CHECK_HOLDS; i++) {
            check_text_range(text, found.p[i], part.range);
            if (ev->right != NULL) ranges_add(ev->right, part.range, ev->arena);
            widen(out, &part);
        }
    }
    tree_explain(ev, "count: %zu of %s, wanted %s", found.n, tree_words(ev, t),
                 tree_bounds(ev, &t->spec->bounds));
}

static enum check_unit unit_of(enum check_verb verb) {
    switch (verb) {
    case CHECK_WORDS: return UNIT_WORD;
    case CHECK_SENTENCES: return UNIT_SENTENCE;
    case CHECK_LETTERS: return UNIT_LETTER;
    case CHECK_LINE:
    case CHECK_LINES: return UNIT_LINE;
    default: return UNIT_PARAGRAPH;
    }
}

// Units that no further text changes: each that another one follows, for one that ends with its
// line the line break too. (What follows may turn out to be no unit: "1" becomes a list's "1. ".)
static int64_t sure_units(enum check_unit unit, struct str text, const struct ranges *units) {
    if (units->n == 0) return 0;
    const size_t end = units->p[units->n - 1][1];
    const bool ended = unit != UNIT_PARAGRAPH && str_find(text, STR("\n"), end) != STR_NONE;
    return (int64_t)units->n - !ended;
}

static void judge_units(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, struct check_outcome *out) {
    struct ranges units = {0};
    const enum check_unit unit = unit_of(t->spec->verb);
    const char *error =
        check_units_find(t->tools->units, unit, t->separator, text->text, &units, ev->arena);
    if (error != NULL)
        tree_erred(error, out);
    else
        judge_bounds(&t->spec->bounds, (int64_t)units.n, sure_units(unit, text->text, &units),
                     text->open, out);
    tree_explain(ev, "%s: %zu, wanted %s", check_verbs[t->spec->verb], units.n,
                 tree_bounds(ev, &t->spec->bounds));
}

// One line or paragraph, alone. From the end backwards nothing is settled before the end is there.
static void judge_piece(struct evaluation *ev, const struct check_tree *t,
                        const struct check_text *text, struct check_outcome *out) {
    const char *verb = check_verbs[t->spec->verb];
    struct ranges units = {0};
    const char *error = check_units_find(t->tools->units, unit_of(t->spec->verb), t->separator,
                                         text->text, &units, ev->arena);
    int64_t number = t->spec->number, count = (int64_t)units.n;
    int64_t index = number > 0 ? number - 1 : count + number;
    if (error != NULL) {
        tree_erred(error, out);
    } else if (index < 0 || index >= count) {
        tree_failed(text, out);
        error = "there is none";
    } else {
        const size_t *range = units.p[index];
        struct check_text piece = check_text_part(text, range[0], range[1]);
        piece.open = text->open && index == count - 1;
        tree_judge(ev, t->parts, &piece, out);
        if (number < 0 && text->open) out->settled = false;
        if (out->truth == CHECK_HOLDS && !out->has_range) {
            out->has_range = true;
            check_text_range(text, range, out->range);
        }
    }
    tree_explain(ev, "%s %lld of %lld%s%s", verb, (long long)number, (long long)count,
                 error != NULL ? ": " : "", error != NULL ? error : "");
}

// ---- the tree ----

static void judge_verb(struct evaluation *ev, const struct check_tree *t,
                       const struct check_text *text, struct check_outcome *out) {
    switch (t->spec->verb) {
    case CHECK_ALL: judge_parts(ev, t, text, CHECK_FAILS, out); break;
    case CHECK_ANY: judge_parts(ev, t, text, CHECK_HOLDS, out); break;
    case CHECK_NOT: judge_not(ev, t, text, out); break;
    case CHECK_ORDER: judge_order(ev, t, text, out); break;
    case CHECK_PATTERN:
    case CHECK_VALUE: judge_found(ev, t, text, out); break;
    case CHECK_NUMBER: judge_number(ev, t, text, out); break;
    case CHECK_COUNT:
        if (t->part_count > 0)
            judge_count_of(ev, t, text, out);
        else
            judge_count(ev, t, text, out);
        break;
    case CHECK_LINE:
    case CHECK_PARAGRAPH: judge_piece(ev, t, text, out); break;
    case CHECK_JSON: tree_judge_json(ev, t, text, out); break;
    case CHECK_TOOL_CALL: tree_judge_tool_call(ev, t, text, out); break;
    default: judge_units(ev, t, text, out); break;
    }
}

void tree_judge(struct evaluation *ev, const struct check_tree *t, const struct check_text *text,
                struct check_outcome *out) {
    int step = tree_step(ev);
    unsigned more = t->spec->rewriting & ~text->rewritten;
    struct check_text rewritten = *text;
    if (more != 0) rewritten = check_text_rewrite(text, more, ev->arena);
    judge_verb(ev, t, &rewritten, out);
    tree_step_done(ev, step, out);
}

void check_tree_judge(const struct check_tree *t, struct str answer, bool finished, bool masked,
                      struct arena *a, struct ranges *right, struct check_trace *trace,
                      struct check_outcome *out) {
    struct evaluation ev = {.arena = a, .right = right, .trace = trace, .answer = answer};
    struct check_text text = check_text_whole(answer, !finished, masked);
    tree_judge(&ev, t, &text, out);
}

// ---- the filler ----

// A piece of the text holds any number of the matches, so only the lower bound counts.
static void filler_count(struct evaluation *ev, const struct check_tree *t,
                         const struct check_text *text, struct check_outcome *out) {
    struct check_spec spec = *t->spec;
    struct check_tree tree = *t;
    spec.bounds.has_most = false;
    tree.spec = &spec;
    tree_judge(ev, &tree, text, out);
}

static void filler_judge(struct evaluation *ev, const struct check_tree *t,
                         const struct check_text *text, bool *says, struct check_outcome *out);

static void filler_parts(struct evaluation *ev, const struct check_tree *t,
                         const struct check_text *text, bool *says, struct check_outcome *out) {
    enum check_truth deciding = t->spec->verb == CHECK_ALL ? CHECK_FAILS : CHECK_HOLDS;
    bool shape = false;
    for (int i = 0; i < t->part_count; i++) {
        struct check_outcome part;
        bool part_says;
        filler_judge(ev, &t->parts[i], text, &part_says, &part);
        shape = shape || !part_says;
        if (!part_says) continue;
        if (!*says) *out = part;
        *says = true;
        if (part.truth != CHECK_ERRED && part.truth != deciding) continue;
        *out = part;
        return;
    }
    // An alternative on shape alone asks for nothing that is said.
    if (t->spec->verb == CHECK_ANY && shape) *says = false;
}

// *says: something that is said was asked for. Conditions on shape alone leave it false and hold.
static void filler_judge(struct evaluation *ev, const struct check_tree *t,
                         const struct check_text *text, bool *says, struct check_outcome *out) {
    *out = (struct check_outcome){.truth = CHECK_HOLDS, .settled = true};
    *says = false;
    switch (t->spec->verb) {
    case CHECK_ALL:
    case CHECK_ANY: filler_parts(ev, t, text, says, out); return;
    case CHECK_LINE:
    case CHECK_PARAGRAPH: filler_judge(ev, t->parts, text, says, out); return;
    case CHECK_COUNT:
        if (t->part_count > 0 || !t->spec->bounds.has_least || t->spec->bounds.least == 0) return;
        filler_count(ev, t, text, out);
        *says = true;
        return;
    case CHECK_PATTERN:
    case CHECK_VALUE:
    case CHECK_NUMBER:
    case CHECK_ORDER:
    case CHECK_JSON:
    case CHECK_TOOL_CALL: break;
    default: return;
    }
    *says = true;
    tree_judge(ev, t, text, out);
}

void check_tree_filler(const struct check_tree *t, struct str text, struct arena *a,
                       struct check_outcome *out) {
    struct evaluation ev = {.arena = a, .answer = text};
    struct check_text whole = check_text_whole(text, false, false);
    bool says;
    filler_judge(&ev, t, &whole, &says, out);
    if (!says) *out = (struct check_outcome){.truth = CHECK_FAILS, .settled = true};
}
