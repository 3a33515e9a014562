// HTTP requests, many at once: the only file of the program that knows libcurl.
//
// Nothing a server does can take more than its bounds: bytes of headers and of the body, time to
// connect, time of silence, time in all. TLS certificates are verified. A redirect is followed
// within the same scheme, host and port only. Proxies are those of the environment, as with any
// program over libcurl. A key travels in the Authorization header and stands in no text that this
// module gives out.
#ifndef LACUNA_ENGINE_ENDPOINT_HTTP_H
#define LACUNA_ENGINE_ENDPOINT_HTTP_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct http_limits {
    uint32_t connect_ms;    // name, connection and TLS together
    uint32_t reply_ms;      // from the beginning to the last byte
    uint32_t silence_ms;    // between two bytes of the body, once the first one came
    size_t body_bytes_most; // of a response
    size_t head_bytes_most;
};

enum http_failure {
    HTTP_WHOLE,       // a response, whatever its status
    HTTP_UNREACHABLE, // no such host, refused, or nobody answered within connect_ms
    HTTP_DROPPED,     // the connection ended before the response did
    HTTP_SLOW,        // reply_ms passed
    HTTP_STALLED,     // silence_ms passed in the middle of the body
    HTTP_TLS,         // no certificate that is trusted for this host now, or no TLS at all
    HTTP_TOO_LARGE,   // body or headers beyond their bound
    HTTP_NOT_HTTP,    // what came is no response
    HTTP_REDIRECTED,  // to another host, or more than a few times
};

// Another attempt may fare better: the server was not there, went away or fell silent.
bool http_may_pass(enum http_failure f);

struct http_reply {
    void *owner; // of the request
    enum http_failure failure;
    char text[256];         // says the failure; "" when whole
    int status;             // 0 when there was none
    struct str retry_after; // of the header, or empty
    struct str server;      // likewise
    struct str body;        // of a whole response
    double wall_ms, first_byte_ms;
};

struct http_client;
// `key` (NULL: none) and `ca_file` (PEM; NULL: the system's certificates) are borrowed. ERR_CONFIG
// when ca_file holds no certificate.
int http_open(const struct http_limits *limits, const char *key, const char *ca_file,
              struct http_client **out, struct err *e);
void http_close(struct http_client *c); // NULL is allowed; what is in flight is dropped

// Starts a POST of JSON (`body` is copied), or a GET when body.p is NULL.
int http_start(struct http_client *c, const char *url, struct str body, void *owner, struct err *e);
// A finished reply, valid until the next call; NULL: none within `wait_ms`, or http_wake was
// called.
const struct http_reply *http_next(struct http_client *c, uint32_t wait_ms);
int http_in_flight(const struct http_client *c);
// Makes a waiting http_next return. Thread and signal safe.
void http_wake(struct http_client *c);

// ERR_CONFIG when the text is no http or https URL with a host, or holds a user, a password, a
// query or a fragment. *clear: bytes would travel unencrypted to another machine.
int http_check_url(const char *url, bool *clear, struct err *e);

#endif
