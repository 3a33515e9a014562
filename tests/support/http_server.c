#include "tests/support/http_server.h"

#include "tests/support/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MOST 4096

struct connection {
    struct http_server *server;
    pthread_t thread;
    int socket;
    bool ended;
};

struct http_server {
    http_server_script *script;
    void *context;
    int socket, port;
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    bool closing;
    int requests, busy, most_busy;
    struct connection *connections[CONNECTIONS_MOST];
    int connection_count;
};

static bool is_closing(struct http_server *s) {
    pthread_mutex_lock(&s->lock);
    bool closing = s->closing;
    pthread_mutex_unlock(&s->lock);
    return closing;
}

// False: the connection or the server has ended.
static bool pause_ms(struct connection *c, int ms) {
    for (; ms > 0 && !is_closing(c->server); ms -= 20) {
        struct pollfd gone = {.fd = c->socket, .events = POLLRDHUP};
        if (poll(&gone, 1, ms < 20 ? ms : 20) > 0) return false;
    }
    return !is_closing(c->server);
}

static bool send_all(struct connection *c, struct str bytes) {
    for (size_t at = 0; at < bytes.n;) {
        ssize_t n = send(c->socket, bytes.p + at, bytes.n - at, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

static bool send_body(struct connection *c, const struct http_server_answer *a) {
    struct str body = buf_str(&a->body);
    if (a->sent_most < body.n) body.n = a->sent_most;
    if (a->drip_ms == 0 && !a->endless) return send_all(c, body);
    do {
        size_t step = a->drip_ms > 0 ? 1 : body.n;
        for (size_t at = 0; at < body.n; at += step)
            if (!send_all(c, str_slice(body, at, at + step)) || !pause_ms(c, a->drip_ms))
                return false;
    } while (a->endless && body.n > 0);
    return true;
}

// False: the connection ends here.
static bool send_answer(struct connection *c, const struct http_server_answer *a) {
    if (!pause_ms(c, a->delay_ms) || a->drop) return false;
    if (a->raw.n > 0) {
        send_all(c, buf_str(&a->raw));
        return false;
    }
    struct buf head = {0};
    buf_printf(&head, "HTTP/1.1 %d Status\r\nServer: script/1\r\n", a->status);
    buf_add_str(&head, buf_str(&a->headers));
    for (int i = 0; i < a->header_lines; i++) buf_printf(&head, "X-Line-%d: 1\r\n", i);
    if (a->length != -2)
        buf_printf(&head, "Content-Length: %lld\r\n",
                   a->length == -1 ? (long long)a->body.n : (long long)a->length);
    buf_add_c(&head, "\r\n");
    bool sent = send_all(c, buf_str(&head));
    buf_free(&head);
    return sent && pause_ms(c, a->body_delay_ms) && send_body(c, a) && a->length == -1 &&
           a->sent_most >= a->body.n;
}

static size_t content_length(struct str head) {
    for (size_t at = 0; at < head.n;) {
        size_t end = str_find(head, STR("\r\n"), at);
        if (end == STR_NONE) break;
        if (strncasecmp(head.p + at, "Content-Length:", 15) == 0)
            return (size_t)strtoul(head.p + at + 15, NULL, 10);
        at = end + 2;
    }
    return 0;
}

// Reads until the whole request is there; false: the client is gone.
static bool read_request(struct connection *c, struct buf *in, size_t *head, size_t *body) {
    for (;;) {
        size_t end = str_find(buf_str(in), STR("\r\n\r\n"), 0);
        if (end != STR_NONE) {
            *head = end + 4;
            *body = content_length(str_slice(buf_str(in), 0, end + 2));
            if (in->n >= *head + *body) return true;
        }
        char bytes[65536];
        ssize_t n = recv(c->socket, bytes, sizeof bytes, 0);
        if (n <= 0) return false;
        buf_add(in, bytes, (size_t)n);
        if (in->p[0] >= 'A' && in->p[0] <= 'Z') continue;
        send_all(c, STR("HTTP/1.1 400 Bad Request\r\n\r\n")); // TLS, by its first byte
        return false;
    }
}

static void fill_request(struct http_server_request *r, struct str head, struct str body) {
    size_t first = str_find(head, STR(" "), 0), second = str_find(head, STR(" "), first + 1);
    r->method = str_slice(head, 0, first);
    r->path = str_slice(head, first + 1, second);
    r->head = head;
    r->body = body;
}

static bool answer_one(struct connection *c, struct str head, struct str body) {
    struct http_server *s = c->server;
    struct http_server_answer a = {.status = 200, .length = -1, .sent_most = SIZE_MAX};
    struct http_server_request r = {0};
    fill_request(&r, head, body);
    pthread_mutex_lock(&s->lock);
    r.number = s->requests++;
    if (++s->busy > s->most_busy) s->most_busy = s->busy;
    s->script(s->context, &r, &a);
    pthread_mutex_unlock(&s->lock);
    bool goes_on = send_answer(c, &a);
    pthread_mutex_lock(&s->lock);
    s->busy--;
    pthread_mutex_unlock(&s->lock);
    buf_free(&a.headers);
    buf_free(&a.body);
    buf_free(&a.raw);
    return goes_on;
}

static void *serve_connection(void *context) {
    struct connection *c = context;
    struct buf in = {0};
    size_t head, body;
    while (read_request(c, &in, &head, &body)) {
        struct str all = buf_str(&in);
        if (!answer_one(c, str_slice(all, 0, head), str_slice(all, head, head + body))) break;
        memmove(in.p, in.p + head + body, in.n - head - body);
        in.n -= head + body;
    }
    buf_free(&in);
    pthread_mutex_lock(&c->server->lock);
    close(c->socket);
    c->ended = true;
    pthread_mutex_unlock(&c->server->lock);
    return NULL;
}

static void add_connection(struct http_server *s, int socket) {
    const int on = 1; // or a body waits until its head is acknowledged
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pthread_mutex_lock(&s->lock);
    bool room = !s->closing && s->connection_count < CONNECTIONS_MOST;
    struct connection *c = room ? calloc(1, sizeof *c) : NULL;
    if (c != NULL) {
        *c = (struct connection){.server = s, .socket = socket};
        s->connections[s->connection_count++] = c;
        pthread_create(&c->thread, NULL, serve_connection, c);
    } else {
        close(socket);
    }
    pthread_mutex_unlock(&s->lock);
}

static void *accept_all(void *context) {
    struct http_server *s = context;
    for (int socket; (socket = accept(s->socket, NULL, NULL)) >= 0 || errno == EINTR;)
        if (socket >= 0) add_connection(s, socket);
    return NULL;
}

struct http_server *http_server_open(http_server_script *script, void *context) {
    struct http_server *s = calloc(1, sizeof *s);
    assert_non_null(s);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->script = script;
    s->context = context;
    pthread_mutex_init(&s->lock, NULL);
    s->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->socket >= 0);
    assert_int_equal(bind(s->socket, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(s->socket, 512), 0);
    assert_int_equal(getsockname(s->socket, (struct sockaddr *)&address, &size), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, accept_all, s), 0);
    return s;
}

void http_server_close(struct http_server *s) {
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    for (int i = 0; i < s->connection_count; i++)
        if (!s->connections[i]->ended) shutdown(s->connections[i]->socket, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    shutdown(s->socket, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < s->connection_count; i++) {
        pthread_join(s->connections[i]->thread, NULL);
        free(s->connections[i]);
    }
    close(s->socket);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool all_ended(struct http_server *s) {
    bool ended = true;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->connection_count; i++) ended &= s->connections[i]->ended;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

// Connections are accepted in order: when this one is answered, none waits before it.
static void knock(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int knocking = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[64];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(knocking, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(knocking, "?", 1, MSG_NOSIGNAL), 1);
    while (recv(knocking, bytes, sizeof bytes, 0) > 0) continue;
    close(knocking);
}

void http_server_settle(struct http_server *s) {
    knock(s->port);
    while (!all_ended(s)) usleep(1000);
}

int http_server_port(const struct http_server *s) {
    return s->port;
}

int http_server_requests(struct http_server *s) {
    pthread_mutex_lock(&s->lock);
    int requests = s->requests;
    pthread_mutex_unlock(&s->lock);
    return requests;
}

int http_server_most_at_once(struct http_server *s) {
    pthread_mutex_lock(&s->lock);
    int most = s->most_busy;
    pthread_mutex_unlock(&s->lock);
    return most;
}
