#include "reports/record_line.h"

#include <string.h>

static const char *const status_names[] = {"ok", "invalid", "error"};
static const char *const verdict_names[] = {"met", "omitted", "violated", "unscored"};

const char *record_status_name(enum record_status s) {
    return status_names[s];
}

const char *verdict_name(enum verdict v) {
    return verdict_names[v];
}

// ---- required and optional fields --------------------------------------------------------------

int record_need_range(const json_t *o, const char *key, const char *where, int64_t low,
                      int64_t high, int64_t *out, struct err *e) {
    TRY(json_need_integer(o, key, where, out, e));
    if (*out < low || *out > high)
        FAIL(e, ERR_INPUT, "%s: \"%s\" is %lld, outside %lld to %lld", where, key, (long long)*out,
             (long long)low, (long long)high);
    return 0;
}

int record_need_hash(const json_t *o, const char *key, const char *where, char out[HASH_HEX_SIZE],
                     struct err *e) {
    const char *text;
    TRY(json_need_string(o, key, where, &text, e));
    if (!hash_is_hex(str_from(text)))
        FAIL(e, ERR_INPUT, "%s: \"%s\" is not a SHA-256 of 64 hex digits", where, key);
    memcpy(out, text, HASH_HEX_SIZE);
    return 0;
}

static int need_int(const json_t *o, const char *key, const char *where, int *out, struct err *e) {
    int64_t value;
    TRY(record_need_range(o, key, where, 0, INT32_MAX, &value, e));
    *out = (int)value;
    return 0;
}

static int need_u32(const json_t *o, const char *key, const char *where, uint32_t *out,
                    struct err *e) {
    int64_t value;
    TRY(record_need_range(o, key, where, 0, UINT32_MAX, &value, e));
    *out = (uint32_t)value;
    return 0;
}

static int need_size(const json_t *o, const char *key, const char *where, size_t *out,
                     struct err *e) {
    int64_t value;
    TRY(record_need_range(o, key, where, 0, INT64_MAX, &value, e));
    *out = (size_t)value;
    return 0;
}

static int need_copy(const json_t *o, const char *key, const char *where, struct arena *a,
                     const char **out, struct err *e) {
    const char *text;
    TRY(json_need_string(o, key, where, &text, e));
    *out = arena_strdup(a, text);
    return 0;
}

// Missing and null give NULL.
static int maybe_copy(const json_t *o, const char *key, const char *where, struct arena *a,
                      const char **out, struct err *e) {
    const json_t *value = json_object_get(o, key);
    *out = NULL;
    if (value == NULL || json_is_null(value)) return 0;
    return need_copy(o, key, where, a, out, e);
}

static int need_pair(const json_t *value, const char *key, const char *where, size_t most,
                     size_t out[2], struct err *e) {
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(low) || !json_is_integer(high))
        FAIL(e, ERR_INPUT, "%s: \"%s\" is not a pair of integers", where, key);
    json_int_t from = json_integer_value(low), to = json_integer_value(high);
    if (from < 0 || from > to || (size_t)to > most)
        FAIL(e, ERR_INPUT, "%s: \"%s\" is [%lld,%lld], outside the %zu bytes of the reply", where,
             key, (long long)from, (long long)to, most);
    out[0] = (size_t)from;
    out[1] = (size_t)to;
    return 0;
}

static json_t *pair(const size_t range[2]) {
    json_t *value = json_array();
    json_array_append_new(value, json_integer((json_int_t)range[0]));
    json_array_append_new(value, json_integer((json_int_t)range[1]));
    return value;
}

static void put_integer(json_t *o, const char *key, int64_t value) {
    json_put(o, key, json_integer(value));
}

// ---- plan.jsonl --------------------------------------------------------------------------------

// {"order":{"code":"19763"},...}: variables of one constraint stand together, in the order given.
static int write_vars(const struct record_trial *t, json_t **out, struct err *e) {
    json_t *vars = json_object();
    for (int i = 0; i < t->var_count; i++) {
        const struct record_var *v = &t->vars[i];
        if (!utf8_valid(v->value) || memchr(v->value.p, '\0', v->value.n) != NULL) {
            json_decref(vars);
            FAIL(e, ERR_INPUT, "trial %s: the variable %s of the constraint %s is not UTF-8 text",
                 t->key, v->name, v->constraint);
        }
        json_t *of = json_object_get(vars, v->constraint);
        if (of == NULL) {
            of = json_object();
            json_put(vars, v->constraint, of);
        }
        json_put(of, v->name, json_text(v->value));
    }
    *out = vars;
    return 0;
}

// [{"constraint":"order","vars":{"code":"48213"}},...]
static json_t *write_distractors(const struct record_trial *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->distractor_count; i++) {
        const struct record_distractor *d = &t->distractors[i];
        json_t *o = json_object(), *vars = json_object();
        for (int k = 0; k < d->var_count; k++)
            json_put(vars, d->vars[k].name, json_text(d->vars[k].value));
        json_put(o, "constraint", json_text_c(d->constraint));
        json_put(o, "vars", vars);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *write_salience(const struct record_span *s) {
    json_t *o = json_object(), *words = json_array();
    for (int i = 0; i < s->question_word_count; i++)
        json_array_append_new(words, json_text_c(s->question_words[i]));
    json_put(o, "only_digits", s->only_digits ? json_true() : json_false());
    json_put(o, "question_words", words);
    return o;
}

static json_t *write_spans(const struct record_trial *t) {
    json_t *spans = json_array();
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *s = &t->spans[i];
        json_t *o = json_object();
        json_put(o, "constraint", json_text_c(s->constraint));
        put_integer(o, "first_token", s->first_token);
        put_integer(o, "tokens", s->tokens);
        put_integer(o, "first_byte", (int64_t)s->first_byte);
        put_integer(o, "bytes", (int64_t)s->bytes);
        json_put(o, "depth", json_text_c(s->depth));
        if (s->place != NULL) json_put(o, "place", json_text_c(s->place));
        if (s->only_digits || s->question_word_count > 0)
            json_put(o, "salience", write_salience(s));
        json_array_append_new(spans, o);
    }
    return spans;
}

// {"order":2}: only of constraints that have several wordings.
static json_t *write_variants(const struct record_trial *t) {
    json_t *variants = json_object();
    for (int i = 0; i < t->variant_count; i++)
        put_integer(variants, t->variants[i].constraint, t->variants[i].variant);
    return variants;
}

int record_trial_write(const struct record_trial *t, json_t **out, struct err *e) {
    json_t *vars = NULL;
    TRY(write_vars(t, &vars, e));
    json_t *o = json_object();
    put_integer(o, "trial", t->trial);
    json_put(o, "key", json_text_c(t->key));
    json_put(o, "model", json_text_c(t->model));
    json_put(o, "arm", json_text_c(t->arm));
    json_put(o, "length", t->length < 0 ? json_null() : json_integer(t->length));
    json_put(o, "placement", json_text_c(t->placement));
    json_put(o, "depth", json_text_c(t->depth));
    put_integer(o, "repeat", t->repeat);
    put_integer(o, "sample", t->sample);
    json_put(o, "case", json_text_c(t->case_id));
    json_put(o, "prompt_sha256", json_text_c(t->prompt_sha256));
    json_put(o, "ids_sha256", json_text_c(t->ids_sha256[0] == '\0' ? NULL : t->ids_sha256));
    if (t->text_sha256[0] != '\0') json_put(o, "text_sha256", json_text_c(t->text_sha256));
    put_integer(o, "prompt_tokens", t->prompt_tokens);
    put_integer(o, "template_tokens", t->template_tokens);
    put_integer(o, "shared_tokens", t->shared_tokens);
    put_integer(o, "reply_tokens_max", t->reply_tokens_max);
    if (t->reasoning_opened) json_put(o, "reasoning_opened", json_true());
    json_put(o, "seed", json_text_c(t->seed));
    json_put(o, "vars", vars);
    if (t->distractor_count > 0) json_put(o, "distractors", write_distractors(t));
    json_put(o, "spans", write_spans(t));
    if (t->variant_count > 0) json_put(o, "variants", write_variants(t));
    *out = o;
    return 0;
}

static int read_vars(const json_t *o, const char *where, struct arena *a, struct record_trial *out,
                     struct err *e) {
    json_t *vars, *of;
    TRY(json_need_object(o, "vars", where, &vars, e));
    const char *constraint, *name;
    size_t count = 0;
    json_object_foreach(vars, constraint, of) count += json_object_size(of);
    out->vars = arena_array(a, count, sizeof *out->vars);
    json_object_foreach(vars, constraint, of) {
        if (!json_is_object(of))
            FAIL(e, ERR_INPUT, "%s: \"vars\": \"%s\" is not an object", where, constraint);
        const char *shared_name = arena_strdup(a, constraint);
        json_t *value;
        json_object_foreach(of, name, value) {
            if (!json_is_string(value))
                FAIL(e, ERR_INPUT, "%s: \"vars\": \"%s\" of \"%s\" is not a string", where, name,
                     constraint);
            struct str text = {json_string_value(value), json_string_length(value)};
            out->vars[out->var_count++] =
                (struct record_var){shared_name, arena_strdup(a, name), str_copy(a, text)};
        }
    }
    return 0;
}

static int read_distractor(const json_t *o, const char *where, struct arena *a,
                           struct record_distractor *out, struct err *e) {
    json_t *vars, *value;
    const char *name;
    TRY(need_copy(o, "constraint", where, a, &out->constraint, e));
    TRY(json_need_object(o, "vars", where, &vars, e));
    out->vars = arena_array(a, json_object_size(vars) + 1, sizeof *out->vars);
    json_object_foreach(vars, name, value) {
        if (!json_is_string(value))
            FAIL(e, ERR_INPUT, "%s: a distractor's \"%s\" is not a string", where, name);
        struct str text = {json_string_value(value), json_string_length(value)};
        out->vars[out->var_count++] =
            (struct record_var){out->constraint, arena_strdup(a, name), str_copy(a, text)};
    }
    return 0;
}

static int read_distractors(const json_t *o, const char *where, struct arena *a,
                            struct record_trial *out, struct err *e) {
    json_t *list;
    if (json_object_get(o, "distractors") == NULL) return 0;
    TRY(json_need_array(o, "distractors", where, &list, e));
    size_t count = json_array_size(list);
    out->distractors = arena_array(a, count, sizeof *out->distractors);
    out->distractor_count = (int)count;
    for (size_t i = 0; i < count; i++)
        TRY(read_distractor(json_array_get(list, i), where, a, &out->distractors[i], e));
    return 0;
}

// Absent where nothing makes the constraint stand out.
static int read_salience(const json_t *span, const char *where, struct arena *a,
                         struct record_span *out, struct err *e) {
    json_t *o, *words;
    if (json_object_get(span, "salience") == NULL) return 0;
    TRY(json_need_object(span, "salience", where, &o, e));
    TRY(json_need_array(o, "question_words", where, &words, e));
    const json_t *only = json_object_get(o, "only_digits");
    if (!json_is_boolean(only))
        FAIL(e, ERR_INPUT, "%s: \"only_digits\" is neither true nor false", where);
    out->only_digits = json_is_true(only);
    size_t count = json_array_size(words);
    out->question_words = arena_array(a, count + 1, sizeof *out->question_words);
    out->question_word_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word == NULL) FAIL(e, ERR_INPUT, "%s: a question word is not a string", where);
        out->question_words[i] = arena_strdup(a, word);
    }
    return 0;
}

static int read_span(const json_t *o, const char *where, struct arena *a, struct record_span *out,
                     struct err *e) {
    const char *depth;
    TRY(need_copy(o, "constraint", where, a, &out->constraint, e));
    TRY(need_u32(o, "first_token", where, &out->first_token, e));
    TRY(need_u32(o, "tokens", where, &out->tokens, e));
    TRY(need_size(o, "first_byte", where, &out->first_byte, e));
    TRY(need_size(o, "bytes", where, &out->bytes, e));
    TRY(json_need_string(o, "depth", where, &depth, e));
    if (strlen(depth) >= sizeof out->depth)
        FAIL(e, ERR_INPUT, "%s: \"depth\" of a span has more than %zu characters", where,
             sizeof out->depth - 1);
    memcpy(out->depth, depth, strlen(depth) + 1);
    TRY(maybe_copy(o, "place", where, a, &out->place, e));
    return read_salience(o, where, a, out, e);
}

static int read_spans(const json_t *o, const char *where, struct arena *a, struct record_trial *out,
                      struct err *e) {
    json_t *spans;
    TRY(json_need_array(o, "spans", where, &spans, e));
    size_t count = json_array_size(spans);
    out->spans = arena_array(a, count, sizeof *out->spans);
    out->span_count = (int)count;
    for (size_t i = 0; i < count; i++)
        TRY(read_span(json_array_get(spans, i), where, a, &out->spans[i], e));
    return 0;
}

static int read_variants(const json_t *o, const char *where, struct arena *a,
                         struct record_trial *out, struct err *e) {
    json_t *variants, *value;
    if (json_object_get(o, "variants") == NULL) return 0;
    TRY(json_need_object(o, "variants", where, &variants, e));
    out->variants = arena_array(a, json_object_size(variants), sizeof *out->variants);
    const char *constraint;
    json_object_foreach(variants, constraint, value) {
        struct record_variant *v = &out->variants[out->variant_count++];
        v->constraint = arena_strdup(a, constraint);
        TRY(need_int(variants, constraint, where, &v->variant, e));
        if (v->variant < 1)
            FAIL(e, ERR_INPUT, "%s: \"variants\": \"%s\" is not a number from 1 on", where,
                 constraint);
    }
    return 0;
}

static int read_sizes(const json_t *o, const char *where, struct record_trial *out, struct err *e) {
    const char *seed;
    TRY(need_u32(o, "prompt_tokens", where, &out->prompt_tokens, e));
    TRY(need_u32(o, "template_tokens", where, &out->template_tokens, e));
    TRY(need_u32(o, "shared_tokens", where, &out->shared_tokens, e));
    TRY(need_int(o, "reply_tokens_max", where, &out->reply_tokens_max, e));
    out->reasoning_opened = json_is_true(json_object_get(o, "reasoning_opened"));
    TRY(json_need_string(o, "seed", where, &seed, e));
    if (strlen(seed) != 32 || strspn(seed, "0123456789abcdef") != 32)
        FAIL(e, ERR_INPUT, "%s: \"seed\" is not 32 hex digits", where);
    memcpy(out->seed, seed, 33);
    return 0;
}

int record_trial_read(const json_t *o, const char *where, struct arena *a, struct record_trial *out,
                      struct err *e) {
    *out = (struct record_trial){.length = -1};
    TRY(record_need_range(o, "trial", where, 0, INT64_MAX, &out->trial, e));
    TRY(need_copy(o, "key", where, a, &out->key, e));
    TRY(need_copy(o, "model", where, a, &out->model, e));
    TRY(need_copy(o, "arm", where, a, &out->arm, e));
    if (!json_is_null(json_object_get(o, "length")))
        TRY(need_int(o, "length", where, &out->length, e));
    TRY(maybe_copy(o, "placement", where, a, &out->placement, e));
    TRY(maybe_copy(o, "depth", where, a, &out->depth, e));
    TRY(need_int(o, "repeat", where, &out->repeat, e));
    TRY(need_int(o, "sample", where, &out->sample, e));
    TRY(maybe_copy(o, "case", where, a, &out->case_id, e));
    TRY(record_need_hash(o, "prompt_sha256", where, out->prompt_sha256, e));
    if (!json_is_null(json_object_get(o, "ids_sha256")))
        TRY(record_need_hash(o, "ids_sha256", where, out->ids_sha256, e));
    if (json_object_get(o, "text_sha256") != NULL)
        TRY(record_need_hash(o, "text_sha256", where, out->text_sha256, e));
    TRY(read_sizes(o, where, out, e));
    TRY(read_vars(o, where, a, out, e));
    TRY(read_variants(o, where, a, out, e));
    TRY(read_distractors(o, where, a, out, e));
    return read_spans(o, where, a, out, e);
}

// ---- trials.jsonl ------------------------------------------------------------------------------

static json_t *write_ids(const struct record_outcome *o) {
    if (o->ids == NULL) return json_null();
    json_t *ids = json_array();
    for (size_t i = 0; i < o->id_count; i++) json_array_append_new(ids, json_integer(o->ids[i]));
    return ids;
}

static void put_server(json_t *reply, const struct record_server *s) {
    json_t *o = json_object();
    if (s->model != NULL) json_put(o, "model", json_text_c(s->model));
    if (s->fingerprint != NULL) json_put(o, "fingerprint", json_text_c(s->fingerprint));
    if (s->program != NULL) json_put(o, "program", json_text_c(s->program));
    if (json_object_size(o) > 0) json_object_set(reply, "server", o);
    json_decref(o);
}

static json_t *write_reply(const struct record_outcome *o) {
    json_t *reply = json_object();
    record_words_write(o, reply);
    json_put(reply, "ids", write_ids(o));
    json_put(reply, "tokens", o->tokens < 0 ? json_null() : json_integer(o->tokens));
    if (o->reasoning_counted) put_integer(reply, "reasoning_tokens", o->reasoning_tokens);
    if (o->served_prompt_tokens > 0) put_integer(reply, "prompt_tokens", o->served_prompt_tokens);
    put_server(reply, &o->server);
    json_put(reply, "finish", json_text_c(o->finish));
    json_put(reply, "answer", pair(o->answer));
    return reply;
}

// A part of a reply is a string; one whose bytes are not UTF-8 is an object with its base64.
// Of texts that are not kept their number.
static json_t *write_texts(const struct str *texts, int count) {
    if (texts == NULL) return json_integer(count);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *holder = json_object();
        json_put_bytes(holder, "text", texts[i]);
        json_t *text = json_object_get(holder, "text");
        json_array_append(list, text != NULL ? text : holder);
        json_decref(holder);
    }
    return list;
}

static json_t *write_verdicts(const struct record_outcome *o) {
    json_t *verdicts = json_array();
    for (int i = 0; i < o->verdict_count; i++) {
        const struct record_verdict *v = &o->verdicts[i];
        json_t *line = json_object();
        json_put(line, "constraint", json_text_c(v->constraint));
        json_put(line, "verdict", json_text_c(verdict_name(v->verdict)));
        if (v->reason != NULL) json_put(line, "reason", json_text_c(v->reason));
        if (v->by != NULL) json_put(line, "by", json_text_c(v->by));
        if (v->in != NULL) json_put(line, "in", json_text_c(v->in));
        if (v->has_match) json_put(line, "match", pair(v->match));
        if (v->thought) json_put(line, "thought", json_true());
        if (v->near_count > 0) json_put(line, "near", write_texts(v->near, v->near_count));
        if (v->copied_count > 0) json_put(line, "copied", write_texts(v->copied, v->copied_count));
        json_array_append_new(verdicts, line);
    }
    return verdicts;
}

json_t *record_outcome_write(const struct record_outcome *o, int attempt) {
    json_t *line = json_object();
    put_integer(line, "trial", o->trial);
    json_put(line, "key", json_text_c(o->key));
    put_integer(line, "attempt", attempt);
    json_put(line, "status", json_text_c(record_status_name(o->status)));
    if (o->status != STATUS_OK) {
        json_t *reason = json_object();
        json_put(reason, "code", json_text_c(o->reason_code));
        json_put_bytes(reason, "text", str_from(o->reason_text));
        json_put(line, "reason", reason);
    }
    if (o->finish != NULL) json_put(line, "reply", write_reply(o));
    if (o->status == STATUS_OK) json_put(line, "verdicts", write_verdicts(o));
    return line;
}

static int read_name(const json_t *o, const char *key, const char *where, const char *const *names,
                     int count, int *out, struct err *e) {
    const char *text;
    TRY(json_need_string(o, key, where, &text, e));
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = i;
        return 0;
    }
    FAIL(e, ERR_INPUT, "%s: \"%s\" has the unknown value \"%.40s\"", where, key, text);
}

static int read_ids(const json_t *reply, const char *where, struct arena *a,
                    struct record_outcome *out, struct err *e) {
    const json_t *ids = json_object_get(reply, "ids");
    if (ids == NULL || json_is_null(ids)) return 0;
    if (!json_is_array(ids)) FAIL(e, ERR_INPUT, "%s: \"ids\" is not an array", where);
    out->id_count = json_array_size(ids);
    out->ids = arena_array(a, out->id_count + 1, sizeof *out->ids);
    for (size_t i = 0; i < out->id_count; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > INT32_MAX)
            FAIL(e, ERR_INPUT, "%s: \"ids\"[%zu] is not a token id", where, i);
        out->ids[i] = (int32_t)json_integer_value(id);
    }
    return 0;
}

static int read_reply(const json_t *o, const char *where, struct arena *a,
                      struct record_outcome *out, struct err *e) {
    static const char *const finishes[] = {"stop",        "length", "reasoning_length",
                                           "stop_string", "filter", "error"};
    json_t *reply = json_object_get(o, "reply"), *answer;
    if (reply == NULL && out->status != STATUS_OK) return 0;
    TRY(json_need_object(o, "reply", where, &reply, e));
    TRY(record_words_read(reply, where, a, out, e));
    TRY(read_ids(reply, where, a, out, e));
    out->tokens = -1;
    if (!json_is_null(json_object_get(reply, "tokens")))
        TRY(need_int(reply, "tokens", where, &out->tokens, e));
    out->reasoning_counted = json_object_get(reply, "reasoning_tokens") != NULL;
    if (out->reasoning_counted)
        TRY(need_int(reply, "reasoning_tokens", where, &out->reasoning_tokens, e));
    if (json_object_get(reply, "prompt_tokens") != NULL)
        TRY(need_u32(reply, "prompt_tokens", where, &out->served_prompt_tokens, e));
    const json_t *server = json_object_get(reply, "server");
    TRY(maybe_copy(server, "model", where, a, &out->server.model, e));
    TRY(maybe_copy(server, "fingerprint", where, a, &out->server.fingerprint, e));
    TRY(maybe_copy(server, "program", where, a, &out->server.program, e));
    int finish = 0;
    TRY(read_name(reply, "finish", where, finishes, 6, &finish, e));
    out->finish = finishes[finish];
    TRY(json_need_array(reply, "answer", where, &answer, e));
    return need_pair(answer, "answer", where, out->reply_bytes, out->answer, e);
}

// A list that may be absent.
static int read_texts(const json_t *o, const char *key, const char *where, struct arena *a,
                      struct str **texts, int *text_count, struct err *e) {
    const json_t *list = json_object_get(o, key);
    if (list == NULL) return 0;
    if (json_is_integer(list)) return need_int(o, key, where, text_count, e);
    if (!json_is_array(list)) FAIL(e, ERR_INPUT, "%s: \"%s\" is not an array", where, key);
    size_t count = json_array_size(list);
    *texts = arena_array(a, count, sizeof **texts);
    *text_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        json_t *holder = json_array_get(list, i);
        if (json_is_string(holder)) {
            struct str text = {json_string_value(holder), json_string_length(holder)};
            (*texts)[i] = str_copy(a, text);
        } else {
            TRY(json_get_bytes(holder, "text", where, a, &(*texts)[i], e));
        }
    }
    return 0;
}

static int read_verdict(const json_t *o, const char *where, struct arena *a,
                        const struct record_outcome *of, struct record_verdict *out,
                        struct err *e) {
    TRY(need_copy(o, "constraint", where, a, &out->constraint, e));
    int verdict = 0;
    TRY(read_name(o, "verdict", where, verdict_names, 4, &verdict, e));
    out->verdict = (enum verdict)verdict;
    TRY(maybe_copy(o, "reason", where, a, &out->reason, e));
    TRY(maybe_copy(o, "by", where, a, &out->by, e));
    TRY(maybe_copy(o, "in", where, a, &out->in, e));
    out->thought = json_is_true(json_object_get(o, "thought"));
    const size_t looked_at =
        out->in != NULL && of->reasoning_bytes > 0 ? of->reasoning_bytes : of->reply_bytes;
    const json_t *match = json_object_get(o, "match");
    if (match != NULL && !json_is_null(match)) {
        TRY(need_pair(match, "match", where, looked_at, out->match, e));
        out->has_match = true;
    }
    TRY(read_texts(o, "near", where, a, &out->near, &out->near_count, e));
    return read_texts(o, "copied", where, a, &out->copied, &out->copied_count, e);
}

static int read_reason(const json_t *o, const char *where, struct arena *a,
                       struct record_outcome *out, struct err *e) {
    json_t *reason;
    struct str text;
    TRY(json_need_object(o, "reason", where, &reason, e));
    TRY(need_copy(reason, "code", where, a, &out->reason_code, e));
    TRY(json_get_bytes(reason, "text", where, a, &text, e));
    out->reason_text = text.p;
    return 0;
}

int record_outcome_read(const json_t *o, const char *where, struct arena *a,
                        struct record_outcome *out, struct err *e) {
    *out = (struct record_outcome){0};
    TRY(record_need_range(o, "trial", where, 0, INT64_MAX, &out->trial, e));
    TRY(need_copy(o, "key", where, a, &out->key, e));
    int64_t attempt;
    TRY(record_need_range(o, "attempt", where, 1, INT32_MAX, &attempt, e));
    out->attempt = (int)attempt;
    int status = 0;
    TRY(read_name(o, "status", where, status_names, 3, &status, e));
    out->status = (enum record_status)status;
    if (out->status != STATUS_OK) TRY(read_reason(o, where, a, out, e));
    TRY(read_reply(o, where, a, out, e));
    if (out->status != STATUS_OK) return 0;
    json_t *verdicts;
    TRY(json_need_array(o, "verdicts", where, &verdicts, e));
    out->verdict_count = (int)json_array_size(verdicts);
    out->verdicts = arena_array(a, (size_t)out->verdict_count, sizeof *out->verdicts);
    for (int i = 0; i < out->verdict_count; i++)
        TRY(read_verdict(json_array_get(verdicts, (size_t)i), where, a, out, &out->verdicts[i], e));
    return 0;
}
