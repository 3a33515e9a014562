// A provider without a model, for tests of prompts and plans: a word tokenizer with exact ids that
// keeps no state (an id is a hash of its bytes), split like GPT-2's: " word" is one token, long
// words and text outside ASCII several, and tokens may end inside a code point.
#ifndef LACUNA_TESTS_SUPPORT_FAKE_PROVIDER_H
#define LACUNA_TESTS_SUPPORT_FAKE_PROVIDER_H

#include "engine/provider.h"

// Ids of the control tokens.
enum { FAKE_TURN_BEGIN = 1, FAKE_TURN_END = 2, FAKE_START = 3, FAKE_END = 4 };

struct fake_options {
    bool start;        // the template begins with <s>
    bool marks_breaks; // line breaks behind punctuation belong to its token, as in Llama 3
    bool trims;        // the template trims white space at both ends of each message
    bool shouts;       // a broken template: it writes texts in capitals
    bool leaks;        // a broken tokenizer: with a template around, texts spell control tokens too
    bool loses;        // a broken tokenizer: ids do not give the text back
    bool estimates;    // no exact ids: a count of (bytes + 3) / 4
    uint32_t context_tokens;
    size_t token_bytes; // most bytes of a token; 0: 7
};

struct provider *fake_provider_open(const struct fake_options *options);
void fake_provider_close(struct provider *p);

#endif
