// lacuna verify: the record is whole (chain, plan, inputs) and true (its verdicts come again).
#include "evals/cli.h"
#include "evals/judge.h"
#include "evals/run_setup.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <string.h>

#define SESSIONS_BYTES_MOST ((size_t)64 << 20)

struct verification {
    const char *folder;
    struct buf findings;
    bool sound, without_prompts;
    bool opened; // else the record cannot be read, and what follows is not known
    bool judged; // verdicts came again; else the texts for that are not kept
    int64_t planned, done, attempts;
    char identity_sha256[HASH_HEX_SIZE], ledger_sha256[HASH_HEX_SIZE];
    char evidence_sha256[HASH_HEX_SIZE]; // empty: nothing was watched
    char again_sha256[HASH_HEX_SIZE];    // empty: nothing was asked twice
    json_t *sessions;                    // array
};

// Lines of sessions.jsonl; what cannot be read there is no fault of the record.
static void read_sessions(struct verification *v, struct arena *a) {
    struct str text;
    struct err e = {0};
    v->sessions = json_array();
    if (file_read(path_join(a, v->folder, "sessions.jsonl"), SESSIONS_BYTES_MOST, a, &text, &e) !=
        0)
        return;
    for (size_t at = 0; at < text.n;) {
        size_t end = str_find(text, STR("\n"), at);
        if (end == STR_NONE) end = text.n;
        json_t *line = NULL;
        if (json_parse(str_slice(text, at, end), "sessions.jsonl", &line, NULL) == 0)
            json_array_append_new(v->sessions, line);
        at = end + 1;
    }
}

static int score_again(struct verification *v, struct arena *a, struct err *e) {
    struct record *r;
    struct experiment *x = NULL;
    bool same = false;
    TRY(record_open(v->folder, a, &r, e));
    v->opened = true;
    v->judged = judge_can(r);
    v->planned = r->trial_count;
    v->done = r->done_count;
    v->attempts = r->attempt_count;
    memcpy(v->identity_sha256, r->identity_sha256, HASH_HEX_SIZE);
    memcpy(v->ledger_sha256, r->ledger_sha256, HASH_HEX_SIZE);
    memcpy(v->evidence_sha256, r->evidence_sha256, HASH_HEX_SIZE);
    memcpy(v->again_sha256, r->again_sha256, HASH_HEX_SIZE);
    int result = run_recorded_experiment(r, v->folder, a, &x, e);
    if (result == 0) result = judge_again(r, x, &v->findings, &same, e);
    experiment_close(x);
    record_close(r);
    v->sound = v->sound && same;
    return result;
}

static int verify(struct verification *v, struct arena *a, struct err *e) {
    TRY(record_verify(v->folder, !v->without_prompts, &v->findings, &v->sound, e));
    read_sessions(v, a);
    struct err why = {0};
    // A record that cannot even be read has its findings already.
    if (score_again(v, a, &why) != 0) {
        if (v->sound) buf_printf(&v->findings, "%s\n", why.text);
        v->sound = false;
    }
    return 0;
}

static const char *text_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "";
}

static void print_text(const struct verification *v) {
    cli_print_clean(stdout, v->findings.p != NULL ? v->findings.p : "");
    printf("%s: %s", v->folder, v->sound ? "sound" : "NOT sound");
    if (v->opened)
        printf("; %lld of %lld trials recorded", (long long)v->done, (long long)v->planned);
    if (v->attempts > v->done)
        printf(", %lld of them tried again", (long long)(v->attempts - v->done));
    fputs(v->without_prompts ? "; prompts not checked" : "", stdout);
    fputs(v->judged ? "" : "; verdicts not made again: ", stdout);
    puts(v->judged   ? ""
         : v->opened ? "the record does not keep its texts (retain)"
                     : "the record cannot be read");
    if (v->identity_sha256[0] != '\0')
        printf("identity %s\nledger   %s\n", v->identity_sha256, v->ledger_sha256);
    if (v->evidence_sha256[0] != '\0') printf("evidence %s\n", v->evidence_sha256);
    if (v->again_sha256[0] != '\0') printf("again    %s\n", v->again_sha256);
    for (size_t i = 0; i < json_array_size(v->sessions); i++) {
        const json_t *o = json_array_get(v->sessions, i);
        const char *detail = text_of(o, "detail");
        struct buf line = {0};
        buf_printf(&line, "%s  %-11s after %lld lines, build %s%s%s\n", text_of(o, "time"),
                   text_of(o, "event"), (long long)json_integer_value(json_object_get(o, "lines")),
                   text_of(json_object_get(o, "build"), "commit"), detail[0] ? ": " : "", detail);
        cli_print_clean(stdout, line.p);
        buf_free(&line);
    }
}

static void print_json(const struct verification *v) {
    json_t *o = json_object(), *findings = json_array();
    struct str text = buf_str(&v->findings);
    for (size_t at = 0; at < text.n;) {
        size_t end = str_find(text, STR("\n"), at);
        struct str line = str_slice(text, at, end);
        json_t *holder = json_object();
        json_put_bytes(holder, "text", line);
        json_array_append_new(findings, holder);
        at = end + 1;
    }
    json_put(o, "sound", json_boolean(v->sound));
    json_put(o, "prompts_checked", json_boolean(!v->without_prompts));
    json_put(o, "verdicts_checked", json_boolean(v->judged));
    json_put(o, "findings", findings);
    json_put(o, "planned", json_integer(v->planned));
    json_put(o, "recorded", json_integer(v->done));
    json_put(o, "attempts", json_integer(v->attempts));
    json_put(o, "identity_sha256", json_text_c(v->identity_sha256));
    json_put(o, "ledger_sha256", json_text_c(v->ledger_sha256));
    if (v->evidence_sha256[0] != '\0')
        json_put(o, "evidence_sha256", json_text_c(v->evidence_sha256));
    if (v->again_sha256[0] != '\0') json_put(o, "again_sha256", json_text_c(v->again_sha256));
    json_put(o, "sessions", json_incref(v->sessions));
    cli_print_json(o);
}

int cli_verify(int argc, char **argv) {
    struct verification v = {0};
    int count;
    bool helped, json = false;
    const struct cli_option options[] = {
        {.name = "--without-prompts",
         .flag = &v.without_prompts,
         .help = "for a copy published without inputs/"},
        {.name = "--json", .flag = &json, .help = "one JSON object instead of text"},
    };
    struct err e = {0};
    if (cli_parse(argc, argv, options, 2, &v.folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("verify");
    int result = verify(&v, a, &e);
    if (result == 0 && json) print_json(&v);
    if (result == 0 && !json) print_text(&v);
    buf_free(&v.findings);
    json_decref(v.sessions);
    arena_destroy(a);
    if (result != 0) return cli_fail(argv[0], &e);
    return v.sound ? EXIT_DONE : EXIT_ERROR;
}
