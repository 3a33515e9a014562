// How a composite check came to its outcome, line by line.
#include "evals/check_tree_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN_BYTES = 60 };

int tree_step(struct evaluation *ev) {
    struct check_trace *t = ev->trace;
    if (t == NULL) return -1;
    t->steps = arena_more(ev->arena, t->steps, (size_t)t->count, sizeof *t->steps);
    t->steps[t->count] = (struct check_step){.depth = ev->depth++};
    return t->count++;
}

void tree_step_done(struct evaluation *ev, int step, const struct check_outcome *out) {
    if (step < 0) return;
    struct check_step *s = &ev->trace->steps[step];
    s->truth = out->truth;
    s->settled = out->settled;
    s->text = ev->said;
    if (out->truth == CHECK_ERRED)
        s->text = arena_printf(ev->arena, "%s (%s)", s->text, out->error);
    ev->depth--;
}

void tree_explain(struct evaluation *ev, const char *format, ...) {
    if (ev->trace == NULL) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ev->said = arena_strdup(ev->arena, line);
}

static const char *quoted(struct evaluation *ev, struct str text, char mark) {
    struct str head = str_head(text, SHOWN_BYTES);
    return arena_printf(ev->arena, "%c" STR_FMT "%s%c", mark, STR_ARG(head),
                        head.n < text.n ? "..." : "", mark);
}

const char *tree_words(struct evaluation *ev, const struct check_tree *t) {
    if (ev->trace == NULL) return "";
    if (t->value != NULL)
        return arena_printf(ev->arena, "value %s", quoted(ev, t->value_text, '"'));
    return arena_printf(ev->arena, "pattern %s", quoted(ev, t->spec->pattern, '`'));
}

const char *tree_place(struct evaluation *ev, const struct check_outcome *out) {
    if (ev->trace == NULL) return "";
    if (out->truth != CHECK_HOLDS)
        return out->truth == CHECK_ERRED ? "could not be decided" : "is not there";
    struct str found = str_slice(ev->answer, out->range[0], out->range[1]);
    return arena_printf(ev->arena, "is %s at bytes %zu to %zu", quoted(ev, found, '"'),
                        ev->trace->begin + out->range[0], ev->trace->begin + out->range[1]);
}

const char *tree_bounds(struct evaluation *ev, const struct check_bounds *b) {
    if (ev->trace == NULL) return "";
    long long least = (long long)b->least, most = (long long)b->most;
    if (!b->has_most) return arena_printf(ev->arena, "at least %lld", least);
    if (!b->has_least) return arena_printf(ev->arena, "at most %lld", most);
    if (least == most) return arena_printf(ev->arena, "exactly %lld", least);
    return arena_printf(ev->arena, "%lld to %lld", least, most);
}
