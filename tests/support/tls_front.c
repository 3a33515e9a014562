#include "tests/support/tls_front.h"

#include "tests/support/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DAY 86400L

// ---- certificates ------------------------------------------------------------------------------

struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(x);
    assert_int_equal(X509_add_ext(certificate, x, -1), 1);
    X509_EXTENSION_free(x);
}

struct wish {
    const char *name, *alternatives; // alternatives NULL: an authority
    const struct identity *issuer;   // NULL: itself
    long from, until;                // seconds from now
};

static struct identity issue(const struct wish *w) {
    static long serial = 1;
    struct identity made = {X509_new(), EVP_EC_gen("P-256")};
    X509 *c = made.certificate;
    assert_true(c != NULL && made.key != NULL);
    const struct identity *issuer = w->issuer != NULL ? w->issuer : &made;
    X509_set_version(c, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c), w->from);
    X509_gmtime_adj(X509_getm_notAfter(c), w->until);
    X509_set_pubkey(c, made.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_UTF8,
                               (const unsigned char *)w->name, -1, -1, 0);
    X509_set_issuer_name(c, X509_get_subject_name(issuer->certificate));
    add_extension(c, issuer->certificate, NID_basic_constraints,
                  w->alternatives == NULL ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (w->alternatives != NULL)
        add_extension(c, issuer->certificate, NID_subject_alt_name, w->alternatives);
    assert_true(X509_sign(c, issuer->key, EVP_sha256()) > 0);
    return made;
}

static struct identity authority, intermediate;

static void make_authorities(void) {
    if (authority.certificate != NULL) return;
    authority = issue(&(struct wish){.name = "Root of the tests", .from = -DAY, .until = DAY});
    intermediate = issue(&(struct wish){
        .name = "Issuer of the tests", .issuer = &authority, .from = -DAY, .until = DAY});
}

void tls_front_authority(const char *path) {
    make_authorities();
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, authority.certificate), 1);
    fclose(f);
}

static struct identity server_identity(enum tls_front_certificate kind) {
    struct wish w = {.name = "a server",
                     .alternatives = "IP:127.0.0.1,DNS:localhost",
                     .issuer = &intermediate,
                     .from = -DAY,
                     .until = DAY};
    if (kind == TLS_SELF_SIGNED) w.issuer = NULL;
    if (kind == TLS_OTHER_NAME) w.alternatives = "DNS:gateway.example";
    if (kind == TLS_EXPIRED) w.from = -2 * DAY, w.until = -DAY;
    if (kind == TLS_NOT_YET) w.from = DAY, w.until = 2 * DAY;
    return issue(&w);
}

// ---- passing on --------------------------------------------------------------------------------

struct tls_front {
    SSL_CTX *context;
    int socket, port, behind; // behind: the port of the server
    pthread_t thread;
};

struct pair {
    SSL *tls;
    int front, back;
};

static bool send_back(int socket, const char *bytes, int n) {
    for (int at = 0; at < n;) {
        ssize_t sent = send(socket, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += (int)sent;
    }
    return true;
}

// What came from one side, to the other; false: that side has ended.
static bool pass_on(struct pair *p, bool from_client) {
    char bytes[16384];
    if (from_client) {
        do {
            int n = SSL_read(p->tls, bytes, sizeof bytes);
            if (n <= 0 || !send_back(p->back, bytes, n)) return false;
        } while (SSL_pending(p->tls) > 0);
        return true;
    }
    ssize_t n = recv(p->back, bytes, sizeof bytes, 0);
    return n > 0 && SSL_write(p->tls, bytes, (int)n) > 0;
}

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s >= 0 && connect(s, (struct sockaddr *)&address, sizeof address) == 0) return s;
    if (s >= 0) close(s);
    return -1;
}

static void serve(struct tls_front *t, int socket) {
    struct pair p = {.tls = SSL_new(t->context), .front = socket, .back = -1};
    SSL_set_fd(p.tls, socket);
    if (SSL_accept(p.tls) == 1) p.back = connect_to(t->behind);
    bool open = p.back >= 0;
    while (open) {
        struct pollfd ready[] = {{.fd = p.front, .events = POLLIN},
                                 {.fd = p.back, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0) break;
        for (int i = 0; i < 2 && open; i++)
            if (ready[i].revents != 0) open = pass_on(&p, i == 0);
    }
    if (p.back >= 0) close(p.back);
    SSL_shutdown(p.tls);
    SSL_free(p.tls);
    close(socket);
    ERR_clear_error();
}

// One connection after the other: what is tested is who is trusted.
static void *accept_all(void *context) {
    struct tls_front *t = context;
    for (int socket; (socket = accept(t->socket, NULL, NULL)) >= 0;) serve(t, socket);
    return NULL;
}

struct tls_front *tls_front_open(enum tls_front_certificate certificate, int port) {
    struct tls_front *t = calloc(1, sizeof *t);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    assert_non_null(t);
    signal(SIGPIPE, SIG_IGN);
    make_authorities();
    struct identity server = server_identity(certificate);
    t->context = SSL_CTX_new(TLS_server_method());
    assert_non_null(t->context);
    assert_int_equal(SSL_CTX_use_certificate(t->context, server.certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(t->context, server.key), 1);
    if (certificate != TLS_INCOMPLETE && certificate != TLS_SELF_SIGNED)
        assert_int_equal(SSL_CTX_add1_chain_cert(t->context, intermediate.certificate), 1);
    X509_free(server.certificate);
    EVP_PKEY_free(server.key);
    t->behind = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    t->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(t->socket >= 0);
    assert_int_equal(bind(t->socket, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(t->socket, 64), 0);
    assert_int_equal(getsockname(t->socket, (struct sockaddr *)&address, &size), 0);
    t->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&t->thread, NULL, accept_all, t), 0);
    return t;
}

// When no client is connected any more.
void tls_front_close(struct tls_front *t) {
    shutdown(t->socket, SHUT_RDWR);
    pthread_join(t->thread, NULL);
    close(t->socket);
    SSL_CTX_free(t->context);
    free(t);
}

int tls_front_port(const struct tls_front *t) {
    return t->port;
}
