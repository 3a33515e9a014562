#include "engine/provider_fixture_rules.h"

#include "engine/base/file.h"

#include <string.h>

#define RULES_BYTES_MOST ((size_t)16 << 20)

// ---- reading -----------------------------------------------------------------------------------

static int check_keys(const json_t *o, const char *where, const char *const *known, size_t count,
                      struct err *e) {
    const char *key;
    json_t *value;
    if (!json_is_object(o)) FAIL(e, ERR_CONFIG, "%s: not a JSON object", where);
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        bool found = false;
        for (size_t i = 0; i < count && !found; i++) found = strcmp(key, known[i]) == 0;
        if (found) continue;
        const char *near = str_nearest(key, known, count);
        FAIL(e, ERR_CONFIG, "%s: unknown key \"%s\"%s%s%s", where, key,
             near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
             near != NULL ? "\"?" : "");
    }
    return 0;
}

static int maybe_text(const json_t *o, const char *key, const char *where, struct arena *a,
                      const char **out, struct err *e) {
    *out = NULL;
    if (json_object_get(o, key) == NULL) return 0;
    const char *text;
    TRY(json_need_string(o, key, where, &text, e));
    *out = arena_strdup(a, text);
    return 0;
}

static int maybe_number(const json_t *o, const char *key, const char *where, int64_t most,
                        int64_t otherwise, int64_t *out, struct err *e) {
    *out = otherwise;
    if (json_object_get(o, key) == NULL) return 0;
    TRY(json_need_integer(o, key, where, out, e));
    if (*out < 0 || *out > most)
        FAIL(e, ERR_CONFIG, "%s: \"%s\" is %lld, outside 0 to %lld", where, key, (long long)*out,
             (long long)most);
    return 0;
}

// A string, or a list of strings.
static int maybe_texts(const json_t *o, const char *key, const char *where, struct arena *a,
                       struct str **out, int *count, struct err *e) {
    const json_t *value = json_object_get(o, key);
    *out = NULL;
    *count = 0;
    if (value == NULL) return 0;
    bool list = json_is_array(value);
    size_t n = list ? json_array_size(value) : 1;
    *out = arena_array(a, n, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = list ? json_array_get(value, i) : value;
        if (!json_is_string(text))
            FAIL(e, ERR_CONFIG, "%s: \"%s\" is neither a string nor a list of strings", where, key);
        (*out)[i] = str_copy(a, str_from(json_string_value(text)));
    }
    *count = (int)n;
    return 0;
}

static int read_replies(const json_t *o, const char *where, struct arena *a,
                        struct fixture_rule *out, struct err *e) {
    TRY(maybe_texts(o, "reply", where, a, &out->replies, &out->reply_count, e));
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
    TRY(check_keys(o, where, known, sizeof known / sizeof *known, e));
    const char *finish;
    struct str *markers;
    int64_t hang_ms, delay_ms;
    TRY(maybe_text(o, "key", where, a, &out->key, e));
    TRY(maybe_text(o, "prompt", where, a, &out->prompt, e));
    TRY(maybe_text(o, "while_file", where, a, &out->while_file, e));
    if (out->while_file != NULL) out->while_file = path_resolve(a, folder, out->while_file);
    TRY(maybe_text(o, "error", where, a, &out->error, e));
    TRY(read_replies(o, where, a, out, e));
    TRY(maybe_texts(o, "copy_after", where, a, &markers, &out->copy_count, e));
    out->copy_after = arena_array(a, (size_t)out->copy_count, sizeof *out->copy_after);
    for (int i = 0; i < out->copy_count; i++) out->copy_after[i] = markers[i].p;
    TRY(maybe_text(o, "finish", where, a, &finish, e));
    if (finish != NULL && strcmp(finish, "stop") != 0 && strcmp(finish, "length") != 0)
        FAIL(e, ERR_CONFIG, "%s: \"finish\" is \"%s\"; it can be \"stop\" or \"length\"", where,
             finish);
    out->finish = finish != NULL && finish[0] == 'l' ? FINISH_LENGTH : FINISH_STOP;
    out->hangs = json_object_get(o, "hang_ms") != NULL;
    TRY(maybe_number(o, "hang_ms", where, 3600000, 0, &hang_ms, e));
    TRY(maybe_number(o, "delay_ms", where, 3600000, 0, &delay_ms, e));
    out->hang_ms = (int)hang_ms;
    out->delay_ms = (int)delay_ms;
    return 0;
}

static int read_head(const json_t *o, const char *path, struct arena *a, struct fixture_rules *out,
                     struct err *e) {
    static const char *const known[] = {
        "lacuna_fixture", "exact_ids", "context_tokens", "in_flight", "order", "seed", "rules"};
    TRY(check_keys(o, path, known, sizeof known / sizeof *known, e));
    int64_t version, context, in_flight, seed;
    const char *order;
    TRY(json_need_integer(o, "lacuna_fixture", path, &version, e));
    if (version != 1)
        FAIL(e, ERR_CONFIG, "%s: \"lacuna_fixture\" is %lld; this program reads 1", path,
             (long long)version);
    TRY(maybe_number(o, "context_tokens", path, UINT32_MAX, 0, &context, e));
    TRY(maybe_number(o, "in_flight", path, FIXTURE_IN_FLIGHT_MOST, 1, &in_flight, e));
    TRY(maybe_number(o, "seed", path, INT64_MAX, 1, &seed, e));
    TRY(maybe_text(o, "order", path, a, &order, e));
    if (order != NULL && strcmp(order, "first") != 0 && strcmp(order, "shuffled") != 0)
        FAIL(e, ERR_CONFIG, "%s: \"order\" is \"%s\"; it can be \"first\" or \"shuffled\"", path,
             order);
    if (in_flight == 0) FAIL(e, ERR_CONFIG, "%s: \"in_flight\" is 0; at least 1 is needed", path);
    out->exact_ids = !json_is_false(json_object_get(o, "exact_ids"));
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
    struct str text;
    json_t *o = NULL;
    TRY(file_read(path, RULES_BYTES_MOST, a, &text, e));
    hash_bytes(text.p, text.n, out->sha256);
    TRY(json_parse(text, path, &o, e));
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

static struct str word_behind(struct str prompt, const char *marker) {
    size_t at = str_find(prompt, str_from(marker), 0);
    if (at == STR_NONE) return STR("");
    at += strlen(marker);
    size_t end = at;
    while (end < prompt.n && strchr(" \t\r\n", prompt.p[end]) == NULL) end++;
    while (end > at && strchr(".,;:!?", prompt.p[end - 1]) != NULL) end--;
    return str_slice(prompt, at, end);
}

struct str fixture_rule_reply(const struct fixture_rule *rule, struct str prompt,
                              const struct rng *sampling, struct arena *a) {
    if (rule->reply_count == 0) return STR("");
    struct rng draw = *sampling;
    struct str pattern = rule->replies[rng_below(&draw, (uint64_t)rule->reply_count)];
    struct buf out = {0};
    for (size_t at = 0; at < pattern.n;) {
        struct str rest = str_slice(pattern, at, pattern.n);
        int copy = -1;
        char mark[16];
        for (int i = 0; i < rule->copy_count && copy < 0; i++) {
            snprintf(mark, sizeof mark, "{{%d}}", i);
            if (str_starts(rest, str_from(mark))) copy = i;
        }
        if (copy >= 0) {
            buf_add_str(&out, word_behind(prompt, rule->copy_after[copy]));
            at += strlen(mark);
        } else if (str_starts(rest, STR("{{sample}}"))) {
            buf_printf(&out, "%llu", (unsigned long long)rng_below(&draw, 10000));
            at += strlen("{{sample}}");
        } else {
            buf_add_char(&out, pattern.p[at++]);
        }
    }
    struct str text = str_copy(a, buf_str(&out));
    buf_free(&out);
    return text;
}
