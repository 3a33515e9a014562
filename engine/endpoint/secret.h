// A key that must not get into a record, a log, an error or a list of processes.
//
// It is known to the HTTP client alone, which sends it in a header; whatever comes back from a
// server is cleaned of it before anything looks at it, for servers quote the requests they refuse.
#ifndef LACUNA_ENGINE_ENDPOINT_SECRET_H
#define LACUNA_ENGINE_ENDPOINT_SECRET_H

#include "engine/base/err.h"
#include "engine/base/str.h"

// Refuses a key that cannot stand in a header or is too short to be told from other text; `name` is
// of the variable, and the message holds no byte of the key.
int secret_check(const char *key, const char *name, struct err *e);

// Overwrites the key wherever it stands in the bytes with asterisks, also where JSON spells it with
// escapes ("\/", "\u002d"), which a reader would undo. NULL: there is none.
void secret_hide(const char *key, char *bytes, size_t n);

#endif
