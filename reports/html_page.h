// What every HTML page of the program begins with: one file, no network, no script.
#ifndef LACUNA_REPORTS_HTML_PAGE_H
#define LACUNA_REPORTS_HTML_PAGE_H

#include "engine/base/str.h"

// Head, style and heading; the body stays open. All three texts are escaped here.
void html_page_open(const char *title, const char *heading, const char *question, struct buf *out);
void html_cell(const char *text, struct buf *out); // <td>, escaped

#endif
