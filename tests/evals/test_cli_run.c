// run, verify, report, repeat and view as programs: what they print, and their exit codes.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/json.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER                                                                                     \
    "{\"reply\": \"The order number is {{0}}, the day {{1}}.\", \"copy_after\": "                  \
    "[\"The order number is \", \"The pickup day is \"]}"

static struct arena *arena;
static struct str out, said; // of the last program

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    sample_experiment(arena, fast_folder(), "x", 1, "\"in_flight\": 2", ANSWER);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

// In the temporary folder, so that relative paths and runs/ are those of a user.
static int lacuna(const char *arguments) {
    struct err e = {0};
    const char *command = arena_printf(arena, "cd %s && %s/lacuna %s > out 2> said", fast_folder(),
                                       LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(path_join(arena, fast_folder(), "out"), 1 << 24, arena, &out, &e), e);
    ASSERT_OK(file_read(path_join(arena, fast_folder(), "said"), 1 << 24, arena, &said, &e), e);
    return WEXITSTATUS(status);
}

static void lacuna_ok(const char *arguments) {
    int code = lacuna(arguments);
    if (code != 0) fail_msg("%s: exit code %d\n%s%s", arguments, code, out.p, said.p);
}

static void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE) fail_msg("no '%s' in:\n%s", what, text.p);
}

static struct str last_word(struct str text) {
    text = str_trim(text);
    size_t begin = text.n;
    while (begin > 0 && text.p[begin - 1] != '\n' && text.p[begin - 1] != ' ') begin--;
    return str_slice(text, begin, text.n);
}

static void test_run_and_again(void **state) {
    (void)state;
    lacuna_ok("run x.yaml");
    assert_true(str_starts(last_word(out), STR("runs/sample-")));
    assert_true(str_ends(last_word(out), STR("/report.html")));
    const char *report = str_to_c(arena, last_word(out));
    const char *folder = path_folder(arena, report);
    assert_true(file_exists(arena_printf(arena, "%s/%s", fast_folder(), report)));
    lacuna_ok("run x.yaml");
    assert_holds(said, "is complete; nothing was run again");
    lacuna_ok("run x.yaml --set seed=12"); // a request of its own
    assert_string_not_equal(str_to_c(arena, last_word(out)), report);
    assert_true(str_find(said, STR("lacuna score"), 0) == STR_NONE);
    lacuna_ok("run x.yaml --set 'tolerate.unscored=3%'"); // its replies are there already
    assert_holds(said, "scores them without running the model again");
    lacuna_ok("run x.yaml --limit 4 -o four");
    lacuna_ok("verify four --json");
    json_t *o;
    struct err e = {0};
    ASSERT_OK(json_parse(out, "output", &o, &e), e);
    assert_true(json_is_true(json_object_get(o, "sound")));
    assert_int_equal(json_integer_value(json_object_get(o, "recorded")), 4);
    assert_int_equal(json_array_size(json_object_get(o, "sessions")), 2);
    json_decref(o);

    lacuna_ok(arena_printf(arena, "verify %s", folder));
    assert_holds(out, "sound; ");
    assert_holds(out, "complete");
    const char *page = arena_printf(arena, "%s/%s", fast_folder(), report);
    ASSERT_OK(file_remove(page, &e), e);
    lacuna_ok(arena_printf(arena, "report %s", folder));
    assert_true(file_exists(page));
    const char *key = "m/short/-/-/0/0";
    lacuna_ok(arena_printf(arena, "repeat %s %s", folder, key));
    assert_holds(out, "the replies are the same");
}

// Results that cannot be printed are an error; a run whose progress nobody reads goes on. What is
// printed never goes into a file of the record that got the number of a closed descriptor.
static void test_nowhere_to_print(void **state) {
    (void)state;
    const char *verify = "cd %s; %s/lacuna verify four%s > /dev/full 2> said";
    for (int i = 0; i < 2; i++) {
        const char *json = i == 0 ? "" : " --json";
        int status = system(arena_printf(arena, verify, fast_folder(), LACUNA_BINARY_DIR, json));
        assert_int_equal(WEXITSTATUS(status), 1);
    }
    const char *closed = "cd %s; %s/lacuna run x.yaml -o closed 0<&- 1>&- 2>&-; rc=$?; "
                         "test ! -s closed/lock || exit 9; exit $rc";
    int status = system(arena_printf(arena, closed, fast_folder(), LACUNA_BINARY_DIR));
    assert_int_equal(WEXITSTATUS(status), 1);
    lacuna_ok("verify closed");
    const char *unread = "cd %s; (%s/lacuna run x.yaml -o unread > out; echo $? > rc) 2>&1 | true; "
                         "until test -s rc; do sleep 0.05; done; exit $(cat rc)";
    status = system(arena_printf(arena, unread, fast_folder(), LACUNA_BINARY_DIR));
    assert_int_equal(WEXITSTATUS(status), 0);
    lacuna_ok("verify unread");
}

// The local engine: a trial computed alone and on other threads gives the recorded ids.
static void test_repeat_local(void **state) {
    (void)state;
    sample_local_experiment(arena, fast_folder(), "l", 2);
    lacuna_ok("run l.yaml --set tolerate.unscored=100% -o local --threads 2");
    lacuna_ok("verify local");
    static const char *const keys[] = {"m/placed/560/order-moves@middle/1/0", "m/absent/400/-/0/0"};
    for (int i = 0; i < 2; i++) {
        lacuna_ok(arena_printf(arena, "repeat local %s --threads 1", keys[i]));
        assert_holds(out, "the replies are the same");
        bool told = str_find(out, STR("the shares of attention are the same\n"), 0) != STR_NONE;
        assert_int_equal(told, i == 0); // nothing was watched in the absent arm
    }
    // resumed from the middle on another number of threads, it is the same record
    lacuna_ok("run l.yaml --set tolerate.unscored=100% -o again --threads 1");
    struct err e = {0};
    struct str ledger;
    const char *path = path_join(arena, fast_folder(), "again/trials.jsonl");
    ASSERT_OK(file_read(path, 1 << 24, arena, &ledger, &e), e);
    size_t end = ledger.n / 2;
    ASSERT_OK(file_write_atomic(path, str_slice(ledger, 0, end), &e), e);
    lacuna_ok("run l.yaml --set tolerate.unscored=100% -o again --threads 2");
    assert_equal_runs(path_join(arena, fast_folder(), "local"),
                      path_join(arena, fast_folder(), "again"));
}

// The last line of the evidence is the one that no chain guards.
static void test_repeat_finds_edited_evidence(void **state) {
    (void)state;
    struct err e = {0};
    lacuna_ok("run l.yaml --set tolerate.unscored=100% -o looked");
    const char *path = path_join(arena, fast_folder(), "looked/evidence.jsonl");
    struct str text;
    ASSERT_OK(file_read(path, 1 << 24, arena, &text, &e), e);
    size_t last = text.n - 1;
    while (last > 0 && text.p[last - 1] != '\n') last--;
    json_t *line;
    ASSERT_OK(json_parse(str_slice(text, last, text.n), "evidence", &line, &e), e);
    const char *key = json_string_value(json_object_get(line, "key"));
    const char *repeat = arena_printf(arena, "repeat looked %s", key);
    json_decref(line);
    lacuna_ok(repeat);
    size_t at = str_find(text, STR("\"mean\":{\"prompt\":"), last);
    assert_true(at != STR_NONE);
    at += strlen("\"mean\":{\"prompt\":");
    char *copy = arena_memdup(arena, text.p, text.n);
    copy[at] = copy[at] == '1' ? '2' : '1';
    ASSERT_OK(file_write_atomic(path, (struct str){copy, text.n}, &e), e);
    assert_int_equal(lacuna(repeat), 1);
    assert_holds(out, "the replies are the same\nthe shares of attention differ\n");
}

static void test_usage(void **state) {
    (void)state;
    assert_int_equal(lacuna("run"), 2);
    assert_int_equal(lacuna("run x.yaml --limit 0"), 2);
    assert_int_equal(lacuna("run x.yaml --threads -1"), 2);
    assert_int_equal(lacuna("run x.yaml --resume"), 2);
    assert_int_equal(lacuna("run nothing.yaml"), 2);
    assert_holds(said, "nothing.yaml");
    assert_int_equal(lacuna("run x.yaml --set nonsense=1"), 2);
    lacuna_ok("run --help");
    assert_holds(out, "--retry-errors");
    assert_int_equal(lacuna("verify ."), 1);
    assert_holds(said, "it has no identity.json");
    assert_int_equal(lacuna("report ."), 1);
    assert_int_equal(lacuna("view ."), 1);
    assert_int_equal(lacuna("view four --port 70000"), 2);
    assert_int_equal(lacuna("repeat four no/such/key"), 2);
    assert_holds(said, "no/such/key");
    assert_int_equal(lacuna("run x.yaml --limit -1"), 2);
    assert_int_equal(lacuna("plan x.yaml --limit 0"), 2);
    assert_holds(said, "--limit takes a number of trials from 1 to 2147483647, not 0");
    assert_int_equal(lacuna("run x.yaml -o ''"), 2);
    assert_int_equal(lacuna("run x.yaml -o x.yaml"), 1);
    assert_holds(said, "x.yaml: is there and no folder; name another folder with -o");
    assert_int_equal(lacuna("run x.yaml -o x.yaml/sub"), 1);
    assert_holds(said, "x.yaml: is there and no folder");
    assert_int_equal(lacuna("run x.yaml -o ."), 1); // somebody's folder
    assert_holds(said, "is not the folder of a run");
}

static void change_text(const char *name, const char *from, const char *to) {
    struct err e = {0};
    struct str text;
    const char *path = path_join(arena, fast_folder(), name);
    ASSERT_OK(file_read(path, 1 << 24, arena, &text, &e), e);
    size_t at = str_find(text, str_from(from), 0);
    assert_true(at != STR_NONE);
    struct buf changed = {0};
    buf_add_str(&changed, str_slice(text, 0, at));
    buf_add_c(&changed, to);
    buf_add_str(&changed, str_slice(text, at + strlen(from), text.n));
    ASSERT_OK(file_write_atomic(path, buf_str(&changed), &e), e);
    buf_free(&changed);
}

// A verdict that was improved by hand is found by the chain, or, in the last line, by scoring
// again.
static void test_verify_finds(void **state) {
    (void)state;
    lacuna_ok("run x.yaml -o seen");
    struct err e = {0};
    struct str ledger;
    const char *path = path_join(arena, fast_folder(), "seen/trials.jsonl");
    ASSERT_OK(file_read(path, 1 << 24, arena, &ledger, &e), e);
    change_text("seen/trials.jsonl", "\"verdict\":\"met\"", "\"verdict\":\"omitted\"");
    assert_int_equal(lacuna("verify seen"), 1);
    assert_holds(out, "NOT sound");
    assert_holds(out, "the chain is broken");
    assert_true(str_find(out, STR("retain"), 0) == STR_NONE); // its texts are there
    ASSERT_OK(file_write_atomic(path, ledger, &e), e);
    lacuna_ok("verify seen");
    // the last line alone, which no later line knows
    size_t last = ledger.n - 1;
    while (ledger.p[last - 1] != '\n') last--;
    size_t at = str_find(ledger, STR("\"verdict\":\"met\""), last);
    if (at == STR_NONE) at = str_find(ledger, STR("\"verdict\":\"omitted\""), last);
    assert_true(at != STR_NONE);
    struct buf changed = {0};
    buf_add_str(&changed, str_slice(ledger, 0, at));
    buf_add_c(&changed, "\"verdict\":\"violated\"");
    size_t rest = str_find(ledger, STR(","), at);
    size_t brace = str_find(ledger, STR("}"), at);
    rest = rest < brace ? rest : brace;
    buf_add_str(&changed, str_slice(ledger, rest, ledger.n));
    ASSERT_OK(file_write_atomic(path, buf_str(&changed), &e), e);
    buf_free(&changed);
    assert_int_equal(lacuna("verify seen"), 1);
    assert_holds(out, "recorded as violated, scored again as");
    change_text("x.json", "\"in_flight\": 2", "\"in_flight\": 3");
    lacuna_ok("repeat seen m/short/-/-/0/0");
    assert_holds(said, "the model is another one than the record's");
    change_text("x.json", "\"in_flight\": 3", "\"in_flight\": 2");
}

// Nobody makes a gate pass by editing what the reports read.
static void test_edited_tolerance(void **state) {
    (void)state;
    sample_experiment(arena, fast_folder(), "bad", 1, "\"in_flight\": 2", "{\"error\": \"boom\"}");
    assert_int_equal(lacuna("run bad.yaml -o edited"), 1);
    change_text("edited/resolved.json", "\"errors\": \"0%\"", "\"errors\": \"100%\"");
    static const char *const verbs[] = {"report edited", "run bad.yaml -o edited", "score edited"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lacuna(verbs[i]), 1);
        assert_holds(said, "edited/resolved.json: its analysis_sha256 is");
    }
}

// Ctrl-C: a clean end, exit code 1, and the command that goes on, which then does.
static void test_interrupted(void **state) {
    (void)state;
    sample_experiment(
        arena, fast_folder(), "h", 1, "\"in_flight\": 2",
        "{\"key\": \"@middle/\", \"while_file\": \"stuck\", \"hang_ms\": 600000}," ANSWER);
    struct err e = {0};
    const char *flag = path_join(arena, fast_folder(), "stuck");
    ASSERT_OK(file_write_atomic(flag, STR(""), &e), e);
    const char *script =
        "cd %s; %s/lacuna run h.yaml -o '%s' > out 2> said & p=$!; "
        "until test -s '%s/trials.jsonl'; do sleep 0.05; done; kill -%s $p; wait $p";
    static const char *const signals[] = {"HUP", "TERM"}; // a terminal that is closed, too
    static const char *const folders[] = {"hung up", "with space"};
    for (int i = 0; i < 2; i++) {
        int status = system(arena_printf(arena, script, fast_folder(), LACUNA_BINARY_DIR,
                                         folders[i], folders[i], signals[i]));
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
    }
    ASSERT_OK(file_read(path_join(arena, fast_folder(), "said"), 1 << 20, arena, &said, &e), e);
    assert_holds(said, "resume with\n  lacuna run h.yaml -o 'with space'\n");
    ASSERT_OK(file_remove(flag, &e), e);
    assert_int_equal(lacuna("verify 'with space'"), 1);
    assert_holds(out, "interrupted");
    assert_holds(out, "first attempts of");
    lacuna_ok("run h.yaml -o 'with space'");
    lacuna_ok("verify 'with space'");
    assert_holds(out, "resume");
}

// ---- view --------------------------------------------------------------------------------------

static void get(int port, const char *target, struct buf *response) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    const char *request =
        arena_printf(arena, "GET %s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", target, port);
    assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    char bytes[4096];
    buf_clear(response);
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;) buf_add(response, bytes, (size_t)n);
    close(fd);
}

static void test_view(void **state) {
    (void)state;
    lacuna_ok("run x.yaml -o viewed");
    int from[2], port = 0;
    assert_int_equal(pipe(from), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(from[1], STDOUT_FILENO);
        close(from[0]);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
        const char *program = arena_printf(arena, "%s/lacuna", LACUNA_BINARY_DIR);
        const char *folder = path_join(arena, fast_folder(), "viewed");
        execl(program, "lacuna", "view", folder, (char *)NULL);
        _exit(9);
    }
    close(from[1]);
    FILE *f = fdopen(from[0], "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "http://127.0.0.1:%d/", &port), 1);
    struct buf response = {0};
    get(port, "/report.html", &response);
    assert_true(str_starts(buf_str(&response), STR("HTTP/1.1 200 OK\r\n")));
    struct str page;
    struct err e = {0};
    const char *path = path_join(arena, fast_folder(), "viewed/report.html");
    ASSERT_OK(file_read(path, 1 << 24, arena, &page, &e), e);
    assert_true(str_ends(buf_str(&response), page));
    get(port, "/facts", &response);
    assert_holds(buf_str(&response), "sessions.jsonl");
    get(port, "/../x.yaml", &response);
    assert_true(str_starts(buf_str(&response), STR("HTTP/1.1 404 ")));
    // those who say nothing, as browsers do in advance, keep neither others waiting nor the program
    // from ending
    int silent[20], status;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 20; i++) {
        silent[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(silent[i], (struct sockaddr *)&address, sizeof address), 0);
    }
    uint64_t begun = clock_ns();
    get(port, "/report.html", &response);
    assert_true(str_ends(buf_str(&response), page));
    assert_true(clock_ns() - begun < 4000000000u);
    buf_free(&response);
    usleep(50000);
    kill(child, SIGTERM);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < 20; i++) close(silent[i]);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_and_again),
        cmocka_unit_test(test_repeat_local),
        cmocka_unit_test(test_repeat_finds_edited_evidence),
        cmocka_unit_test(test_nowhere_to_print),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_verify_finds),
        cmocka_unit_test(test_edited_tolerance),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_view),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
