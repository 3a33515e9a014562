#include "evals/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LOOP_REPEATS = 4, LOOP_BYTES = 48, LOOP_LOOKED_AT = 65536, REFUSAL_BYTES = 400 };

bool reply_finished(const char *finish) {
    return strcmp(finish, "stop") == 0 || strcmp(finish, "stop_string") == 0;
}

bool reply_blank(struct str text) {
    for (size_t at = 0; at < text.n;) {
        uint32_t point;
        at += utf8_decode(text, at, &point);
        bool space = point <= ' ' || point == 0x7F || point == 0x85 || point == 0xA0 ||
                     point == 0xAD || point == 0x1680 || (point >= 0x2000 && point <= 0x200F) ||
                     (point >= 0x2028 && point <= 0x202F) || point == 0x205F || point == 0x2060 ||
                     point == 0x3000 || point == 0xFEFF;
        if (!space) return false;
    }
    return true;
}

// Knuth, Morris and Pratt's failure function on the reversed text: for each length L of the tail,
// L - failure[L] is its smallest period.
bool reply_loops(struct str text) {
    text = str_trim(text);
    size_t n = text.n < LOOP_LOOKED_AT ? text.n : LOOP_LOOKED_AT;
    if (n < LOOP_BYTES) return false;
    const char *end = text.p + text.n - 1; // end[-i] is byte i from the back
    uint32_t *failure = malloc((n + 1) * sizeof *failure);
    if (failure == NULL) mem_exhausted("a reply", n * sizeof *failure);
    bool loops = false;
    failure[0] = failure[1] = 0;
    size_t k = 0;
    for (size_t i = 1; i < n && !loops; i++) {
        while (k > 0 && end[-(ptrdiff_t)i] != end[-(ptrdiff_t)k]) k = failure[k];
        if (end[-(ptrdiff_t)i] == end[-(ptrdiff_t)k]) k++;
        failure[i + 1] = (uint32_t)k;
        size_t tail = i + 1, period = tail - k;
        loops = tail >= LOOP_BYTES && tail >= LOOP_REPEATS * period && 2 * tail >= n;
    }
    free(failure);
    return loops;
}

// Phrases that open a refusal. Kept narrow: "I can't find the order number" is an answer.
static const char refusal[] =
    "\\A[\\s*_#>\"'`-]*(?:"
    // "I'm really sorry, but as an AI, ..."
    "(?:(?:I[’']?m|I am|we[’']?re|we are)?\\s*(?:really |very |so |truly )?"
    "(?:sorry|apologi[sz]e|apologies|unfortunately|afraid)?(?: to say)?[,.:;]?\\s*"
    "(?:but|however|that)?,?\\s*(?:as an AI[^.!?\\n]{0,60},)?\\s*)?"
    // "... I cannot ..."
    "(?:I|we)(?: can[’']?t| cannot| can not| won[’']?t| will not| must decline to"
    "| have to decline to| (?:am|are) (?:not able|unable) to|[’']m (?:not able|unable) to)"
    "(?: be able to)? "
    // "... help with that."
    "(?:(?:help|assist|comply|answer|respond|engage|do that|do this|fulfil+)\\b"
    "|(?:provide|share|complete|write|generate|create|give|support|discuss)[^.!?\\n]{0,40}"
    "\\b(?:that|this|such|request)\\b)"
    "|(?:es )?tut mir (?:sehr )?leid[^.!?\\n]{0,60}(?:kann ich|ich kann)[^.!?\\n]{0,40}nicht"
    "|(?:je suis )?désolée?[^.!?\\n]{0,40}je ne (?:peux|puis) pas"
    "|lo siento[^.!?\\n]{0,40}no puedo (?:ayudar|responder|hacer|cumplir)"
    "|(?:извините|простите|к сожалению)[^.!?\\n]{0,30}не могу (?:помочь|ответить|выполнить)"
    "|(?:很?抱歉|对不起)[，,]?\\s*我?(?:无法|不能)(?:提供|回答|协助|帮助|满足)"
    "|(?:申し訳|すみません)[^。\\n]{0,30}(?:できません|お答えできません))";

bool reply_refuses(struct pattern_set *patterns, struct str text) {
    const struct pattern *p;
    struct err e = {0};
    int failed = pattern_compile(patterns, str_from(refusal),
                                 (struct pattern_flags){.ignore_case = true}, "refusal", &p, &e);
    assert(!failed);
    (void)failed;
    size_t match[2];
    const char *code;
    struct str opening = str_slice(text, 0, text.n < REFUSAL_BYTES ? text.n : REFUSAL_BYTES);
    return pattern_find(p, opening, 0, match, &code) == PATTERN_FOUND;
}

bool reply_only_thought(const struct reply *r) {
    return reply_blank(str_slice(r->text, r->answer[0], r->answer[1])) &&
           !(reply_blank(r->text) && reply_blank(r->thought));
}

const char *reply_unscored(struct pattern_set *patterns, const struct reply *r) {
    struct str answer = str_slice(r->text, r->answer[0], r->answer[1]);
    if (!reply_finished(r->finish)) return "cut";
    if (reply_only_thought(r)) return "no_answer";
    if (reply_blank(answer)) return "empty";
    if (reply_loops(answer)) return "loop";
    if (reply_refuses(patterns, answer)) return "refusal";
    return NULL;
}
