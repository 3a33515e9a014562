// The rules file of the scripted fixture (format: engine/provider_fixture.h).
#ifndef LACUNA_ENGINE_PROVIDER_FIXTURE_RULES_H
#define LACUNA_ENGINE_PROVIDER_FIXTURE_RULES_H

#include "engine/provider.h"
#include "engine/provider_copy.h"

#define FIXTURE_IN_FLIGHT_MOST 1024

struct fixture_rule {
    const char *key, *prompt; // conditions; NULL: any
    const char *while_file;   // resolved path, or NULL
    struct str *replies;
    int reply_count;
    struct copy_markers copy;
    enum provider_finish finish;
    const char *error; // NULL: none
    int hang_ms, delay_ms;
    bool hangs;
};
struct fixture_rules {
    char sha256[HASH_HEX_SIZE];
    bool exact_ids, shuffled;
    uint32_t context_tokens;
    int in_flight;
    uint64_t seed;
    struct fixture_rule *rules;
    int rule_count;
};
int fixture_rules_read(const char *path, struct arena *a, struct fixture_rules *out, struct err *e);
// The rule that answers, or NULL.
const struct fixture_rule *fixture_rules_find(const struct fixture_rules *rules, const char *key,
                                              struct str prompt);
// The reply's bytes by the rule, before any cut.
struct str fixture_rule_reply(const struct fixture_rule *rule, struct str prompt,
                              const struct rng *sampling, struct arena *a);

#endif
