// A small HTTP server on the loopback interface for tests of what talks to servers. It does what a
// script says, also what no server should: wrong lengths, no end, no beginning, long pauses.
#ifndef LACUNA_TESTS_HTTP_SERVER_H
#define LACUNA_TESTS_HTTP_SERVER_H

#include "engine/base/str.h"

#include <stdbool.h>

struct http_server_request {
    int number; // from 0, over all connections
    struct str method, path, head, body;
};
struct http_server_answer {
    int status;         // of an ordinary answer, 200 unless it is changed
    struct buf headers; // further ones, each with its "\r\n"
    struct buf body;
    struct buf raw;    // not empty: these bytes instead of an answer, then the end
    int delay_ms;      // before anything is sent
    int body_delay_ms; // between the headers and the body
    int drip_ms;       // between the bytes of the body
    int64_t length;    // said instead of the body's; -1: its own, -2: none is said
    size_t sent_most;  // so many bytes of the body, then the end
    bool drop;         // the connection ends without a word
    bool endless;      // the body is sent over and over
    int header_lines;  // so many more
};
// Called for one request at a time. The answer is empty, with status 200.
typedef void http_server_script(void *context, const struct http_server_request *request,
                                struct http_server_answer *answer);

struct http_server;
// Listens on a free port. Fails the test when it cannot.
struct http_server *http_server_open(http_server_script *script, void *context);
void http_server_close(struct http_server *s); // drops what is in progress
int http_server_port(const struct http_server *s);
// Waits until every client that is gone by now has been noticed: all that it sent was counted.
// Clients that stay would be waited for without end.
void http_server_settle(struct http_server *s);
int http_server_requests(struct http_server *s); // answered or dropped so far
int http_server_most_at_once(struct http_server *s);

#endif
