// Whom the HTTP client trusts: certificates of an authority made for this test.
#include "tests/support/http_server.h"
#include "tests/support/support.h"
#include "tests/support/tls_front.h"

#include "engine/endpoint/http.h"

#include <stdio.h>
#include <string.h>

#define KEY "sk-test-0123456789"

static const struct http_limits limits = {.connect_ms = 60000,
                                          .reply_ms = 60000,
                                          .silence_ms = 60000,
                                          .body_bytes_most = 100000,
                                          .head_bytes_most = 65536};

static void script(void *context, const struct http_server_request *r,
                   struct http_server_answer *a) {
    (void)context;
    (void)r;
    buf_add_c(&a->body, "{\"whole\": true}");
}

// What one request through such a front comes to; the text is checked, and that nothing got behind
// the front unless all was well.
static void ask(enum tls_front_certificate certificate, const char *host, const char *ca_file,
                enum http_failure failure, const char *says) {
    struct http_server *server = http_server_open(script, NULL);
    struct tls_front *front = tls_front_open(certificate, http_server_port(server));
    struct http_client *client;
    struct err e = {0};
    char url[64];
    snprintf(url, sizeof url, "https://%s:%d/v1", host, tls_front_port(front));
    ASSERT_OK(http_open(&limits, KEY, ca_file, &client, &e), e);
    ASSERT_OK(http_start(client, url, STR("{}"), NULL, &e), e);
    const struct http_reply *r = http_next(client, 600000);
    assert_non_null(r);
    if (r->failure != failure || strstr(r->text, says) == NULL)
        fail_msg("certificate %d: failure %d: %s", (int)certificate, (int)r->failure, r->text);
    assert_int_equal(http_server_requests(server), failure == HTTP_WHOLE);
    if (failure == HTTP_WHOLE) assert_true(str_equal_c(r->body, "{\"whole\": true}"));
    http_close(client);
    tls_front_close(front);
    http_server_close(server);
}

static void only_who_is_trusted_is_asked(void **state) {
    (void)state;
    char ca[300];
    snprintf(ca, sizeof ca, "%s/ca.pem", test_folder());
    tls_front_authority(ca);
    ask(TLS_GOOD, "127.0.0.1", ca, HTTP_WHOLE, "");
    ask(TLS_GOOD, "localhost", ca, HTTP_WHOLE, "");
    ask(TLS_GOOD, "127.0.0.1", NULL, HTTP_TLS, "; name the certificate of the authority");
    ask(TLS_INCOMPLETE, "127.0.0.1", ca, HTTP_TLS, "; name the certificate of the authority");
    ask(TLS_SELF_SIGNED, "127.0.0.1", ca, HTTP_TLS, "; name the certificate of the authority");
    ask(TLS_OTHER_NAME, "127.0.0.1", ca, HTTP_TLS, "; ask by a name that its certificate bears");
    ask(TLS_EXPIRED, "127.0.0.1", ca, HTTP_TLS, "; it needs a new one, unless this");
    ask(TLS_NOT_YET, "127.0.0.1", ca, HTTP_TLS, "; it needs a new one, unless this");
}

static void a_file_of_authorities_is_looked_at_first(void **state) {
    (void)state;
    struct http_client *client;
    struct err e = {0};
    char path[300];
    ASSERT_FAILS(http_open(&limits, NULL, "/no/such.pem", &client, &e), e, ERR_IO,
                 "ca_file or SSL_CERT_FILE: ");
    snprintf(path, sizeof path, "%s/key.pem", test_folder());
    test_write(path, STR("-----BEGIN PRIVATE KEY-----\n"));
    ASSERT_FAILS(http_open(&limits, NULL, path, &client, &e), e, ERR_CONFIG,
                 "holds no certificate in PEM form");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_is_trusted_is_asked),
        cmocka_unit_test(a_file_of_authorities_is_looked_at_first),
    };
    return cmocka_run_group_tests_name("endpoint_tls", tests, NULL, NULL);
}
