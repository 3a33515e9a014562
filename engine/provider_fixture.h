// The scripted fixture: a provider whose replies are rules in a file, for tests of everything above
// the engine. It completes out of order, errs, hangs and cuts on demand.
#ifndef LACUNA_ENGINE_PROVIDER_FIXTURE_H
#define LACUNA_ENGINE_PROVIDER_FIXTURE_H

#include "engine/provider.h"

int provider_fixture_open(const struct provider_options *options, struct provider **out,
                          struct err *e);

#endif
