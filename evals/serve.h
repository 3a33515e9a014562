// The few pages of a run folder over HTTP/1.1, as a function from request bytes to response bytes.
// Only fixed names are served, so no path of a request ever reaches the file system.
#ifndef LACUNA_EVALS_SERVE_H
#define LACUNA_EVALS_SERVE_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#define SERVE_REQUEST_BYTES_MOST 8192

// `request` ends with the empty line behind its head. `port` is the one that listens: requests that
// name another host than this machine's own are refused (a page elsewhere cannot read the record by
// giving its name our address). Whatever happens becomes a response with a status.
void serve_request(const char *folder, int port, struct str request, struct buf *response);

#endif
