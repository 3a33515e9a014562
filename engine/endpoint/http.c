#include "engine/endpoint/http.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/endpoint/secret.h"

#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define REDIRECTS_MOST 3
#define IDLE_CONNECTIONS_MOST 64L

struct transfer {
    struct transfer *next;
    struct http_client *client;
    CURL *easy;
    char *url;
    struct buf request; // body; p == NULL: a GET
    size_t sent;        // of it
    struct buf response, retry_after, server;
    size_t head_bytes;
    int redirects;
    uint64_t began_ns, first_ns, last_ns; // first_ns 0: no byte came yet
    bool too_large;
    char error[CURL_ERROR_SIZE];
    struct http_reply reply;
};

struct http_client {
    struct http_limits limits;
    const char *key;
    const char *ca_file;
    CURLM *multi;
    struct curl_slist *headers;
    struct transfer *flying; // handed to libcurl
    struct transfer *done;   // given out, until the next call
    int in_flight;
    int wake[2];
};

// ---- one transfer ------------------------------------------------------------------------------

static void transfer_free(struct transfer *t) {
    if (t == NULL) return;
    curl_easy_cleanup(t->easy);
    free(t->url);
    buf_free(&t->request);
    buf_free(&t->response);
    buf_free(&t->retry_after);
    buf_free(&t->server);
    free(t);
}

static void note_byte(struct transfer *t) {
    t->last_ns = clock_ns();
    if (t->first_ns == 0) t->first_ns = t->last_ns;
}

static size_t take_body(char *bytes, size_t one, size_t n, void *context) {
    struct transfer *t = context;
    (void)one;
    note_byte(t);
    t->too_large = n > t->client->limits.body_bytes_most - t->response.n;
    if (t->too_large) return 0;
    buf_add(&t->response, bytes, n);
    return n;
}

static void take_value(struct str line, struct str name, struct buf *out) {
    if (line.n <= name.n || strncasecmp(line.p, name.p, name.n) != 0) return;
    buf_clear(out);
    buf_add_str(out, str_head(str_trim(str_slice(line, name.n, line.n)), 128));
}

static size_t take_header(char *bytes, size_t one, size_t n, void *context) {
    struct transfer *t = context;
    struct str line = {bytes, n};
    (void)one;
    note_byte(t);
    t->too_large = n > t->client->limits.head_bytes_most - t->head_bytes;
    if (t->too_large) return 0;
    t->head_bytes += n;
    if (str_starts(line, STR("HTTP/"))) buf_clear(&t->retry_after); // of a response before this one
    take_value(line, STR("Retry-After:"), &t->retry_after);
    take_value(line, STR("Server:"), &t->server);
    return n;
}

// The body goes by a callback that cannot go back: given the bytes, libcurl would send a request
// again by itself when a connection that it had kept turns out to be closed, and nobody would know.
static size_t give_body(char *to, size_t one, size_t n, void *context) {
    struct transfer *t = context;
    (void)one;
    if (n > t->request.n - t->sent) n = t->request.n - t->sent;
    memcpy(to, t->request.p + t->sent, n);
    t->sent += n;
    return n;
}

static bool host_is_loopback(const char *host) {
    struct in_addr address;
    if (inet_pton(AF_INET, host, &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

// What is meant for this machine goes by no proxy: over plain http it would carry the key there.
static bool url_is_loopback(const char *url) {
    CURLU *u = curl_url();
    char *host = NULL;
    bool loopback = curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                    host_is_loopback(host);
    curl_free(host);
    curl_url_cleanup(u);
    return loopback;
}

static void transfer_begin(struct transfer *t) {
    CURL *easy = t->easy;
    struct http_client *c = t->client;
    buf_clear(&t->response);
    buf_clear(&t->server);
    t->head_bytes = 0;
    t->first_ns = 0;
    t->sent = 0;
    t->error[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, t->url);
    if (url_is_loopback(t->url)) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    CURLMcode code = curl_multi_add_handle(c->multi, easy);
    assert(code == CURLM_OK);
    (void)code;
}

static void set_options(struct transfer *t) {
    CURL *easy = t->easy;
    const struct http_client *c = t->client;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lacuna/" LACUNA_VERSION);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->limits.connect_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)c->limits.reply_ms);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    if (c->ca_file != NULL) curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
    if (t->request.p == NULL) return;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request.n);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, t);
}

int http_start(struct http_client *c, const char *url, struct str body, void *owner,
               struct err *e) {
    struct transfer *t = calloc(1, sizeof *t);
    if (t == NULL) mem_exhausted("a request", sizeof *t);
    t->client = c;
    t->reply.owner = owner;
    t->url = strdup(url);
    t->easy = curl_easy_init();
    if (t->url == NULL || t->easy == NULL) {
        transfer_free(t);
        FAIL(e, ERR_PROVIDER, "libcurl gives no handle for another request");
    }
    if (body.p != NULL) buf_add_str(&t->request, body);
    t->began_ns = clock_ns();
    set_options(t);
    transfer_begin(t);
    t->next = c->flying;
    c->flying = t;
    c->in_flight++;
    return 0;
}

// ---- what came of it ---------------------------------------------------------------------------

static bool same_part(CURLU *a, CURLU *b, CURLUPart part) {
    char *x = NULL, *y = NULL;
    bool same = curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(x, y) == 0;
    curl_free(x);
    curl_free(y);
    return same;
}

static bool same_origin(const char *url, const char *other) {
    CURLU *a = curl_url(), *b = curl_url();
    bool same = curl_url_set(a, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_set(b, CURLUPART_URL, other, 0) == CURLUE_OK &&
                same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_HOST) &&
                same_part(a, b, CURLUPART_PORT);
    curl_url_cleanup(a);
    curl_url_cleanup(b);
    return same;
}

static enum http_failure failure_of(const struct transfer *t, CURLcode code) {
    curl_off_t connected = 0;
    switch (code) {
    case CURLE_OK: return HTTP_WHOLE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY: return HTTP_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT:
        curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
        return connected == 0 ? HTTP_UNREACHABLE : HTTP_SLOW;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS: return HTTP_TLS;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return HTTP_NOT_HTTP;
    default: return t->too_large ? HTTP_TOO_LARGE : HTTP_DROPPED;
    }
}

static void say(struct transfer *t, enum http_failure failure, const char *text) {
    struct http_reply *r = &t->reply;
    r->failure = failure;
    struct str head = str_head(str_from(text), sizeof r->text - 1);
    memcpy(r->text, head.p, head.n);
    r->text[head.n] = '\0';
    secret_hide(t->client->key, r->text, head.n);
}

// What to do about a certificate, by OpenSSL's word on it (X509_V_ERR_..., x509_vfy.h); libcurl
// itself compares the names.
static const char *tls_advice(const struct transfer *t, CURLcode code) {
    enum {
        NOT_LOOKED_AT = 1,
        NOT_YET_VALID = 9,
        EXPIRED = 10,
        SELF_SIGNED = 18,
        NOT_TRUSTED_MOST = 21
    };
    long verdict = 0;
    curl_easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
    if (code != CURLE_PEER_FAILED_VERIFICATION) return "is it http:// that it speaks?";
    if (verdict == NOT_YET_VALID || verdict == EXPIRED)
        return "it needs a new one, unless this machine's clock is wrong";
    if (verdict >= SELF_SIGNED && verdict <= NOT_TRUSTED_MOST)
        return "name the certificate of the authority that signed it in ca_file, if you trust it";
    return verdict <= NOT_LOOKED_AT ? "ask by a name that its certificate bears"
                                    : "it cannot be trusted";
}

bool http_may_pass(enum http_failure f) {
    return f == HTTP_UNREACHABLE || f == HTTP_DROPPED || f == HTTP_SLOW || f == HTTP_STALLED;
}

static const char *failure_text(const struct transfer *t, CURLcode code) {
    return t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
}

static void say_tls(struct transfer *t, CURLcode code) {
    struct buf text = {0};
    buf_printf(&text, "%.160s; %s", failure_text(t, code), tls_advice(t, code));
    say(t, HTTP_TLS, text.p);
    buf_free(&text);
}

static void say_too_large(struct transfer *t) {
    const struct http_limits *l = &t->client->limits;
    struct buf text = {0};
    bool head = t->response.n == 0;
    buf_printf(&text, "the server sent more than %zu bytes of %s",
               head ? l->head_bytes_most : l->body_bytes_most, head ? "headers" : "reply");
    say(t, HTTP_TOO_LARGE, text.p);
    buf_free(&text);
}

static void say_stalled(struct transfer *t) {
    struct buf text = {0};
    buf_printf(&text, "the server began a reply and then sent nothing for %u s",
               (t->client->limits.silence_ms + 999) / 1000);
    say(t, HTTP_STALLED, text.p);
    buf_free(&text);
}

// True: the same request is on its way to where the server pointed.
static bool follow(struct transfer *t) {
    char *to = NULL;
    const int status = t->reply.status;
    if (status != 301 && status != 302 && status != 307 && status != 308) return false;
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to);
    if (to == NULL) return false;
    if (!same_origin(t->url, to)) {
        say(t, HTTP_REDIRECTED,
            "the server points to another host, which gets neither prompt nor key; give that "
            "address as endpoint if it is the right one");
        return false;
    }
    if (++t->redirects > REDIRECTS_MOST) {
        say(t, HTTP_REDIRECTED, "the server points from one address to the next without an end");
        return false;
    }
    char *url = strdup(to);
    if (url == NULL) mem_exhausted("an address", strlen(to));
    free(t->url);
    t->url = url;
    transfer_begin(t);
    return true;
}

static void unlink_transfer(struct http_client *c, struct transfer *t) {
    struct transfer **at = &c->flying;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    c->in_flight--;
}

static void read_status(struct transfer *t) {
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->reply.status = (int)status;
}

static const struct http_reply *give_out(struct http_client *c, struct transfer *t) {
    struct http_reply *r = &t->reply;
    unlink_transfer(c, t);
    secret_hide(c->key, t->response.p, t->response.n);
    secret_hide(c->key, t->server.p, t->server.n);
    r->body = buf_str(&t->response);
    r->retry_after = buf_str(&t->retry_after);
    r->server = buf_str(&t->server);
    r->wall_ms = CLOCK_MS(clock_ns() - t->began_ns);
    r->first_byte_ms = t->first_ns > 0 ? CLOCK_MS(t->first_ns - t->began_ns) : 0;
    c->done = t;
    return r;
}

// NULL: it goes on elsewhere.
static const struct http_reply *finish(struct http_client *c, struct transfer *t, CURLcode code) {
    read_status(t);
    curl_multi_remove_handle(c->multi, t->easy);
    enum http_failure failure = failure_of(t, code);
    if (failure == HTTP_TOO_LARGE)
        say_too_large(t);
    else if (failure == HTTP_TLS)
        say_tls(t, code);
    else if (failure != HTTP_WHOLE)
        say(t, failure, failure_text(t, code));
    else if (follow(t))
        return NULL;
    return give_out(c, t);
}

static const struct http_reply *collect(struct http_client *c) {
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;) {
        struct transfer *t = NULL;
        if (m->msg != CURLMSG_DONE) continue;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        const struct http_reply *r = finish(c, t, code);
        if (r != NULL) return r;
    }
    return NULL;
}

// A transfer that began to answer and then fell silent; *wait_ms shrinks to when the next one may.
static const struct http_reply *find_silent(struct http_client *c, uint64_t now,
                                            uint32_t *wait_ms) {
    for (struct transfer *t = c->flying; t != NULL; t = t->next) {
        if (t->response.n == 0) continue; // headers may come long before there is anything to say
        uint64_t silent_ms = (now - t->last_ns) / 1000000u;
        if (now > t->last_ns && silent_ms >= c->limits.silence_ms) {
            read_status(t);
            curl_multi_remove_handle(c->multi, t->easy);
            say_stalled(t);
            return give_out(c, t);
        }
        uint32_t left = (uint32_t)(c->limits.silence_ms - silent_ms);
        if (left < *wait_ms) *wait_ms = left;
    }
    return NULL;
}

static bool woken(struct http_client *c) {
    char bytes[64];
    bool any = false;
    while (read(c->wake[0], bytes, sizeof bytes) > 0) any = true;
    return any;
}

const struct http_reply *http_next(struct http_client *c, uint32_t wait_ms) {
    transfer_free(c->done);
    c->done = NULL;
    const uint64_t end = clock_ns() + (uint64_t)wait_ms * 1000000u;
    for (;;) {
        int running;
        curl_multi_perform(c->multi, &running);
        const struct http_reply *r = collect(c);
        if (r != NULL) return r;
        const uint64_t now = clock_ns();
        uint32_t left = now < end ? (uint32_t)((end - now + 999999u) / 1000000u) : 0;
        if ((r = find_silent(c, now, &left)) != NULL) return r;
        if (woken(c) || now >= end) return NULL;
        struct curl_waitfd wake = {.fd = c->wake[0], .events = CURL_WAIT_POLLIN};
        curl_multi_poll(c->multi, &wake, 1, (int)(left < 1000 ? left : 1000), NULL);
    }
}

int http_in_flight(const struct http_client *c) {
    return c->in_flight;
}

void http_wake(struct http_client *c) {
    int saved = errno;
    // The pipe is non-blocking; when it is full, somebody has woken the wait already.
    ssize_t done = write(c->wake[1], "", 1);
    (void)done;
    errno = saved;
}

// ---- the client --------------------------------------------------------------------------------

static void add_header(struct http_client *c, const char *line) {
    struct curl_slist *longer = curl_slist_append(c->headers, line);
    if (longer == NULL) mem_exhausted("headers", strlen(line));
    c->headers = longer;
}

static int check_ca_file(const char *path, struct err *e) {
    struct file_map map;
    if (path == NULL) return 0;
    if (file_map_open(path, &map, e) != 0) return err_prefix(e, "ca_file or SSL_CERT_FILE");
    const bool pem = memmem(map.p, map.bytes, "-----BEGIN CERTIFICATE-----",
                            strlen("-----BEGIN CERTIFICATE-----"));
    file_map_close(&map);
    if (pem) return 0;
    FAIL(e, ERR_CONFIG,
         "ca_file or SSL_CERT_FILE: %s holds no certificate in PEM form (BEGIN CERTIFICATE)", path);
}

int http_open(const struct http_limits *limits, const char *key, const char *ca_file,
              struct http_client **out, struct err *e) {
    TRY(check_ca_file(ca_file, e));
    struct http_client *c = calloc(1, sizeof *c);
    if (c == NULL) mem_exhausted("the HTTP client", sizeof *c);
    *c = (struct http_client){.limits = *limits, .key = key, .ca_file = ca_file, .wake = {-1, -1}};
    curl_global_init(CURL_GLOBAL_DEFAULT);
    c->multi = curl_multi_init();
    if (c->multi == NULL || pipe2(c->wake, O_NONBLOCK | O_CLOEXEC) != 0) {
        http_close(c);
        FAIL(e, ERR_IO, "the HTTP client cannot be set up: %s", strerror(errno));
    }
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MOST);
    add_header(c, "Content-Type: application/json");
    add_header(c, "Accept: application/json, text/event-stream");
    add_header(c, "Expect:"); // no pause before a long prompt
    if (key != NULL) {
        struct buf line = {0};
        buf_printf(&line, "Authorization: Bearer %s", key);
        add_header(c, line.p);
        buf_free(&line);
    }
    *out = c;
    return 0;
}

void http_close(struct http_client *c) {
    if (c == NULL) return;
    for (struct transfer *t = c->flying, *next; t != NULL; t = next) {
        next = t->next;
        curl_multi_remove_handle(c->multi, t->easy);
        transfer_free(t);
    }
    transfer_free(c->done);
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    for (int i = 0; i < 2; i++)
        if (c->wake[i] >= 0) close(c->wake[i]);
    free(c);
    curl_global_cleanup();
}

static int check_parts(CURLU *u, const char *url, bool *clear, struct err *e) {
    static const struct {
        CURLUPart part;
        const char *name;
    } unwanted[] = {{CURLUPART_USER, "a user"},
                    {CURLUPART_PASSWORD, "a password"},
                    {CURLUPART_QUERY, "a query"},
                    {CURLUPART_FRAGMENT, "a fragment"}};
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        char *text = NULL;
        bool there = curl_url_get(u, unwanted[i].part, &text, 0) == CURLUE_OK;
        curl_free(text);
        if (there)
            FAIL(e, ERR_CONFIG,
                 "the address holds %s, and it stands in every record; a key belongs into the "
                 "variable that api_key_env names",
                 unwanted[i].name);
    }
    char *host = NULL, *scheme = NULL;
    bool whole = curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                 curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                 (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0);
    *clear = whole && strcmp(scheme, "http") == 0 && !host_is_loopback(host);
    curl_free(host);
    curl_free(scheme);
    if (!whole)
        FAIL(e, ERR_CONFIG,
             "'%s' is no address such as https://host/v1 or http://127.0.0.1:8000/v1", url);
    return 0;
}

int http_check_url(const char *url, bool *clear, struct err *e) {
    CURLU *u = curl_url();
    *clear = false;
    int result = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK
                     ? check_parts(u, url, clear, e)
                     : ERR_SET(e, ERR_CONFIG,
                               "'%s' is no address such as https://host/v1 or "
                               "http://127.0.0.1:8000/v1",
                               url);
    curl_url_cleanup(u);
    return result;
}
