// lacuna bench: how fast a model is read (prefill), continued (decode) and continued several times
// at once, each beside what this machine's measured ceilings allow.
#include "evals/cli.h"

#include "engine/backend_products.h"
#include "engine/base/str.h"
#include "engine/bench.h"
#include "evals/run_setup.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKENS_MOST (1 << 22) // of each option

struct settings {
    const char *path;
    const char *prompts, *depths; // lists as typed; NULL: not typed
    struct bench_options bench;
    int64_t reply, batch, repeats, threads, chunk; // as typed
    bool json;
};

static const char *storage_name(const struct session *s) {
    return backend_storage_name(session_plan(s)->storage);
}

// Four significant digits: what follows is noise.
static json_t *rounded(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", x);
    return json_real(strtod(text, NULL));
}

static void put_range(json_t *o, const char *key, struct bench_range r) {
    json_t *j = json_object();
    json_put(j, "median", rounded(r.median));
    json_put(j, "least", rounded(r.least));
    json_put(j, "most", rounded(r.most));
    json_put(o, key, j);
}

static json_t *line_json(const struct bench_line *l) {
    json_t *j = json_object(), *allowed = json_object();
    json_put(j, "kind", json_text_c(l->kind));
    json_put(j, "test", json_text_c(l->name));
    json_put(j, "tokens", json_integer(l->tokens));
    json_put(j, "depth", json_integer(l->depth));
    json_put(j, "rows", json_integer(l->rows));
    json_put(j, "flop", json_integer((json_int_t)l->flop));
    json_put(j, "bytes", json_integer((json_int_t)l->bytes));
    if (l->tokens > 0) put_range(j, "tokens_per_s", l->tokens_per_s);
    put_range(j, "seconds", l->seconds);
    for (int i = 0; i < BENCH_BOUNDS; i++)
        if (l->allowed_s[i] > 0) json_put(allowed, bench_bound_names[i], rounded(l->allowed_s[i]));
    json_put(j, "allowed_s", allowed);
    json_put(j, "held_by", json_text_c(l->held_by < 0 ? NULL : bench_bound_names[l->held_by]));
    put_range(j, "share", l->share);
    return j;
}

static void print_json(const struct settings *set, const struct session *s,
                       const struct bench_result *r) {
    const struct backend *k = session_backend(s);
    const struct session_plan *p = session_plan(s);
    json_t *j = json_object(), *tests = json_array();
    json_put(j, "program", run_program_json());
    json_put(j, "processor", run_processor_json());
    json_put(j, "backend", json_text_c(k->name));
    json_put(j, "numerics", json_text_c(k->numerics));
    json_put(j, "op_table", json_text_c(k->op_table));
    if (k->products != NULL) json_put(j, "products", backend_products_json(k->products));
    json_put(j, "threads", json_integer(k->threads));
    json_put(j, "weights", json_text_c(storage_name(s)));
    json_put(j, "weight_bytes", json_integer((json_int_t)p->weights_bytes));
    json_put(j, "chunk_tokens", json_integer(p->chunk_tokens));
    json_put(j, "repeats", json_integer(set->bench.repeats));
    json_put(j, "load_s", rounded(r->load_s));
    json_put(j, "peak_bytes", json_integer((json_int_t)r->peak_bytes));
    put_range(j, "ceiling_flop_per_s", r->flop_per_s);
    put_range(j, "ceiling_read_bytes_per_s", r->read_bytes_per_s);
    for (int i = 0; i < r->count; i++) json_array_append_new(tests, line_json(&r->lines[i]));
    json_put(j, "tests", tests);
    cli_print_json(j);
}

static void print_line(const struct bench_line *l) {
    char range[40], share[24] = "-";
    if (l->held_by >= 0) snprintf(share, sizeof share, "%.0f%%", 100 * l->share.median);
    double allowed_s = l->held_by < 0 ? 0 : l->allowed_s[l->held_by];
    const char *held_by = l->held_by < 0 ? "" : bench_bound_names[l->held_by];
    if (l->tokens > 0) {
        snprintf(range, sizeof range, "%.1f-%.1f", l->tokens_per_s.least, l->tokens_per_s.most);
        printf("%-24s %10.1f %17s %10.1f  %-7s %6s\n", l->name, l->tokens_per_s.median, range,
               allowed_s > 0 ? l->tokens / allowed_s : 0, held_by, share);
    } else {
        snprintf(range, sizeof range, "%.3f-%.3f", 1e3 * l->seconds.least, 1e3 * l->seconds.most);
        printf("%-24s %10.3f %17s %10.3f  %-7s %6s %9.1f %7.1f\n", l->name, 1e3 * l->seconds.median,
               range, 1e3 * allowed_s, held_by, share, 1e-9 * (double)l->flop / l->seconds.median,
               1e-9 * (double)l->bytes / l->seconds.median);
    }
}

static void print_table(const struct settings *set, const struct session *s,
                        const struct bench_result *r) {
    const struct backend *k = session_backend(s);
    cli_print_clean(stdout, set->path);
    printf(": %s %s, op table %s, %d thread%s, weights %s (%.1f MiB)\n", k->name, k->numerics,
           k->op_table, k->threads, k->threads == 1 ? "" : "s", storage_name(s),
           (double)session_plan(s)->weights_bytes / 1048576);
    printf("loaded in %.2f s, most memory %.0f MiB; medians of %d, their range, and what the "
           "ceiling allows\n",
           r->load_s, (double)r->peak_bytes / 1048576, set->bench.repeats);
    printf("ceilings:");
    if (r->flop_per_s.median > 0) printf(" %.1f GFLOP/s", 1e-9 * r->flop_per_s.median);
    if (r->read_bytes_per_s.median > 0)
        printf("%s reading %.1f GB/s", r->flop_per_s.median > 0 ? "," : "",
               1e-9 * r->read_bytes_per_s.median);
    printf("\n");
    const char *kind = "";
    for (int i = 0; i < r->count; i++) {
        const struct bench_line *l = &r->lines[i];
        if (l->tokens > 0 && i == 0)
            printf("\n%-24s %10s %17s %10s  %-7s %6s\n", "test", "tokens/s", "(range)", "allowed",
                   "held by", "share");
        if (l->tokens == 0 && strcmp(kind, l->kind) != 0)
            printf("\n%-24s %10s %17s %10s  %-7s %6s %9s %7s\n", l->kind, "ms", "(range)",
                   "allowed", "held by", "share", "GFLOP/s", "GB/s");
        kind = l->kind;
        print_line(l);
    }
}

static void tell_round(int round, int of) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\rround %d of %d ", round + 1, of);
}

// "512,8192". `least` is what a number must be at least; "none" is the empty list.
static int parse_list(const char *option, const char *text, int64_t least, uint32_t *out,
                      uint32_t *count, struct err *e) {
    *count = 0;
    if (strcmp(text, "none") == 0) return 0;
    for (const char *p = text;; p++) {
        char *end;
        errno = 0;
        intmax_t n = strtoimax(p, &end, 10);
        if (errno != 0 || end == p || (*end != ',' && *end != '\0') || n < least || n > TOKENS_MOST)
            FAIL(e, ERR_USAGE,
                 "%s takes numbers from %" PRId64 " to %d with commas between, or none, not \"%s\"",
                 option, least, TOKENS_MOST, text);
        if (*count == BENCH_LIST_MOST)
            FAIL(e, ERR_USAGE, "%s has more than %d numbers", option, BENCH_LIST_MOST);
        out[(*count)++] = (uint32_t)n;
        if (*end == '\0') return 0;
        p = end;
    }
}

// Drops the tests of a list that a user did not ask for and the model's context is too short for;
// the first one is kept, cut to it.
static void fit_list(uint32_t most, uint32_t *list, uint32_t *count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] <= most) list[kept++] = list[i];
    if (kept == 0) list[kept++] = most;
    *count = kept;
}

static void fit_defaults(const struct model *m, struct settings *set) {
    struct bench_options *o = &set->bench;
    uint32_t trained = m->config.trained_context;
    if (o->session.beyond_trained) return;
    if (set->prompts == NULL) fit_list(trained, o->prompts, &o->prompt_count);
    if (set->depths == NULL && trained >= o->reply_tokens)
        fit_list(trained - o->reply_tokens, o->depths, &o->depth_count);
}

static const char *or_default(const char *list, const char *otherwise) {
    return list != NULL ? list : otherwise;
}

static int settle(struct settings *set, struct err *e) {
    struct bench_options *o = &set->bench;
    const struct cli_range ranges[] = {
        {"--reply", set->reply, 1, TOKENS_MOST},
        {"--chunk", set->chunk, 0, TOKENS_MOST},
        {"--batch", set->batch, 0, BENCH_BATCH_MOST},
        {"--repeats", set->repeats, 1, BENCH_REPEATS_MOST},
        {"--threads", set->threads, 0, 4096},
    };
    TRY(cli_check_ranges(ranges, sizeof ranges / sizeof *ranges, e));
    TRY(parse_list("--prompt", or_default(set->prompts, "512,2048"), 1, o->prompts,
                   &o->prompt_count, e));
    TRY(parse_list("--depth", or_default(set->depths, "0,2048"), 0, o->depths, &o->depth_count, e));
    o->reply_tokens = (uint32_t)set->reply;
    o->batch = o->depth_count > 0 ? (uint32_t)set->batch : 0;
    o->repeats = (int)set->repeats;
    o->progress = tell_round;
    o->session.threads = (int)set->threads;
    o->session.chunk_tokens = (uint32_t)set->chunk;
    if (o->prompt_count + o->depth_count == 0 && !o->ops)
        FAIL(e, ERR_USAGE, "nothing to measure: no --prompt, no --depth and no --ops");
    return 0;
}

static int run(struct settings *set, struct arena *a, struct err *e) {
    struct model *m;
    struct session *s;
    struct bench_result r;
    TRY(model_open(set->path, a, &m, e));
    fit_defaults(m, set);
    int result = bench_run(m, &set->bench, a, &s, &r, e);
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r                \r");
    if (result == 0 && set->json)
        print_json(set, s, &r);
    else if (result == 0)
        print_table(set, s, &r);
    session_close(s);
    model_close(m);
    return result;
}

int cli_bench(int argc, char **argv) {
    struct settings set = {.reply = 32, .batch = 16, .repeats = 5};
    struct session_options *o = &set.bench.session;
    o->cache = cli_cache_folder();
    const struct cli_option options[] = {
        {.name = "--prompt",
         .value = "LIST",
         .help = "tokens of the prefills, or none (512,2048, as the context allows)",
         .text = &set.prompts},
        {.name = "--depth",
         .value = "LIST",
         .help = "decode behind so many tokens, or none (0,2048, as the context allows)",
         .text = &set.depths},
        {.name = "--reply", .value = "N", .help = "tokens to decode (32)", .number = &set.reply},
        {.name = "--batch",
         .value = "N",
         .help = "sequences together behind the first depth (16); 0: no such test",
         .number = &set.batch},
        {.name = "--ops",
         .help = "also single ops: products at the model's shapes, attention",
         .flag = &set.bench.ops},
        {.name = "--repeats", .value = "N", .help = "rounds, 1 to 64 (5)", .number = &set.repeats},
        {.name = "--chunk", .value = "N", .help = "tokens of one pass (512)", .number = &set.chunk},
        CLI_MODEL_OPTIONS(o, &set.threads),
        {.name = "--op-table",
         .value = "NAME",
         .help = "c, avx2, avx512f, avx512_bf16",
         .text = &o->op_table},
        {.name = "--gemm",
         .value = "HOW",
         .help = "matrix products of a GPU: auto, own, admitted (cuBLASLt where it gives the same "
                 "bits), any (whatever the bits)",
         .text = &o->products},
        {.name = "--no-graphs",
         .help = "of a GPU: launch decoding passes op by op, not as CUDA graphs; the same bits",
         .flag = &o->no_graphs},
        CLI_MEMORY_OPTION("bound on all but the weights", &o->memory_bytes),
        {.name = "--beyond-trained",
         .help = "lengths may exceed the trained context",
         .flag = &o->beyond_trained},
        {.name = "--json", .help = "for programs", .flag = &set.json},
    };
    struct err e = {0};
    int count;
    bool helped;
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, &set.path, 1, 1, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    if (settle(&set, &e) != 0) return cli_fail(argv[0], &e);
    struct arena *a = arena_create("model");
    int result = run(&set, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
