#include "evals/explain.h"

#include "evals/reply.h"

#include <string.h>

enum { SHOWN_BYTES = 80 };

static const char *quoted(struct str text, struct arena *a) {
    struct str head = str_head(text, SHOWN_BYTES);
    return arena_printf(a, "\"" STR_FMT "%s\"", STR_ARG(head), head.n < text.n ? "..." : "");
}

static const char *matched(const struct record_verdict *v, const struct reply *reply,
                           struct arena *a) {
    return arena_printf(a, "`%s` is %s at bytes %zu to %zu", v->by,
                        quoted(str_slice(reply->text, v->match[0], v->match[1]), a), v->match[0],
                        v->match[1]);
}

static const char *unscored(const struct record_verdict *v, const struct reply *reply) {
    if (strcmp(v->reason, "cut") == 0 && reply_only_thought(reply))
        return "a token limit ended the reply while the model was thinking, before any answer; it "
               "counts as not met";
    if (strcmp(v->reason, "cut") == 0)
        return "the reply was cut by the token limit, and what is there does not meet it; it "
               "counts "
               "as not met";
    if (strcmp(v->reason, "no_answer") == 0)
        return "there is no answer outside the reasoning; it counts as not met";
    if (strcmp(v->reason, "empty") == 0) return "the reply is empty; it counts as not met";
    if (strcmp(v->reason, "loop") == 0)
        return "the reply repeats itself to its end without meeting it; it counts as not met";
    if (strcmp(v->reason, "refusal") == 0)
        return "the reply declines to answer; it counts as not met";
    if (strncmp(v->reason, "check:json_", 11) == 0)
        return "the JSON in the reply cannot be read (it nests too deep, holds a number that is "
               "too "
               "large, or a name with a NUL character), so what it holds is not known";
    return "a pattern could not be decided within its limits; simplify it (possessive quantifiers, "
           "atomic groups)";
}

static const char *omitted(const struct experiment_constraint *c) {
    switch (c->kind) {
    case CONSTRAINT_STATE:
        if (c->check != NULL) return "`check` does not hold for the reply";
        return c->value.p != NULL && c->met.p != NULL ? "neither `value` nor `met` is in the reply"
               : c->value.p != NULL                   ? "`value` is not in the reply"
                                                      : "`met` does not match the reply";
    case CONSTRAINT_FORMAT:
        if (c->check != NULL)
            return "`check` does not hold for the reply (the rule's own text does not count)";
        return "the reply does not have the shape (the rule's own text does not count)";
    case CONSTRAINT_FORBID:
        return "nothing forbidden is in the reply, but `answered` does not match: the task was not "
               "attempted";
    }
    return "";
}

const char *explain_verdict(const struct experiment_constraint *c, const struct record_verdict *v,
                            const struct reply *reply, struct arena *a) {
    switch (v->verdict) {
    case VERDICT_MET:
        if (c->kind == CONSTRAINT_FORBID)
            return arena_printf(a, "the reply ended by itself, nothing forbidden is in it, and %s",
                                matched(v, reply, a));
        return matched(v, reply, a);
    case VERDICT_VIOLATED:
        return arena_printf(a, "%s%s", matched(v, reply, a),
                            c->kind == CONSTRAINT_STATE ? ", looked for where no right value stands"
                                                        : "");
    case VERDICT_OMITTED: return omitted(c);
    case VERDICT_UNSCORED: return unscored(v, reply);
    }
    return "";
}
