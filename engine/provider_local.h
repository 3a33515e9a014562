// The local engine as a provider: model file, tokenizer, chat template and session behind the seam.
#ifndef LACUNA_ENGINE_PROVIDER_LOCAL_H
#define LACUNA_ENGINE_PROVIDER_LOCAL_H

#include "engine/provider.h"

int provider_local_open(const struct provider_options *options, struct provider **out,
                        struct err *e);

#endif
