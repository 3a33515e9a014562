// Chat templates. A template is known by the identity (SHA-256) of its text in the model file, or
// by name from the experiment; templates are not interpreted. The names:
//   chatml    turns between <|im_start|> and <|im_end|>
//   smollm2   chatml with SmolLM2's own system message when the first message is not a system one
//   qwen2     likewise with Qwen2's
//   qwen2.5   Qwen2.5's, with a place for tools
//   llama3    Llama 3's headers; the start token first; white space around each text is dropped
//   llama3.1  Llama 3.1's (3.3's too), with a place for tools; it writes a fixed date
//   plain     no roles and no control tokens: the texts joined by blank lines
#ifndef LACUNA_ENGINE_CHAT_H
#define LACUNA_ENGINE_CHAT_H

#include "engine/provider.h"
#include "engine/tokenizer.h"

struct chat_template; // static

// `name` NULL: by the identity of tokenizer.chat_template; a file without one, or with an unknown
// one, is an error that names the experiment's key `models[].template` and what it may be.
int chat_find(const struct gguf *g, const char *name, const struct chat_template **out,
              struct err *e);
const char *chat_name(const struct chat_template *t);

// Pieces of the rendered conversation with the header of the assistant's turn at its end. What the
// template itself writes is control, each message's text is not. A start token is written only when
// the file asks for it and the template has not. Tools and tool calls are refused by a template
// that has no place for them, and by Llama 3.1's what it would drop. A known template's defaults
// (SmolLM2's own system message when there is none) are rendered as the reference does.
int chat_render(const struct chat_template *t, const struct tokenizer *tokenizer,
                const struct provider_message *messages, size_t count, struct arena *a,
                struct provider_piece **pieces, size_t *piece_count, struct err *e);

// Ids of pieces: between control tokens neighbouring text is tokenized as one run; control
// spellings count only inside control pieces.
int chat_tokenize(const struct tokenizer *tokenizer, const struct provider_piece *pieces,
                  size_t count, struct token_list *out, struct err *e);

#endif
