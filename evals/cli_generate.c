// lacuna generate: replies to raw prompts or conversations, one JSON line each, in input order.
#include "evals/cli.h"
#include "evals/cli_lines.h"

#include "engine/provider_local.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    struct provider_options provider;
    struct provider_generation generation;
    uint64_t seed;
    bool chat, bos, special;
};

// Replies that came before an earlier one; printed when their turn comes.
struct printer {
    char **waiting; // [lines], NULL: not here yet; grows
    size_t lines, printed, capacity;
};

static void printer_keep(struct printer *p, int64_t ticket, struct buf *line) {
    while ((size_t)ticket >= p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 64;
        p->waiting = realloc(p->waiting, capacity * sizeof *p->waiting);
        if (p->waiting == NULL) mem_exhausted("replies", capacity * sizeof *p->waiting);
        memset(p->waiting + p->capacity, 0, (capacity - p->capacity) * sizeof *p->waiting);
        p->capacity = capacity;
    }
    p->waiting[ticket] = line->p; // the buffer's memory changes hands
    *line = (struct buf){0};
    if ((size_t)ticket >= p->lines) p->lines = (size_t)ticket + 1;
}

static int printer_flush(struct printer *p, struct err *e) {
    for (; p->printed < p->lines && p->waiting[p->printed] != NULL; p->printed++) {
        puts(p->waiting[p->printed]);
        free(p->waiting[p->printed]);
        p->waiting[p->printed] = NULL;
    }
    if (fflush(stdout) != 0) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

static void printer_free(struct printer *p) {
    for (size_t i = 0; i < p->lines; i++) free(p->waiting[i]);
    free(p->waiting);
}

static int print_reply(struct printer *p, const struct provider_completion *c, struct err *e) {
    if (!c->ok)
        FAIL(e, ERR_PROVIDER, "input %lld: %s: %s", (long long)c->ticket + 1, c->reason_code,
             c->reason_text);
    json_t *j = json_object();
    json_put_bytes(j, "text", c->text);
    json_t *ids = json_array();
    for (size_t i = 0; i < c->ids.count; i++)
        json_array_append_new(ids, json_integer(c->ids.ids[i]));
    json_put(j, "ids", ids);
    json_put(j, "tokens", json_integer(c->tokens));
    json_put(j, "finish", json_text_c(provider_finish_name(c->finish)));
    if (c->stop_id >= 0) json_put(j, "stop_id", json_integer(c->stop_id));
    struct buf line = {0};
    json_compact(j, &line);
    json_decref(j);
    printer_keep(p, c->ticket, &line);
    return printer_flush(p, e);
}

static int next_reply(struct provider *p, struct printer *printer, bool *any, struct err *e) {
    struct arena *a = arena_create("reply");
    struct provider_completion c;
    int result = p->ops->next(p, a, &c, any, e);
    if (result == 0 && *any) result = print_reply(printer, &c, e);
    arena_destroy(a);
    return result;
}

static int read_messages(const struct cli_lines *l, const json_t *value, struct arena *a,
                         struct provider_message **out, size_t *count, struct err *e) {
    char where[48];
    snprintf(where, sizeof where, "line %lld", (long long)l->number);
    *count = json_array_size(value);
    if (!json_is_array(value) || *count == 0)
        FAIL(e, ERR_INPUT, "%s: --chat takes an array of {\"role\", \"content\"}", where);
    *out = arena_array(a, *count, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        const char *role, *content;
        const json_t *message = json_array_get(value, i);
        TRY(json_need_string(message, "role", where, &role, e));
        TRY(json_need_string(message, "content", where, &content, e));
        (*out)[i] = (struct provider_message){.role = str_from(role), .text = str_from(content)};
    }
    return 0;
}

// Ids of one input line, through the same calls that a run makes.
static int prompt_ids(struct provider *p, const struct settings *set, const struct cli_lines *l,
                      const json_t *value, const struct tokenizer *t, struct arena *a,
                      struct provider_ids *out, struct err *e) {
    if (set->chat) {
        struct provider_message *messages = NULL;
        struct provider_piece *pieces;
        size_t count, piece_count;
        TRY(read_messages(l, value, a, &messages, &count, e));
        TRY(p->ops->render(p, messages, count, a, &pieces, &piece_count, e));
        return p->ops->tokenize(p, pieces, piece_count, a, out, e);
    }
    struct token_list list = {0};
    int result = cli_line_ids(l, value, t, set->bos, set->special, &list, e);
    if (result == 0) {
        out->count = list.count;
        out->ids = arena_array(a, list.count, sizeof *out->ids);
        memcpy(out->ids, list.ids, list.count * sizeof *out->ids);
    }
    token_list_free(&list);
    return result;
}

static int submit_line(struct provider *p, const struct settings *set, struct printer *printer,
                       const struct provider_ids *ids, int64_t ticket, struct err *e) {
    char key[48];
    snprintf(key, sizeof key, "input %lld", (long long)ticket + 1);
    struct provider_request request = {
        .ticket = ticket, .key = key, .ids = *ids, .generation = &set->generation};
    char scope[48];
    snprintf(scope, sizeof scope, "repeat %lld", (long long)ticket);
    request.sampling = rng_open(set->seed, scope, "sample 0");
    for (;;) {
        bool accepted, any;
        TRY(p->ops->submit(p, &request, &accepted, e));
        if (accepted) return 0;
        TRY(next_reply(p, printer, &any, e));
        if (!any) FAIL(e, ERR_CANCELLED, "interrupted");
    }
}

static int generate_lines(struct provider *p, const struct settings *set, const struct tokenizer *t,
                          struct printer *printer, struct err *e) {
    struct cli_lines lines = {.from = stdin};
    int result = 0;
    bool any = true;
    for (int64_t ticket = 0; result == 0; ticket++) {
        json_t *value;
        result = cli_lines_next(&lines, &value, &any, e);
        if (result != 0 || !any) break;
        struct arena *a = arena_create("prompt");
        struct provider_ids ids;
        result = prompt_ids(p, set, &lines, value, t, a, &ids, e);
        json_decref(value);
        if (result == 0) result = submit_line(p, set, printer, &ids, ticket, e);
        arena_destroy(a);
    }
    cli_lines_close(&lines);
    any = true;
    while (result == 0 && any) result = next_reply(p, printer, &any, e);
    return result;
}

// Raw text needs the tokenizer itself, for the provider's seam knows pieces of templates only.
static int run(const struct settings *set, struct err *e) {
    struct arena *a = arena_create("model");
    struct gguf *g = NULL;
    struct tokenizer *t = NULL;
    struct provider *p = NULL;
    struct printer printer = {0};
    int result = gguf_open(set->provider.path, a, &g, e);
    if (result == 0) result = tokenizer_open(g, set->provider.pre_tokenizer, a, &t, e);
    if (result == 0) result = provider_open(&set->provider, &p, e);
    if (result == 0) result = generate_lines(p, set, t, &printer, e);
    printer_free(&printer);
    if (p != NULL) p->ops->close(p);
    if (t != NULL) tokenizer_close(t);
    if (g != NULL) gguf_close(g);
    arena_destroy(a);
    return result;
}

// Options as they are typed, before their values are checked.
struct typed {
    struct settings set;
    int64_t max_tokens, threads, context, seed;
    const char *path, *temperature, *top_p;
    struct cli_list stop;
};

static int parse(int argc, char **argv, struct typed *t, bool *helped, struct err *e) {
    struct settings *s = &t->set;
    struct provider_options *o = &s->provider;
    o->cache = cli_cache_folder();
    const struct cli_option options[] = {
        {"--chat", NULL, NULL, "lines are arrays of {\"role\", \"content\"}", .flag = &s->chat},
        {"--max-tokens", NULL, "N", "longest reply (128)", .number = &t->max_tokens},
        {"--temperature", NULL, "T", "0 (default): greedy", .text = &t->temperature},
        {"--top-p", NULL, "P", "keep the likeliest P of the probability", .text = &t->top_p},
        {"--seed", NULL, "N", "of the sampling streams (0)", .number = &t->seed},
        {"--stop", NULL, "TEXT", "ends the reply; may be given again", .list = &t->stop},
        {"--bos", NULL, NULL, "put the model's start token in front", .flag = &s->bos},
        {"--special", NULL, NULL, "texts may spell control tokens", .flag = &s->special},
        {"--template", NULL, "NAME", "chatml, smollm2, qwen2, qwen2.5, llama3, llama3.1, plain",
         .text = &o->chat_template},
        {"--pre-tokenizer", NULL, "NAME", "not the file's own rule", .text = &o->pre_tokenizer},
        {"--context", NULL, "N", "prompt and reply (as trained)", .number = &t->context},
        {"--beyond-trained", NULL, NULL, "--context may exceed it", .flag = &o->beyond_trained},
        CLI_MODEL_OPTIONS(o, &t->threads),
    };
    int count;
    return cli_parse(argc, argv, options, sizeof options / sizeof *options, &t->path, 1, 1, &count,
                     helped, e);
}

// `stops` has room for CLI_LIST_MOST.
static int settle(struct typed *t, struct str *stops, struct err *e) {
    const struct cli_range ranges[] = {{"--max-tokens", t->max_tokens, 1, INT32_MAX},
                                       {"--context", t->context, 0, UINT32_MAX},
                                       {"--threads", t->threads, 0, 4096}};
    TRY(cli_check_ranges(ranges, sizeof ranges / sizeof *ranges, e));
    for (int i = 0; i < t->stop.count; i++) stops[i] = str_from(t->stop.items[i]);
    struct settings *s = &t->set;
    s->provider.path = t->path;
    s->provider.context_tokens = (uint32_t)t->context;
    s->provider.threads = (int)t->threads;
    s->seed = (uint64_t)t->seed;
    s->generation = (struct provider_generation){
        .max_tokens = (int)t->max_tokens, .stop = stops, .stop_count = t->stop.count};
    TRY(cli_number("--temperature", t->temperature, 0, &s->generation.temperature, e));
    return cli_number("--top-p", t->top_p, 1, &s->generation.top_p, e);
}

int cli_generate(int argc, char **argv) {
    struct typed t = {.set = {.provider = {.id = "model"}}, .max_tokens = 128};
    struct str stops[CLI_LIST_MOST];
    struct err e = {0};
    bool helped;
    if (parse(argc, argv, &t, &helped, &e) != 0) return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    if (settle(&t, stops, &e) != 0 || run(&t.set, &e) != 0) return cli_fail(argv[0], &e);
    return EXIT_DONE;
}
