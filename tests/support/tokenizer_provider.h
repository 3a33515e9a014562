// A provider for planning made of the golden vocabulary: a real tokenizer with one of its
// pre-tokenizer rules and a chat template, without a model.
#ifndef LACUNA_TESTS_SUPPORT_TOKENIZER_PROVIDER_H
#define LACUNA_TESTS_SUPPORT_TOKENIZER_PROVIDER_H

#include "engine/provider.h"

// `pre`: "smollm", "gpt-2", "llama-bpe", "qwen2"; `template`: "chatml", "llama3", "plain".
struct provider *tokenizer_provider_open(const char *pre, const char *template);
void tokenizer_provider_close(struct provider *p);
// Whether an id is a control token of the vocabulary.
bool tokenizer_provider_control(const struct provider *p, int32_t id);

#endif
