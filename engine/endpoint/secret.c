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

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The character that a JSON text spells at p: itself, a sign behind a backslash, or \u00XX. Returns
// how many bytes it takes.
static size_t spelled(const char *p, size_t left, char *c) {
    *c = *p;
    if (*p != '\\' || left < 2) return 1;
    if (p[1] == '/' || p[1] == '"' || p[1] == '\\') {
        *c = p[1];
        return 2;
    }
    if (p[1] != 'u' || left < 6 || p[2] != '0' || p[3] != '0') return 1;
    const int high = hex_value(p[4]), low = hex_value(p[5]);
    if (high < 0 || low < 0) return 1;
    *c = (char)(high * 16 + low);
    return 6;
}

// How many bytes at p spell the key; 0: they do not.
static size_t key_at(const char *key, const char *p, size_t left) {
    const size_t length = strlen(key);
    size_t at = 0;
    if (left >= length && memcmp(p, key, length) == 0) return length;
    for (; *key != '\0'; key++) {
        char c;
        if (at == left) return 0;
        const size_t n = spelled(p + at, left - at, &c);
        if (c != *key) return 0;
        at += n;
    }
    return at;
}

void secret_hide(const char *key, char *bytes, size_t n) {
    if (key == NULL) return;
    for (size_t at = 0; at < n; at++) {
        if (bytes[at] != key[0] && bytes[at] != '\\') continue;
        const size_t length = key_at(key, bytes + at, n - at);
        if (length == 0) continue;
        memset(bytes + at, '*', length);
        at += length - 1;
    }
}
