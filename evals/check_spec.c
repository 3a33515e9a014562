#include "evals/check_spec.h"

#include <stddef.h>

const char *const check_verbs[] = {"all",   "any",       "not",        "order", "pattern",
                                   "value", "number",    "count",      "line",  "paragraph",
                                   "words", "sentences", "paragraphs", "lines", "letters",
                                   "json",  "tool_call", NULL};
const char *const check_rewritings[] = {"strip_markdown", "nfkc", "fold_case", "fold_space", NULL};
const char *const check_types[] = {"object",  "array",   "string", "number",
                                   "integer", "boolean", "null",   NULL};

typedef int visitor(void *context, const char *where, struct str text, bool pattern, struct err *e);

static int visit_given(visitor *visit, void *context, const char *where, struct str text,
                       bool pattern, struct err *e) {
    return text.p == NULL ? 0 : visit(context, where, text, pattern, e);
}

int check_spec_each(const struct check_spec *s, visitor *visit, void *context, struct err *e) {
    if (s == NULL) return 0;
    TRY(visit_given(visit, context, s->where, s->pattern, true, e));
    TRY(visit_given(visit, context, s->where, s->value, false, e));
    TRY(visit_given(visit, context, s->where, s->separator, true, e));
    TRY(visit_given(visit, context, s->where, s->name, false, e));
    TRY(visit_given(visit, context, s->where, s->equals, false, e));
    for (int i = 0; i < s->pointer_count; i++) {
        const struct check_pointer *p = &s->pointers[i];
        TRY(visit_given(visit, context, s->where, p->pointer, false, e));
        TRY(visit_given(visit, context, s->where, p->equals, false, e));
        TRY(visit_given(visit, context, s->where, p->pattern, true, e));
    }
    for (int i = 0; i < s->part_count; i++) TRY(check_spec_each(&s->parts[i], visit, context, e));
    return 0;
}
