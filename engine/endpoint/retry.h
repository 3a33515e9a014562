// When a request is sent again: a function of what came back, the attempt and the clock, so that it
// can be tested without a network or a wait.
//
// Sent again is what may come out otherwise: 408, 425, 429, 500, 502, 503, 504 and 529
// (overloaded), and connections that could not be made, ended early or stayed silent. Everything
// else (400, 401, 403, 404, failures of TLS, replies that are no HTTP) says the same every time.
//
// The pause doubles from attempt to attempt, drawn from its upper half so that many requests do not
// come back at once ("Exponential Backoff And Jitter", M. Brooker, AWS Architecture Blog, 2015).
// Retry-After (RFC 9110, section 10.2.3) is honoured: no pause is shorter than it.
#ifndef LACUNA_ENGINE_ENDPOINT_RETRY_H
#define LACUNA_ENGINE_ENDPOINT_RETRY_H

#include "engine/base/rng.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct retry_policy {
    int attempts_most;      // in all, 1: never again
    uint32_t first_ms;      // pause behind the first attempt, before the draw
    uint32_t pause_ms_most; // of a pause that the server did not ask for
    uint32_t asked_ms_most; // a longer Retry-After is not waited for
};

// What an attempt came to.
struct retry_attempt {
    int number;             // from 1
    int status;             // of HTTP; 0: there was no whole response
    bool lost;              // no whole response, for a reason that may go away
    struct str retry_after; // value of the header; empty: none
};

enum retry_choice {
    RETRY_AGAIN,     // behind *pause_ms
    RETRY_FINAL,     // another attempt would say the same
    RETRY_EXHAUSTED, // attempts_most were made
    RETRY_TOO_LONG,  // the server asks for more than asked_ms_most: *pause_ms says for how much
};
// `now`: seconds since 1970, for a Retry-After that is a date.
enum retry_choice retry_choose(const struct retry_policy *policy,
                               const struct retry_attempt *attempt, int64_t now, struct rng *draw,
                               uint64_t *pause_ms);

// Seconds of a Retry-After: a whole number, or a date in the preferred form of RFC 9110 ("Sun, 06
// Nov 1994 08:49:37 GMT"), 0 when it is past. False: it is neither.
bool retry_after_seconds(struct str value, int64_t now, int64_t *seconds);

#endif
