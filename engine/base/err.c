#include "engine/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Cuts a full text at the last whole UTF-8 character, so that messages stay valid text.
static void trim_partial_character(char *text, size_t size) {
    size_t n = strlen(text);
    if (n + 1 < size) return;
    size_t begin = n;
    while (begin > 0 && ((unsigned char)text[begin - 1] & 0xC0) == 0x80) begin--;
    if (begin == 0) return;
    unsigned char lead = (unsigned char)text[begin - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (n - (begin - 1) < need) text[begin - 1] = '\0';
}

int err_set(struct err *e, enum err_code code, const char *file, int line, const char *format,
            ...) {
    if (e == NULL) return -1;
    // The arguments may point into e->text (wrapping an error in a longer one).
    char text[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trim_partial_character(text, sizeof text);
    memcpy(e->text, text, strlen(text) + 1);
    e->code = code;
    e->file = file;
    e->line = line;
    return -1;
}

int err_prefix(struct err *e, const char *format, ...) {
    if (e == NULL) return -1;
    char text[sizeof e->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s", e->text);
    trim_partial_character(text, sizeof text);
    memcpy(e->text, text, strlen(text) + 1);
    return -1;
}
