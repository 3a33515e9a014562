// The HTTP client against a server that does everything wrong.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/endpoint/http.h"
#include "tests/support/http_server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY "sk-te/t-0123456789"

static const struct http_limits patient = {.connect_ms = 60000,
                                           .reply_ms = 120000,
                                           .silence_ms = 60000,
                                           .body_bytes_most = 100000,
                                           .head_bytes_most = 65536};
static const struct http_limits hasty = {.connect_ms = 60000,
                                         .reply_ms = 1500,
                                         .silence_ms = 500,
                                         .body_bytes_most = 100000,
                                         .head_bytes_most = 65536};

struct kit {
    struct http_server *server, *other;
    struct http_client *client;
    char url[64];
    char seen[4096]; // head and body of the last request to `server`
};

// What the path asks for.
static void script(void *context, const struct http_server_request *r,
                   struct http_server_answer *a) {
    struct kit *k = context;
    snprintf(k->seen, sizeof k->seen, STR_FMT STR_FMT, STR_ARG(r->head), STR_ARG(r->body));
    const char *path = str_to_c(test_arena, str_slice(r->path, 1, r->path.n));
    buf_add_c(&a->body, "{\"whole\": true}");
    if (strcmp(path, "headers") == 0) a->header_lines = 100000;
    if (strcmp(path, "endless") == 0) a->endless = true, a->length = -2;
    if (strcmp(path, "long") == 0) a->length = 1000, a->sent_most = 5;
    if (strcmp(path, "short") == 0) {
        a->length = 5;
        // Else the surplus may meet the next request on the connection.
        buf_add_c(&a->headers, "Connection: close\r\n");
    }
    if (strcmp(path, "unsaid") == 0) a->length = -2;
    if (strcmp(path, "drop") == 0) a->drop = true;
    if (strcmp(path, "garbage") == 0) buf_add(&a->raw, "\0\1\2 no HTTP at all\r\n\r\n", 23);
    if (strcmp(path, "late") == 0) a->delay_ms = 60000;
    if (strcmp(path, "silent") == 0) a->drip_ms = 60000;
    if (strcmp(path, "drip") == 0) a->drip_ms = 200;
    if (strcmp(path, "thinking") == 0) a->body_delay_ms = 900;
    if (strcmp(path, "refused") == 0) {
        a->status = 429;
        buf_add_c(&a->headers, "retry-after:  7 \r\n");
        buf_clear(&a->body);
        buf_printf(&a->body, "who sends Bearer %s twice, %s?", KEY, KEY);
        buf_add_c(&a->body,
                  " \"sk-te\\/t-0123456789\", \"\\u0073k-te/t\\u002D0123456789\", sk-te/t");
    }
    if (strcmp(path, "near") == 0 || strcmp(path, "far") == 0 || strcmp(path, "circle") == 0) {
        a->status = 307;
        if (path[0] == 'n') buf_add_c(&a->headers, "Location: /there\r\nRetry-After: 9\r\n");
        if (path[0] == 'c') buf_add_c(&a->headers, "Location: /circle\r\n");
        if (path[0] == 'f')
            buf_printf(&a->headers, "Location: http://127.0.0.1:%d/\r\n",
                       http_server_port(k->other));
    }
}

static void open_with(struct kit *k, const struct http_limits *limits) {
    struct err e = {0};
    *k = (struct kit){.server = http_server_open(script, k), .other = http_server_open(script, k)};
    ASSERT_OK(http_open(limits, KEY, NULL, &k->client, &e), e);
}

static void open_kit(struct kit *k) {
    open_with(k, &patient);
}

static void close_kit(struct kit *k) {
    http_close(k->client);
    http_server_close(k->server);
    http_server_close(k->other);
}

static void start(struct kit *k, const char *path, void *owner) {
    struct err e = {0};
    snprintf(k->url, sizeof k->url, "http://127.0.0.1:%d/%s", http_server_port(k->server), path);
    ASSERT_OK(http_start(k->client, k->url, STR("{\"ask\": 1}"), owner, &e), e);
}

static const struct http_reply *post(struct kit *k, const char *path) {
    start(k, path, k);
    const struct http_reply *r = http_next(k->client, 600000);
    assert_non_null(r);
    assert_ptr_equal(r->owner, k);
    assert_int_equal(http_in_flight(k->client), 0);
    return r;
}

static void a_whole_reply_comes_with_its_facts(void **state) {
    (void)state;
    struct kit k;
    open_kit(&k);
    const struct http_reply *r = post(&k, "chat");
    assert_int_equal(r->failure, HTTP_WHOLE);
    assert_int_equal(r->status, 200);
    assert_true(str_equal_c(r->body, "{\"whole\": true}") && str_equal_c(r->server, "script/1"));
    assert_int_equal(r->retry_after.n, 0);
    assert_true(r->wall_ms > 0 && r->first_byte_ms > 0 && r->first_byte_ms <= r->wall_ms);
    assert_non_null(strstr(k.seen, "POST /chat HTTP/1.1\r\n"));
    assert_non_null(strstr(k.seen, "\r\nAuthorization: Bearer " KEY "\r\n"));
    assert_non_null(strstr(k.seen, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(k.seen, "\r\n\r\n{\"ask\": 1}"));
    r = post(&k, "unsaid");
    assert_true(r->failure == HTTP_WHOLE && str_equal_c(r->body, "{\"whole\": true}"));
    struct err e = {0};
    snprintf(k.url, sizeof k.url, "http://127.0.0.1:%d/models", http_server_port(k.server));
    ASSERT_OK(http_start(k.client, k.url, (struct str){0}, NULL, &e), e);
    r = http_next(k.client, 600000);
    assert_true(r != NULL && r->status == 200);
    assert_non_null(strstr(k.seen, "GET /models HTTP/1.1\r\n"));
    close_kit(&k);
}

static void the_key_never_comes_back(void **state) {
    (void)state;
    struct kit k;
    open_kit(&k);
    const struct http_reply *r = post(&k, "refused");
    assert_true(r->status == 429 && str_equal_c(r->retry_after, "7"));
    assert_true(str_equal_c(r->body,
                            "who sends Bearer ****************** twice, ******************? "
                            "\"*******************\", \"****************************\", sk-te/t"));
    close_kit(&k);
}

static void every_fault_ends_and_is_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *path;
        enum http_failure failure;
        int status;
        const char *text;
    } cases[] = {
        {"headers", HTTP_TOO_LARGE, 200, "more than 65536 bytes of headers"},
        {"endless", HTTP_TOO_LARGE, 200, "more than 100000 bytes of reply"},
        {"long", HTTP_DROPPED, 200, ""},
        {"drop", HTTP_DROPPED, 0, ""},
        {"garbage", HTTP_NOT_HTTP, 0, ""},
        {"short", HTTP_WHOLE, 200, ""},
    };
    struct kit k;
    open_kit(&k);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct http_reply *r = post(&k, cases[i].path);
        if (r->failure != cases[i].failure || strstr(r->text, cases[i].text) == NULL ||
            r->status != cases[i].status)
            fail_msg("%s: failure %d, status %d: %s", cases[i].path, (int)r->failure, r->status,
                     r->text);
        assert_true((r->failure == HTTP_WHOLE) == (r->text[0] == '\0'));
    }
    const struct http_reply *r = post(&k, "short");
    if (!str_equal_c(r->body, "{\"who")) fail_msg("short: " STR_FMT, STR_ARG(r->body));
    r = post(&k, "chat"); // the client goes on as if nothing had been
    assert_int_equal(r->status, 200);
    close_kit(&k);
}

static void no_server_is_waited_for_without_end(void **state) {
    (void)state;
    struct kit k;
    open_with(&k, &hasty);
    static const char *const paths[] = {"late", "drip"};
    for (size_t i = 0; i < 2; i++) {
        const struct http_reply *r = post(&k, paths[i]);
        if (r->failure != HTTP_SLOW) fail_msg("%s: failure %d", paths[i], (int)r->failure);
        assert_true(r->text[0] != '\0');
    }
    const struct http_reply *r = post(&k, "silent");
    assert_int_equal(r->failure, HTTP_STALLED);
    assert_string_equal(r->text, "the server began a reply and then sent nothing for 1 s");
    // Headers that come at once say nothing about the reply.
    r = post(&k, "thinking");
    assert_true(r->failure == HTTP_WHOLE && str_equal_c(r->body, "{\"whole\": true}"));
    close_kit(&k);
}

static void nobody_there_and_no_tls_are_told_apart(void **state) {
    (void)state;
    struct kit k;
    struct err e = {0};
    open_kit(&k);
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", http_server_port(k.server));
    ASSERT_OK(http_start(k.client, url, STR("{}"), NULL, &e), e);
    const struct http_reply *r = http_next(k.client, 600000);
    assert_true(r != NULL && r->failure == HTTP_TLS && r->status == 0);
    int port = http_server_port(k.other);
    http_server_close(k.other);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    ASSERT_OK(http_start(k.client, url, STR("{}"), NULL, &e), e);
    r = http_next(k.client, 600000);
    assert_true(r != NULL && r->failure == HTTP_UNREACHABLE);
    k.other = http_server_open(script, &k);
    ASSERT_OK(http_start(k.client, "http://no-such-host.invalid/", STR("{}"), NULL, &e), e);
    r = http_next(k.client, 600000);
    assert_true(r != NULL && r->failure == HTTP_UNREACHABLE);
    close_kit(&k);
}

static void redirects_stay_with_the_host(void **state) {
    (void)state;
    struct kit k;
    open_kit(&k);
    const struct http_reply *r = post(&k, "near");
    assert_true(r->failure == HTTP_WHOLE && r->status == 200 && r->retry_after.n == 0);
    assert_non_null(strstr(k.seen, "POST /there HTTP/1.1\r\n"));
    assert_non_null(strstr(k.seen, "{\"ask\": 1}"));
    r = post(&k, "far");
    assert_int_equal(r->failure, HTTP_REDIRECTED);
    assert_int_equal(http_server_requests(k.other), 0);
    int before = http_server_requests(k.server);
    assert_int_equal(post(&k, "circle")->failure, HTTP_REDIRECTED);
    assert_int_equal(http_server_requests(k.server) - before, 4);
    close_kit(&k);
}

// A proxy of the environment is for other machines: over plain http it would get the key.
static void this_machine_is_asked_without_a_proxy(void **state) {
    (void)state;
    struct kit k;
    char proxy[64];
    open_kit(&k);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", http_server_port(k.other));
    setenv("http_proxy", proxy, 1);
    setenv("all_proxy", proxy, 1);
    const struct http_reply *r = post(&k, "chat");
    assert_true(r->failure == HTTP_WHOLE && r->status == 200);
    assert_int_equal(http_server_requests(k.other), 0);
    struct err e = {0};
    ASSERT_OK(http_start(k.client, "http://no-such-host.invalid/chat", STR("{}"), &k, &e), e);
    r = http_next(k.client, 600000);
    assert_true(r != NULL && http_server_requests(k.other) == 1); // the others go by it
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    close_kit(&k);
}

static void many_fly_at_once(void **state) {
    (void)state;
    enum { MANY = 64 };
    struct kit k;
    bool seen[MANY] = {0};
    open_kit(&k);
    for (int i = 0; i < MANY; i++) start(&k, i % 8 == 7 ? "drop" : "chat", &seen[i]);
    assert_int_equal(http_in_flight(k.client), MANY);
    for (int i = 0; i < MANY; i++) {
        const struct http_reply *r = http_next(k.client, 600000);
        assert_non_null(r);
        bool *mine = r->owner;
        assert_false(*mine);
        *mine = true;
        assert_int_equal(r->failure, (mine - seen) % 8 == 7 ? HTTP_DROPPED : HTTP_WHOLE);
    }
    assert_null(http_next(k.client, 0));
    for (int i = 0; i < 8; i++) start(&k, "late", NULL); // dropped with the client
    assert_null(http_next(k.client, 50));
    close_kit(&k);
}

static void *wake_soon(void *client) {
    usleep(50000);
    http_wake(client);
    return NULL;
}

static void a_wait_can_be_ended(void **state) {
    (void)state;
    struct kit k;
    pthread_t thread;
    open_kit(&k);
    start(&k, "late", NULL);
    uint64_t began = clock_ns();
    pthread_create(&thread, NULL, wake_soon, k.client);
    assert_null(http_next(k.client, 600000));
    assert_true(CLOCK_MS(clock_ns() - began) < 500000);
    pthread_join(thread, NULL);
    close_kit(&k);
}

static void addresses_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *url, *complaint; // NULL: good
        bool clear;
    } cases[] = {
        {"https://api.example.com/v1", NULL, false},
        {"http://127.0.0.1:8000/v1", NULL, false},
        {"http://localhost:8000/v1", NULL, false},
        {"http://[::1]:8000/v1", NULL, false},
        {"http://gpu-7:8000/v1", NULL, true},
        {"http://127.example.com/v1", NULL, true},
        {"http://127.8.0.1/v1", NULL, false},
        {"gpu-7:8000/v1", "is no address such as", false},
        {"ftp://host/v1", "is no address such as", false},
        {"https://", "is no address such as", false},
        {"", "is no address such as", false},
        {"https://me:secret@host/v1", "holds a user", false},
        {"https://host/v1?key=secret", "holds a query", false},
        {"https://host/v1#x", "holds a fragment", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        bool clear;
        int result = http_check_url(cases[i].url, &clear, &e);
        if (cases[i].complaint == NULL) {
            ASSERT_OK(result, e);
            assert_int_equal(clear, cases[i].clear);
            continue;
        }
        ASSERT_FAILS(result, e, ERR_CONFIG, cases[i].complaint);
        assert_null(strstr(e.text, "secret"));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_whole_reply_comes_with_its_facts),
        TEST(the_key_never_comes_back),
        TEST(every_fault_ends_and_is_told_apart),
        TEST(no_server_is_waited_for_without_end),
        TEST(nobody_there_and_no_tls_are_told_apart),
        TEST(redirects_stay_with_the_host),
        TEST(this_machine_is_asked_without_a_proxy),
        TEST(many_fly_at_once),
        TEST(a_wait_can_be_ended),
        TEST(addresses_are_checked),
    };
    return cmocka_run_group_tests_name("endpoint_http", tests, NULL, NULL);
}
