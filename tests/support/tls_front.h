// TLS in front of a server of the tests, with certificates made on the spot: an authority, an
// intermediate one that it signed, and a server's certificate of each kind that a client must
// judge.
#ifndef LACUNA_TESTS_TLS_FRONT_H
#define LACUNA_TESTS_TLS_FRONT_H

enum tls_front_certificate {
    TLS_GOOD,        // for 127.0.0.1 and localhost, with its intermediate
    TLS_INCOMPLETE,  // the same, without it
    TLS_SELF_SIGNED, // signed by itself
    TLS_OTHER_NAME,  // for gateway.example
    TLS_EXPIRED,     // since yesterday
    TLS_NOT_YET,     // valid from tomorrow on
};

struct tls_front;
// Listens on a free port of the loopback interface and passes on what it decrypts to `port`. Fails
// the test when it cannot.
struct tls_front *tls_front_open(enum tls_front_certificate certificate, int port);
void tls_front_close(struct tls_front *t);
int tls_front_port(const struct tls_front *t);
// Writes the authority's certificate, one for the whole program, as PEM.
void tls_front_authority(const char *path);

#endif
