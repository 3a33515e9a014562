#include "reports/escape.h"

#include <stdbool.h>
#include <string.h>

static bool is_bidirectional_control(uint32_t c) {
    return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

static void add_code_point(struct buf *out, uint32_t c) {
    char bytes[4];
    size_t n = utf8_encode(c, bytes);
    buf_add(out, bytes, n);
}

static const char *entity_of(uint32_t c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

static void escape_markup(struct buf *out, struct str s, bool keep_breaks_by_reference) {
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        at += utf8_decode(s, at, &c);
        const char *entity = entity_of(c);
        if (entity != NULL) {
            buf_add_c(out, entity);
        } else if (c == '\n' || c == '\t') {
            if (keep_breaks_by_reference)
                buf_printf(out, "&#%u;", (unsigned)c);
            else
                buf_add_char(out, (char)c);
        } else if (c < 0x20) {
            add_code_point(out, 0x2400 + c);
        } else if (c == 0x7F) {
            add_code_point(out, 0x2421);
        } else if (is_bidirectional_control(c)) {
            buf_printf(out, "[U+%04X]", (unsigned)c);
        } else if ((c >= 0x80 && c < 0xA0) || (c & 0xFFFE) == 0xFFFE) {
            add_code_point(out, 0xFFFD);
        } else {
            add_code_point(out, c);
        }
    }
}

void escape_html(struct buf *out, struct str s) {
    escape_markup(out, s, false);
}

void escape_html_c(struct buf *out, const char *s) {
    escape_markup(out, str_from(s), false);
}

void escape_xml(struct buf *out, struct str s) {
    escape_markup(out, s, true);
}

// The first character that is written; NUL is not. Some spreadsheets read the full-width forms too.
static bool starts_formula(struct str s) {
    static const uint32_t starts[] = {'=',  '+',    '-',    '@',    '\t',  '\r',
                                      '\n', 0xFF1D, 0xFF0B, 0xFF0D, 0xFF20};
    uint32_t c = 0;
    for (size_t at = 0; at < s.n && c == 0;) at += utf8_decode(s, at, &c);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (c == starts[i]) return true;
    return false;
}

void escape_csv(struct buf *out, struct str s) {
    bool formula = starts_formula(s), quoted = formula;
    for (size_t i = 0; i < s.n && !quoted; i++) quoted = strchr(",\"\r\n", s.p[i]) && s.p[i];
    if (quoted) buf_add_char(out, '"');
    if (formula) buf_add_char(out, '\'');
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        at += utf8_decode(s, at, &c);
        if (c == 0) continue;
        if (c == '"') buf_add_char(out, '"');
        add_code_point(out, c);
    }
    if (quoted) buf_add_char(out, '"');
}

void escape_markdown(struct buf *out, struct str s) {
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        at += utf8_decode(s, at, &c);
        if (c == '&' || c == '<' || c == '>') {
            buf_add_c(out, entity_of(c));
        } else if (c == '\n' || c == '\r' || c == '\t') {
            buf_add_char(out, ' ');
        } else if (c < 0x20 || c == 0x7F || is_bidirectional_control(c)) {
            buf_printf(out, "[U+%04X]", (unsigned)c);
        } else {
            if (c < 0x80 && strchr("\\`*_{}[]()#+!|~", (int)c) != NULL) buf_add_char(out, '\\');
            add_code_point(out, c);
        }
    }
}

void escape_terminal(struct buf *out, struct str s) {
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        at += utf8_decode(s, at, &c);
        bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
        if (control || is_bidirectional_control(c))
            buf_add_char(out, '?');
        else
            add_code_point(out, c);
    }
}
