// lacuna score-text: log probabilities of given tokens (teacher forcing).
#include "evals/cli.h"
#include "evals/cli_lines.h"

#include "engine/ranking.h"
#include "engine/session.h"

#include <stdlib.h>

struct scoring {
    const struct token_list *ids;
    uint32_t V, top;
    struct ranking *ranking;
    int32_t *top_ids;        // [top]
    struct buf scores, tops; // of the line so far
};

static int score_row(void *context, struct session *s, const struct session_row *row,
                     struct err *e) {
    (void)e;
    struct scoring *sc = context;
    const float *z = session_row_logits(s, row);
    float total = session_row_log_sum_exp(s, row);
    if (row->index + 1 < sc->ids->count)
        buf_printf(&sc->scores, ",%.9g", (double)(z[sc->ids->ids[row->index + 1]] - total));
    if (sc->top == 0) return 0;
    ranking_top(sc->ranking, z, sc->top, sc->top_ids);
    buf_add_c(&sc->tops, row->index > 0 ? ",[" : "[");
    for (uint32_t i = 0; i < sc->top; i++)
        buf_printf(&sc->tops, "%s[%d,%.9g]", i > 0 ? "," : "", sc->top_ids[i],
                   (double)(z[sc->top_ids[i]] - total));
    buf_add_char(&sc->tops, ']');
    return 0;
}

static void print_line(const struct scoring *sc) {
    fputs("{\"ids\":[", stdout);
    for (size_t i = 0; i < sc->ids->count; i++) printf("%s%d", i > 0 ? "," : "", sc->ids->ids[i]);
    printf("],\"log_probabilities\":[null%s]", sc->scores.p != NULL ? sc->scores.p : "");
    if (sc->top > 0) printf(",\"top\":[%s]", sc->tops.p);
    fputs("}\n", stdout);
}

static int score_line(struct session *s, struct scoring *sc, struct err *e) {
    buf_clear(&sc->scores);
    buf_clear(&sc->tops);
    struct kv_sequence *sequence;
    TRY(kv_sequence_open(session_kv(s), &sequence, e));
    struct session_item item = {.sequence = sequence,
                                .ids = sc->ids->ids,
                                .count = (uint32_t)sc->ids->count,
                                .logits = SESSION_ALL};
    struct session_sink sink = {score_row, sc};
    int result = session_forward(s, &item, 1, &sink, e);
    kv_sequence_close(session_kv(s), sequence);
    TRY(result);
    print_line(sc);
    if (fflush(stdout) != 0) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

static int score_lines(struct session *s, const struct tokenizer *t, struct scoring *sc, bool bos,
                       bool special, struct err *e) {
    struct cli_lines lines = {.from = stdin};
    struct token_list ids = {0};
    sc->ids = &ids;
    int result;
    for (;;) {
        json_t *value;
        bool any;
        result = cli_lines_next(&lines, &value, &any, e);
        if (result != 0 || !any) break;
        ids.count = 0;
        result = cli_line_ids(&lines, value, t, bos, special, &ids, e);
        json_decref(value);
        if (result == 0 && score_line(s, sc, e) != 0)
            result = err_prefix(e, "line %lld", (long long)lines.number);
        if (result != 0) break;
    }
    token_list_free(&ids);
    cli_lines_close(&lines);
    return result;
}

struct settings {
    const char *path;
    struct session_options session;
    const char *pre;
    uint32_t top;
    bool bos, special;
};

static int run(const struct settings *set, struct arena *a, struct err *e) {
    struct model *m;
    struct tokenizer *t;
    struct session *s;
    TRY(model_open(set->path, a, &m, e));
    int result = tokenizer_open(m->file, set->pre, a, &t, e);
    if (result == 0) {
        result = session_open(m, &set->session, &s, e);
        if (result == 0) {
            uint32_t V = m->config.V;
            struct scoring sc = {.V = V, .top = set->top < V ? set->top : V};
            sc.ranking = ranking_open(V);
            sc.top_ids = arena_array(a, sc.top, sizeof *sc.top_ids);
            result = score_lines(s, t, &sc, set->bos, set->special, e);
            ranking_close(sc.ranking);
            buf_free(&sc.scores);
            buf_free(&sc.tops);
            session_close(s);
        }
        tokenizer_close(t);
    }
    model_close(m);
    return result;
}

int cli_score_text(int argc, char **argv) {
    struct settings set = {0};
    int64_t top = 0, threads = 0, context = 0;
    struct session_options *o = &set.session;
    o->cache = cli_cache_folder();
    const struct cli_option options[] = {
        {.name = "--top",
         .value = "K",
         .help = "also the K best after each position",
         .number = &top},
        {.name = "--bos", .help = "put the model's start token in front", .flag = &set.bos},
        {.name = "--special", .help = "texts may spell control tokens", .flag = &set.special},
        {.name = "--context",
         .value = "N",
         .help = "most tokens of a line (default: as trained)",
         .number = &context},
        {.name = "--beyond-trained",
         .help = "--context may exceed the trained context",
         .flag = &o->beyond_trained},
        CLI_MODEL_OPTIONS(o, &threads),
        {.name = "--op-table",
         .value = "NAME",
         .help = "c, avx2, avx512f, avx512_bf16 (same bits)",
         .text = &o->op_table},
        {.name = "--pre-tokenizer",
         .value = "NAME",
         .help = "instead of the file's own rule",
         .text = &set.pre},
    };
    struct err e = {0};
    int count;
    bool helped;
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, &set.path, 1, 1, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    const struct cli_range ranges[] = {{"--top", top, 0, UINT32_MAX},
                                       {"--context", context, 0, UINT32_MAX},
                                       {"--threads", threads, 0, 4096}};
    if (cli_check_ranges(ranges, sizeof ranges / sizeof *ranges, &e) != 0)
        return cli_fail(argv[0], &e);
    set.top = (uint32_t)top;
    o->context_tokens = (uint32_t)context;
    o->threads = (int)threads;
    struct arena *a = arena_create("model");
    int result = run(&set, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
