#include "engine/pretokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

// The inside of character classes. White space is Unicode's White_Space property.
#define SPACE                                                                                      \
    "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}"       \
    "\\x{3000}"
// Letters and numbers, with those that Unicode 15 to 16 added to PCRE2 10.42's tables.
#define LETTER                                                                                     \
    "\\p{L}\\x{1C89}-\\x{1C8A}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{105C0}-\\x{105F3}"         \
    "\\x{10D4A}-\\x{10D65}\\x{10D6F}-\\x{10D85}\\x{10EC2}-\\x{10EC4}\\x{1123F}-\\x{11240}"         \
    "\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}\\x{113B7}\\x{113D1}"           \
    "\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}\\x{11F12}-\\x{11F33}"          \
    "\\x{1342F}\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}\\x{16100}-\\x{1611D}"                    \
    "\\x{16D40}-\\x{16D6C}\\x{18CFF}\\x{1B132}\\x{1B155}\\x{1DF25}-\\x{1DF2A}"                     \
    "\\x{1E030}-\\x{1E06D}\\x{1E4D0}-\\x{1E4EB}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}\\x{2B739}"          \
    "\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}"
#define NUMBER                                                                                     \
    "\\p{N}\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}"   \
    "\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}"         \
    "\\x{1E4F0}-\\x{1E4F9}\\x{1E5F1}-\\x{1E5FA}"
// The single-digit step of smollm also knows Unicode 17.
#define DIGIT NUMBER "\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}"

#define OR "|"
#define ENDING "'(?:[stmd]|re|ve|ll)"
#define ENDING_ANY_CASE "(?i:'(?:[stmd]|re|ve|ll))"
#define WORD " ?[" LETTER "]+"
#define WORD_LED "[^\\r\\n" LETTER NUMBER "]?[" LETTER "]+"
#define OTHER " ?[^" SPACE LETTER NUMBER "]+"
#define LINE_ENDS "[" SPACE "]*[\\r\\n]+"
// A run of white space leaves its last character to the piece that follows.
#define SPACES "[" SPACE "]+(?![^" SPACE "])" OR "[" SPACE "]+"

struct rule {
    const char *name;
    const char *pattern;
    bool keeps_whole_tokens;
    bool adds_bos;
};

#define GPT2_PATTERN ENDING OR WORD OR " ?[" NUMBER "]+" OR OTHER OR SPACES

static const struct rule rules[] = {
    // Every digit is a piece, and what stands between digits is cut as a text of its own: hence
    // white space before a digit counts as white space at the end.
    {"smollm",
     "[" DIGIT "]" OR ENDING OR WORD OR " ?[^" SPACE LETTER DIGIT "]+" OR "[" SPACE
     "]+(?![^" SPACE DIGIT "])" OR "[" SPACE "]+",
     false, false},
    {"llama-bpe",
     ENDING_ANY_CASE OR WORD_LED OR "[" NUMBER "]{1,3}" OR OTHER "[\\r\\n]*" OR LINE_ENDS OR SPACES,
     true, true},
    {"qwen2",
     ENDING_ANY_CASE OR WORD_LED OR "[" NUMBER "]" OR OTHER "[\\r\\n]*" OR LINE_ENDS OR SPACES,
     false, false},
    {"gpt-2", GPT2_PATTERN, false, false},
    {"default", GPT2_PATTERN, false, false},
};
#define RULE_COUNT (sizeof rules / sizeof rules[0])

struct pretokenizer {
    const struct rule *rule;
    pcre2_code *code;
};

struct pretokenizer_scan {
    const struct pretokenizer *owner;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

const char *pretokenizer_known(void) {
    return "smollm, llama-bpe, qwen2, gpt-2, default";
}

static const struct rule *rule_find(struct str name) {
    for (size_t i = 0; i < RULE_COUNT; i++) {
        if (str_equal_c(name, rules[i].name)) return &rules[i];
    }
    return NULL;
}

int pretokenizer_open(struct str name, struct pretokenizer **out, struct err *e) {
    const struct rule *rule = rule_find(name);
    if (rule == NULL) {
        int shown = name.n > 80 ? 80 : (int)name.n;
        FAIL(e, ERR_MODEL,
             "the pre-tokenizer '%.*s' is not supported (known: %s); when one of these is known to "
             "be "
             "right for the model, say so in the experiment with models[].pre_tokenizer",
             shown, name.p, pretokenizer_known());
    }
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)rule->pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_ANCHORED | PCRE2_NO_START_OPTIMIZE | PCRE2_NO_AUTO_CAPTURE,
                      &code, &offset, NULL);
    if (compiled == NULL) {
        PCRE2_UCHAR why[256];
        pcre2_get_error_message(code, why, sizeof why);
        FAIL(e, ERR_MODEL,
             "the pattern of pre-tokenizer '%s' does not compile at %zu: %s; this PCRE2 lacks UTF "
             "support",
             rule->name, (size_t)offset, (const char *)why);
    }
    // Without JIT (not built in, or no executable memory) the same pieces come, more slowly.
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    struct pretokenizer *p = malloc(sizeof *p);
    if (p == NULL) mem_exhausted("a pre-tokenizer", sizeof *p);
    *p = (struct pretokenizer){rule, compiled};
    *out = p;
    return 0;
}

void pretokenizer_close(struct pretokenizer *p) {
    if (p == NULL) return;
    pcre2_code_free(p->code);
    free(p);
}

const char *pretokenizer_name(const struct pretokenizer *p) {
    return p->rule->name;
}

bool pretokenizer_keeps_whole_tokens(const struct pretokenizer *p) {
    return p->rule->keeps_whole_tokens;
}

bool pretokenizer_adds_bos(const struct pretokenizer *p) {
    return p->rule->adds_bos;
}

struct pretokenizer_scan *pretokenizer_scan_open(const struct pretokenizer *p) {
    struct pretokenizer_scan *s = malloc(sizeof *s);
    if (s == NULL) mem_exhausted("a pre-tokenizer's scan", sizeof *s);
    *s = (struct pretokenizer_scan){p, pcre2_match_data_create(1, NULL),
                                    pcre2_match_context_create(NULL)};
    if (s->data == NULL || s->context == NULL) mem_exhausted("a pre-tokenizer's scan", 256);
    // The patterns are ours and take linear time; a limit could only turn a long run into an error.
    pcre2_set_match_limit(s->context, UINT32_MAX);
    return s;
}

void pretokenizer_scan_close(struct pretokenizer_scan *s) {
    if (s == NULL) return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->context);
    free(s);
}

int pretokenizer_next(struct pretokenizer_scan *s, struct str text, size_t at, size_t *end,
                      struct err *e) {
    assert(at < text.n);
    const pcre2_code *code = s->owner->code;
    PCRE2_SPTR subject = (PCRE2_SPTR)text.p;
    int rc = pcre2_match(code, subject, text.n, at, PCRE2_NO_UTF_CHECK, s->data, s->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(code, subject, text.n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->data,
                         s->context);
    }
    if (rc < 0) {
        PCRE2_UCHAR why[256];
        pcre2_get_error_message(rc, why, sizeof why);
        FAIL(e, ERR_INPUT, "pre-tokenizer '%s' stopped at byte %zu of %zu: %s (PCRE2 error %d)",
             s->owner->rule->name, at, text.n, (const char *)why, rc);
    }
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->data);
    // Every code point is in some alternative, so a piece is never empty and starts where asked.
    assert(span[0] == at && span[1] > at && span[1] <= text.n);
    *end = span[1];
    return 0;
}
