#include "engine/endpoint/secret.h"

#include <string.h>

#define KEY_BYTES_LEAST 8

int secret_check(const char *key, const char *name, struct err *e) {
    const size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            FAIL(e, ERR_USAGE,
                 "the variable %s holds a character that cannot stand in a key (byte %zu of %zu): "
                 "white space or a line break that came along?",
                 name, i + 1, n);
    if (n < KEY_BYTES_LEAST)
        FAIL(
            e, ERR_USAGE,
            "the variable %s holds %zu characters; a key has at least %d (what a server sends back "
            "is cleaned of the key, which a shorter one would not allow)",
            name, n, KEY_BYTES_LEAST);
    return 0;
}

void secret_hide(const char *key, char *bytes, size_t n) {
    if (key == NULL || n == 0) return;
    const size_t length = strlen(key);
    for (char *p = bytes; (p = memmem(p, n - (size_t)(p - bytes), key, length)) != NULL;)
        memset(p, '*', length);
}
