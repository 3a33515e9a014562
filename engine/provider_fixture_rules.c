#include "engine/provider_fixture_rules.h"

#include "engine/base/file.h"
#include "engine/provider_file.h"

#include <string.h>

// ---- reading -----------------------------------------------------------------------------------

static int read_replies(const json_t *o, const char *where, struct arena *a,
                        struct fixture_rule *out, struct err *e) {
    TRY(provider_file_texts(o, "reply", where, a, &out->replies, &out->reply_count, e));
    if (json_object_get(o, "reply_base64") == NULL) return 0;
    if (out->reply_count > 0)
        FAIL(e, ERR_CONFIG, "%s: has both \"reply\" and \"reply_base64\"", where);
    out->replies = arena_alloc(a, sizeof *out->replies);
    out->reply_count = 1;
    return json_get_bytes(o, "reply", where, a, out->replies, e);
}

static int read_rule(const json_t *o, const char *where, const char *folder, struct arena *a,
                     struct fixture_rule *out, struct err *e) {
    static const char *const known[] = {"key",        "prompt",  "while_file",   "reply",
                                        "copy_after", "error",   "reply_base64", "finish",
                                        "hang_ms",    "delay_ms"};
    TRY(JSON_ONLY_KEYS(o, where, known, e));
    const char *finish;
    struct str *markers;
    int64_t hang_ms, delay_ms;
    TRY(provider_file_text(o, "key", where, a, &out->key, e));
    TRY(provider_file_text(o, "prompt", where, a, &out->prompt, e));
    TRY(provider_file_text(o, "while_file", where, a, &out->while_file, e));
    if (out->while_file != NULL) out->while_file = path_resolve(a, folder, out->while_file);
    TRY(provider_file_text(o, "error", where, a, &out->error, e));
    TRY(read_replies(o, where, a, out, e));
    TRY(provider_file_texts(o, "copy_after", where, a, &markers, &out->copy.count, e));
    out->copy.markers = markers;
    TRY(provider_file_text(o, "finish", where, a, &finish, e));
    if (finish != NULL && strcmp(finish, "stop") != 0 && strcmp(finish, "length") != 0)
        FAIL(e, ERR_CONFIG, "%s: \"finish\" is \"%s\"; it can be \"stop\" or \"length\"", where,
             finish);
    out->finish = finish != NULL && finish[0] == 'l' ? FINISH_LENGTH : FINISH_STOP;
    out->hangs = json_object_get(o, "hang_ms") != NULL;
    TRY(provider_file_integer(o, "hang_ms", where, 3600000, 0, &hang_ms, e));
    TRY(provider_file_integer(o, "delay_ms", where, 3600000, 0, &delay_ms, e));
    out->hang_ms = (int)hang_ms;
    out->delay_ms = (int)delay_ms;
    return 0;
}

static int read_head(const json_t *o, const char *path, struct arena *a, struct fixture_rules *out,
                     struct err *e) {
    static const char *const known[] = {
        "lacuna_fixture", "exact_ids", "context_tokens", "in_flight", "order", "seed", "rules"};
    TRY(JSON_ONLY_KEYS(o, path, known, e));
    int64_t context, in_flight, seed;
    const char *order;
    TRY(provider_file_integer(o, "context_tokens", path, UINT32_MAX, 0, &context, e));
    TRY(provider_file_integer(o, "in_flight", path, FIXTURE_IN_FLIGHT_MOST, 1, &in_flight, e));
    TRY(provider_file_integer(o, "seed", path, INT64_MAX, 1, &seed, e));
    TRY(provider_file_boolean(o, "exact_ids", path, true, &out->exact_ids, e));
    TRY(provider_file_text(o, "order", path, a, &order, e));
    if (order != NULL && strcmp(order, "first") != 0 && strcmp(order, "shuffled") != 0)
        FAIL(e, ERR_CONFIG, "%s: \"order\" is \"%s\"; it can be \"first\" or \"shuffled\"", path,
             order);
    if (in_flight == 0) FAIL(e, ERR_CONFIG, "%s: \"in_flight\" is 0; at least 1 is needed", path);
    out->shuffled = order != NULL && order[0] == 's';
    out->context_tokens = (uint32_t)context;
    out->in_flight = (int)in_flight;
    out->seed = (uint64_t)seed;
    return 0;
}

static int read_rules(const json_t *o, const char *path, struct arena *a, struct fixture_rules *out,
                      struct err *e) {
    json_t *rules;
    TRY(read_head(o, path, a, out, e));
    TRY(json_need_array(o, "rules", path, &rules, e));
    const char *folder = path_folder(a, path);
    out->rule_count = (int)json_array_size(rules);
    out->rules = arena_array(a, (size_t)out->rule_count, sizeof *out->rules);
    for (int i = 0; i < out->rule_count; i++) {
        const char *where = arena_printf(a, "%s: rules[%d]", path, i);
        TRY(read_rule(json_array_get(rules, (size_t)i), where, folder, a, &out->rules[i], e));
    }
    return 0;
}

int fixture_rules_read(const char *path, struct arena *a, struct fixture_rules *out,
                       struct err *e) {
    *out = (struct fixture_rules){0};
    json_t *o;
    TRY(provider_file_read(path, "lacuna_fixture", a, out->sha256, &o, e));
    int result = read_rules(o, path, a, out, e);
    json_decref(o);
    return result;
}

// ---- answering ---------------------------------------------------------------------------------

const struct fixture_rule *fixture_rules_find(const struct fixture_rules *rules, const char *key,
                                              struct str prompt) {
    for (int i = 0; i < rules->rule_count; i++) {
        const struct fixture_rule *r = &rules->rules[i];
        if (r->key != NULL && strstr(key, r->key) == NULL) continue;
        if (r->prompt != NULL && str_find(prompt, str_from(r->prompt), 0) == STR_NONE) continue;
        if (r->while_file != NULL && !file_exists(r->while_file)) continue;
        return r;
    }
    return NULL;
}

struct str fixture_rule_reply(const struct fixture_rule *rule, struct str prompt,
                              const struct rng *sampling, struct arena *a) {
    if (rule->reply_count == 0) return STR("");
    struct rng draw = *sampling;
    struct str text = rule->replies[rng_below(&draw, (uint64_t)rule->reply_count)];
    return copy_text(text, &rule->copy, prompt, &draw, a);
}
