#define PCRE2_CODE_UNIT_WIDTH 8
#include "evals/pattern.h"

#include <assert.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, JIT_STACK_FIRST = 32 * 1024, JIT_STACK_MOST = 256 * 1024, EXCERPT = 40 };

struct pattern {
    struct pattern *next; // in its bucket
    struct pattern_set *set;
    pcre2_code *code;
    struct str text;
    uint32_t options;
    bool end_bound; // has an end anchor or a negative lookahead
};

struct pattern_set {
    struct arena *arena;
    pcre2_match_context *context;
    pcre2_match_data *data; // one pair: only the whole match is looked at
    pcre2_jit_stack *stack;
    struct pattern *buckets[BUCKETS];
};

struct pattern_set *pattern_set_open(void) {
    struct arena *a = arena_create("checks");
    struct pattern_set *s = arena_alloc(a, sizeof *s);
    s->arena = a;
    s->context = pcre2_match_context_create(NULL);
    s->data = pcre2_match_data_create(1, NULL);
    s->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, NULL);
    if (s->context == NULL || s->data == NULL) mem_exhausted("regular expressions", 0);
    pcre2_set_depth_limit(s->context, PATTERN_DEPTH_LIMIT);
    // No stack where PCRE2 was built without JIT: matching then is interpreted.
    if (s->stack != NULL) pcre2_jit_stack_assign(s->context, NULL, s->stack);
    return s;
}

void pattern_set_close(struct pattern_set *s) {
    if (s == NULL) return;
    for (int i = 0; i < BUCKETS; i++)
        for (struct pattern *p = s->buckets[i]; p != NULL; p = p->next) pcre2_code_free(p->code);
    pcre2_match_context_free(s->context);
    pcre2_match_data_free(s->data);
    pcre2_jit_stack_free(s->stack);
    arena_destroy(s->arena);
}

static uint32_t pattern_bucket(struct str text, uint32_t options) {
    uint32_t h = 2166136261u ^ options; // FNV-1a
    for (size_t i = 0; i < text.n; i++) h = (h ^ (unsigned char)text.p[i]) * 16777619u;
    return h % BUCKETS;
}

// Whether an end anchor or a negative lookahead stands outside character classes and \Q...\E.
static bool has_end_condition(struct str s) {
    bool in_class = false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : '\0';
        if (c == '\\' && next == 'Q') {
            size_t end = str_find(s, STR("\\E"), i + 2);
            if (end == STR_NONE) return false;
            i = end + 1;
        } else if (c == '\\') {
            if (!in_class && (next == 'z' || next == 'Z')) return true;
            i++;
        } else if (in_class) {
            in_class = c != ']';
        } else if (c == '[') {
            in_class = true;
            if (next == '^') i++;
            if (i + 1 < s.n && s.p[i + 1] == ']') i++; // a leading ']' is a member
        } else if (c == '$' || (c == '(' && str_starts(str_slice(s, i, s.n), STR("(?!")))) {
            return true;
        } else if (str_starts(str_slice(s, i, s.n), STR("(*nla:")) ||
                   str_starts(str_slice(s, i, s.n), STR("(*negative_lookahead:"))) {
            return true;
        }
    }
    return false;
}

static int pattern_cannot_compile(const char *where, struct str text, int code, size_t offset,
                                  struct err *e) {
    PCRE2_UCHAR reason[256];
    pcre2_get_error_message(code, reason, sizeof reason);
    if (offset > text.n) offset = text.n;
    size_t first = offset > EXCERPT ? offset - EXCERPT : 0;
    size_t last = text.n - offset > EXCERPT ? offset + EXCERPT : text.n;
    while (first > 0 && ((unsigned char)text.p[first] & 0xC0) == 0x80) first--;
    while (last < text.n && ((unsigned char)text.p[last] & 0xC0) == 0x80) last++;
    struct str before = str_slice(text, first, offset), behind = str_slice(text, offset, last);
    FAIL(e, ERR_CONFIG,
         "%s: the pattern cannot compile: %s, at offset %zu: %s" STR_FMT " <here> " STR_FMT "%s",
         where, (const char *)reason, offset, first > 0 ? "..." : "", STR_ARG(before),
         STR_ARG(behind), last < text.n ? "..." : "");
}

int pattern_compile(struct pattern_set *s, struct str text, struct pattern_flags flags,
                    const char *where, const struct pattern **out, struct err *e) {
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    if (flags.ignore_case) options |= PCRE2_CASELESS;
    if (flags.multiline) options |= PCRE2_MULTILINE;
    if (flags.dotall) options |= PCRE2_DOTALL;
    struct pattern **bucket = &s->buckets[pattern_bucket(text, options)];
    for (struct pattern *p = *bucket; p != NULL; p = p->next) {
        if (p->options == options && str_equal(p->text, text)) {
            *out = p;
            return 0;
        }
    }
    int code;
    size_t offset;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)text.p, text.n, options, &code, &offset, NULL);
    if (compiled == NULL) return pattern_cannot_compile(where, text, code, offset, e);
    // A failure leaves the pattern to the interpreter, which gives the same answers.
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    struct pattern *p = arena_alloc(s->arena, sizeof *p);
    *p = (struct pattern){
        *bucket, s, compiled, str_copy(s->arena, text), options, has_end_condition(text)};
    *bucket = p;
    *out = p;
    return 0;
}

static const char *error_name(struct pattern_set *s, int code) {
    switch (code) {
    case PCRE2_ERROR_MATCHLIMIT: return "match_limit";
    case PCRE2_ERROR_DEPTHLIMIT: return "depth_limit";
    case PCRE2_ERROR_HEAPLIMIT: return "heap_limit";
    case PCRE2_ERROR_JIT_STACKLIMIT: return "jit_stack";
    case PCRE2_ERROR_NOMEMORY: return "memory";
    case PCRE2_ERROR_RECURSELOOP: return "recursion_loop";
    default: return arena_printf(s->arena, "pcre2_%d", -code);
    }
}

static int pattern_match(const struct pattern *p, struct str subject, size_t from,
                         uint32_t options) {
    struct pattern_set *s = p->set;
    PCRE2_SPTR text = (PCRE2_SPTR)(subject.n > 0 ? subject.p : "");
    size_t blocks = subject.n / 4096 + 1, most = UINT32_MAX / PATTERN_MATCH_LIMIT;
    pcre2_set_match_limit(s->context,
                          PATTERN_MATCH_LIMIT * (uint32_t)(blocks < most ? blocks : most));
    int rc = pcre2_match(p->code, text, subject.n, from, options, s->data, s->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->code, text, subject.n, from, options | PCRE2_NO_JIT, s->data,
                         s->context);
    return rc;
}

enum pattern_result pattern_find(const struct pattern *p, struct str subject, size_t from,
                                 size_t match[2], const char **code) {
    assert(from <= subject.n);
    *code = NULL;
    int rc = pattern_match(p, subject, from, 0);
    if (rc == PCRE2_ERROR_NOMATCH) return PATTERN_ABSENT;
    if (rc < 0) {
        *code = error_name(p->set, rc);
        return PATTERN_ERROR;
    }
    const size_t *range = pcre2_get_ovector_pointer(p->set->data);
    match[0] = range[0];
    match[1] = range[1] > range[0] ? range[1] : range[0]; // \K may put the start behind the end
    return PATTERN_FOUND;
}

bool pattern_reaches_end(const struct pattern *p, struct str subject, size_t from) {
    // Hard partial matching stops as soon as the matcher wants to see past the end of the subject.
    return pattern_match(p, subject, from, PCRE2_PARTIAL_HARD) == PCRE2_ERROR_PARTIAL;
}

bool pattern_looks_at_end(const struct pattern *p, struct str subject) {
    return p->end_bound && pattern_reaches_end(p, subject, 0);
}
