// One escaping function for each place where foreign text lands. Replies, prompts, names and error
// texts are untrusted; nothing else in reports/ may copy them into an output.
#ifndef LACUNA_REPORTS_ESCAPE_H
#define LACUNA_REPORTS_ESCAPE_H

#include "engine/base/str.h"

// HTML and XML text and quoted attributes: & < > " ' become entities, ill-formed bytes U+FFFD,
// control characters their pictures (U+2400 block) but line break and tab, bidirectional controls
// their names in brackets, so that a text cannot disguise its neighbours.
void escape_html(struct buf *out, struct str s);
void escape_html_c(struct buf *out, const char *s);

// XML 1.0 text and attributes (JUnit): as HTML; line breaks and tabs are kept by reference.
void escape_xml(struct buf *out, struct str s);

// A CSV field of text (RFC 4180), quoted where needed. A text that a spreadsheet would run as a
// formula (it begins with = + - @, full-width or not, a tab or a line break) gets an apostrophe
// before it; NUL is left out.
void escape_csv(struct buf *out, struct str s);

// Text in a Markdown table cell or paragraph: one line, all of Markdown's own characters escaped.
void escape_markdown(struct buf *out, struct str s);

// A terminal: control characters but line break and tab (ECMA-48's C1 set too) and bidirectional
// controls become '?', ill-formed bytes U+FFFD.
void escape_terminal(struct buf *out, struct str s);

#endif
