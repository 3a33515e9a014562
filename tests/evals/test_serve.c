// The pages of a run folder: only fixed names, only from this machine, text never as markup.
#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_text(const char *name, const char *text) {
    struct err e = {0};
    struct arena *a = arena_create("test");
    ASSERT_OK(file_write_atomic(path_join(a, fast_folder(), name), str_from(text), &e), e);
    arena_destroy(a);
}

static int setup(void **state) {
    (void)state;
    write_text("report.html", "<p>the report</p>");
    write_text("identity.json", "{\"secret\":1}");
    write_text("manifest.json", "{\"a\":\"<script>alert(1)</script>\"}");
    return 0;
}

// Status and body of "METHOD TARGET" with the given head lines.
static void ask(const char *line, const char *head, struct buf *response, int *status,
                const char **body) {
    struct buf request = {0};
    buf_printf(&request, "%s HTTP/1.1\r\n%s\r\n", line, head);
    buf_clear(response);
    serve_request(fast_folder(), 8080, buf_str(&request), response);
    assert_int_equal(sscanf(response->p, "HTTP/1.1 %d ", status), 1);
    *body = strstr(response->p, "\r\n\r\n") + 4;
    assert_non_null(strstr(response->p, "default-src 'none'"));
    buf_free(&request);
}

static int status_of(const char *line, const char *head) {
    struct buf response = {0};
    int status;
    const char *body;
    ask(line, head, &response, &status, &body);
    if (status != 200) assert_null(strstr(body, "secret"));
    buf_free(&response);
    return status;
}

#define HOST "Host: 127.0.0.1:8080\r\n"

static void test_pages(void **state) {
    (void)state;
    struct buf response = {0};
    int status;
    const char *body;
    ask("GET /report.html", HOST, &response, &status, &body);
    assert_int_equal(status, 200);
    assert_string_equal(body, "<p>the report</p>");
    assert_non_null(strstr(response.p, "Content-Length: 17\r\n"));
    ask("HEAD /report.html", "host:localhost:8080\r\n", &response, &status, &body);
    assert_int_equal(status, 200);
    assert_string_equal(body, "");
    assert_non_null(strstr(response.p, "Content-Length: 17\r\n"));
    ask("GET /?x=1", HOST, &response, &status, &body);
    assert_int_equal(status, 200);
    assert_non_null(strstr(body, "href=\"/report.html\""));
    assert_null(strstr(body, "href=\"/junit.xml\"")); // it is not there
    ask("GET /facts", HOST, &response, &status, &body);
    assert_int_equal(status, 200);
    assert_null(strstr(body, "<script>"));
    assert_non_null(strstr(body, "&lt;script&gt;"));
    assert_int_equal(status_of("GET /junit.xml", HOST), 404);
    buf_free(&response);
}

static void test_nothing_else(void **state) {
    (void)state;
    static const char *const lines[] = {
        "GET /identity.json",      "GET /../identity.json",     "GET //identity.json",
        "GET /report.html/..",     "GET /%2e%2e/identity.json", "GET /./report.html",
        "GET report.html",         "GET http://127.0.0.1/",     "GET /etc/passwd",
        "GET /report.html%00.txt", "GET /REPORT.HTML",          "GET /inputs/pack.zst"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(status_of(lines[i], HOST), 404);
    assert_int_equal(status_of("POST /", HOST), 405);
    assert_int_equal(status_of("PUT /report.html", HOST), 405);
    // a page elsewhere that lets its name point here
    assert_int_equal(status_of("GET /", "Host: evil.example:8080\r\n"), 403);
    assert_int_equal(status_of("GET /", "Host: 127.0.0.1:8081\r\n"), 403);
    assert_int_equal(status_of("GET /", ""), 403);
    assert_int_equal(status_of("GET /", HOST "Host: evil.example\r\n"), 403);
}

static void test_odd_requests(void **state) {
    (void)state;
    struct rng r = rng_open(3, "test", "serve");
    struct buf response = {0};
    char text[SERVE_REQUEST_BYTES_MOST + 1];
    memset(text, 'a', sizeof text);
    serve_request(fast_folder(), 80, (struct str){text, sizeof text}, &response);
    assert_true(str_starts(buf_str(&response), STR("HTTP/1.1 431")));
    static const char seed[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    for (int round = 0; round < 20000; round++) {
        size_t n = sizeof seed - 1;
        memcpy(text, seed, n);
        for (uint64_t k = rng_below(&r, 4); k > 0; k--)
            text[rng_below(&r, n)] = (char)rng_below(&r, 256);
        n = rng_below(&r, 2) ? n : (size_t)rng_below(&r, n);
        buf_clear(&response);
        // a copy of its exact size, so that a read behind it is noticed
        char *copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy + 1, text, n);
        serve_request(fast_folder(), 80, (struct str){copy + 1, n}, &response);
        free(copy);
        assert_true(str_starts(buf_str(&response), STR("HTTP/1.1 ")));
    }
    buf_free(&response);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_nothing_else),
        cmocka_unit_test(test_odd_requests),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
