// lacuna prompt EXPERIMENT|RUN KEY: the exact prompt of a trial, with the spans of its constraints.
#include "engine/base/file.h"
#include "evals/cli_experiment.h"
#include "evals/plan.h"
#include "evals/run_setup.h"
#include "reports/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shown {
    struct record_trial trial;
    struct record_part *parts;
    size_t part_count;
    struct str text;
    struct provider_ids ids; // of an experiment whose model has exact ones
};

enum style { STYLE_MARKED, STYLE_ESCAPED, STYLE_RAW, STYLE_JSON };

// ---- where it comes from ----

static int from_run(const char *folder, const char *key, struct arena *a, struct shown *out,
                    struct err *e) {
    struct record *r;
    TRY(record_open(folder, a, &r, e));
    int64_t i = record_find(r, key);
    int result = -1;
    if (i < 0) {
        ERR_SET(e, ERR_USAGE, "%s has no trial '%s'; its plan.jsonl lists the keys", folder, key);
    } else {
        out->trial = r->trials[i];
        result = record_get_prompt(r, out->trial.prompt_sha256, a, &out->parts, &out->part_count,
                                   &out->text, e);
    }
    record_close(r);
    return result;
}

static struct provider *provider_of(const struct experiment *x, struct provider **providers,
                                    const char *model) {
    const int m = experiment_model_index(x, model);
    return m < 0 ? NULL : providers[m];
}

static int build(const struct experiment *x, struct provider **providers, const char *key,
                 struct arena *a, struct shown *out, struct err *e) {
    TRY(plan_prompt(x, providers, key, a, &out->trial, &out->parts, &out->part_count, e));
    struct buf text = {0};
    struct provider_piece *pieces = arena_array(a, out->part_count + 1, sizeof *pieces);
    for (size_t i = 0; i < out->part_count; i++) {
        buf_add_str(&text, out->parts[i].text);
        pieces[i] = (struct provider_piece){out->parts[i].text, out->parts[i].control};
    }
    out->text = buf_take(&text, a);
    struct provider *p = provider_of(x, providers, out->trial.model);
    if (!p->can.exact_ids) return 0;
    return p->ops->tokenize(p, pieces, out->part_count, a, &out->ids, e);
}

static int from_experiment(const char *path, const char *key, const struct cli_overrides *o,
                           struct arena *a, struct shown *out, struct err *e) {
    struct experiment *x = NULL;
    struct provider **providers = NULL;
    const struct run_options options = {0};
    int result = cli_experiment_load(path, o, a, &x, e);
    if (result == 0) result = run_providers_open(x, &options, a, &providers, e);
    if (result == 0) result = build(x, providers, key, a, out, e);
    run_providers_close(x, providers);
    experiment_close(x);
    return result;
}

// ---- how it is shown ----

static const struct record_span *span_beginning(const struct record_trial *t, size_t at) {
    for (int i = 0; i < t->span_count; i++)
        if (t->spans[i].first_byte == at) return &t->spans[i];
    return NULL;
}

static const struct record_span *span_ending(const struct record_trial *t, size_t at) {
    for (int i = 0; i < t->span_count; i++)
        if (t->spans[i].first_byte + t->spans[i].bytes == at) return &t->spans[i];
    return NULL;
}

static void add_mark(struct buf *b, const struct record_span *s, bool end, bool terminal) {
    if (terminal && !end) buf_add_c(b, "\033[7m");
    if (!terminal) buf_printf(b, end ? "\u27E8/%s\u27E9" : "\u27E8%s\u27E9", s->constraint);
    if (terminal && end) buf_add_c(b, "\033[0m");
}

// Every byte can be told: line breaks as \n with a real one behind it, others that do not print
// (and the backslash) as escapes.
static void add_escaped(struct buf *b, struct str s) {
    for (size_t i = 0; i < s.n;) {
        uint32_t c;
        size_t n = utf8_decode(s, i, &c);
        bool bad = c == 0xFFFD && !(n == 3 && memcmp(s.p + i, "\xEF\xBF\xBD", 3) == 0);
        if (c == '\n')
            buf_add_c(b, "\\n\n");
        else if (c == '\t')
            buf_add_c(b, "\\t");
        else if (c == '\r')
            buf_add_c(b, "\\r");
        else if (c == '\\')
            buf_add_c(b, "\\\\");
        else if (bad)
            for (size_t k = 0; k < n; k++) buf_printf(b, "\\x%02X", (unsigned)(uint8_t)s.p[i + k]);
        else if (c < ' ' || c == 0x7F)
            buf_printf(b, "\\x%02X", (unsigned)c);
        else if ((c >= 0x80 && c < 0xA1) || c == 0xAD || (c >= 0x2000 && c <= 0x200F) ||
                 (c >= 0x2028 && c <= 0x202F) || (c >= 0x2060 && c <= 0x206F) || c == 0x3000 ||
                 c == 0xFEFF)
            buf_printf(b, "\\u{%X}", (unsigned)c);
        else
            buf_add(b, s.p + i, n);
        i += n;
    }
}

static void add_text(struct buf *b, const struct shown *s, bool escaped, bool terminal) {
    size_t from = 0;
    for (size_t at = 0; at <= s->text.n; at++) {
        const struct record_span *end = span_ending(&s->trial, at);
        const struct record_span *begin = span_beginning(&s->trial, at);
        if (end == NULL && begin == NULL && at < s->text.n) continue;
        struct str run = str_slice(s->text, from, at);
        if (escaped)
            add_escaped(b, run);
        else
            buf_add_str(b, run);
        if (end != NULL) add_mark(b, end, true, terminal);
        if (begin != NULL) add_mark(b, begin, false, terminal);
        from = at;
    }
}

static void add_header(struct buf *b, const struct shown *s) {
    const struct record_trial *t = &s->trial;
    buf_printf(b, "%s\n", t->key);
    buf_printf(b, "%u tokens (%u of the template, %u shared with the trial before), %zu bytes\n",
               t->prompt_tokens, t->template_tokens, t->shared_tokens, s->text.n);
    buf_printf(b, "prompt sha256 %s\nids    sha256 %s\n", t->prompt_sha256,
               t->ids_sha256[0] != '\0' ? t->ids_sha256 : "not known");
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *x = &t->spans[i];
        buf_printf(b, "%-12s tokens %u-%u, bytes %zu-%zu, depth %s%s\n", x->constraint,
                   x->first_token, x->first_token + x->tokens - 1, x->first_byte,
                   x->first_byte + x->bytes - 1, x->depth, strcmp(x->depth, "-") == 0 ? "" : "%");
    }
    buf_add_c(b, "----\n");
}

static json_t *parts_json(const struct shown *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->part_count; i++) {
        const struct record_part *part = &s->parts[i];
        json_t *o = json_object();
        json_put(o, "control", json_boolean(part->control));
        json_put_bytes(o, "text", part->text);
        if (part->filler_sha256 != NULL) {
            json_put(o, "filler_sha256", json_text_c(part->filler_sha256));
            json_put(o, "from", json_integer((json_int_t)part->from));
            json_put(o, "to", json_integer((json_int_t)part->to));
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *spans_json(const struct record_trial *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *s = &t->spans[i];
        json_t *o = json_object();
        json_put(o, "constraint", json_text_c(s->constraint));
        json_put(o, "first_token", json_integer(s->first_token));
        json_put(o, "tokens", json_integer(s->tokens));
        json_put(o, "first_byte", json_integer((json_int_t)s->first_byte));
        json_put(o, "bytes", json_integer((json_int_t)s->bytes));
        json_put(o, "depth", json_text_c(s->depth));
        json_array_append_new(list, o);
    }
    return list;
}

static void add_json(struct buf *b, const struct shown *s) {
    const struct record_trial *t = &s->trial;
    json_t *o = json_object(), *ids = json_array();
    for (size_t i = 0; i < s->ids.count; i++)
        json_array_append_new(ids, json_integer(s->ids.ids[i]));
    json_put(o, "key", json_text_c(t->key));
    json_put_bytes(o, "text", s->text);
    json_put(o, "prompt_sha256", json_text_c(t->prompt_sha256));
    json_put(o, "ids_sha256", json_text_c(t->ids_sha256[0] != '\0' ? t->ids_sha256 : NULL));
    json_put(o, "prompt_tokens", json_integer(t->prompt_tokens));
    json_put(o, "template_tokens", json_integer(t->template_tokens));
    json_put(o, "spans", spans_json(t));
    json_put(o, "parts", parts_json(s));
    if (s->ids.count > 0)
        json_put(o, "ids", ids);
    else
        json_decref(ids);
    json_compact(o, b);
    buf_add_char(b, '\n');
    json_decref(o);
}

static int show(const struct shown *s, enum style style, struct err *e) {
    struct buf b = {0};
    bool terminal = isatty(STDOUT_FILENO) == 1;
    switch (style) {
    case STYLE_JSON: add_json(&b, s); break;
    case STYLE_RAW: buf_add_str(&b, s->text); break;
    case STYLE_MARKED:
    case STYLE_ESCAPED:
        add_header(&b, s);
        add_text(&b, s, style == STYLE_ESCAPED, terminal);
        buf_add_char(&b, '\n');
        break;
    }
    bool written = fwrite(b.p, 1, b.n, stdout) == b.n && fflush(stdout) == 0;
    buf_free(&b);
    if (!written) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

int cli_prompt(int argc, char **argv) {
    struct err e = {0};
    struct cli_overrides overrides = CLI_NO_OVERRIDES;
    bool json = false, escapes = false, raw = false, helped = false;
    const char *positional[2] = {NULL, NULL};
    int count = 0;
    const struct cli_option options[] = {
        {.name = "--escapes", .help = "show every byte: \\n, \\x1B, \\u{200D}", .flag = &escapes},
        {.name = "--raw", .help = "the prompt's bytes and nothing else", .flag = &raw},
        {.name = "--json", .help = "one JSON object: text, parts, spans, ids", .flag = &json},
        CLI_OVERRIDE_OPTIONS(overrides),
    };
    int option_count = (int)(sizeof options / sizeof *options);
    if (cli_parse(argc, argv, options, option_count, positional, 2, 2, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    enum style style = json ? STYLE_JSON : raw ? STYLE_RAW : escapes ? STYLE_ESCAPED : STYLE_MARKED;
    struct arena *a = arena_create("prompt");
    struct shown s = {0};
    int result = file_is_directory(positional[0])
                     ? from_run(positional[0], positional[1], a, &s, &e)
                     : from_experiment(positional[0], positional[1], &overrides, a, &s, &e);
    if (result == 0) result = show(&s, style, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
