#include "evals/serve.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "reports/escape.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PAGE_BYTES_MOST ((size_t)1 << 30)
#define FACTS_BYTES_MOST ((size_t)256 << 10) // of sessions and timings, their ends

struct page {
    const char *target, *file, *type, *title;
};
static const struct page pages[] = {
    {"/report.html", "report.html", "text/html; charset=utf-8", "the report"},
    {"/report.md", "report.md", "text/markdown; charset=utf-8", "the report as Markdown"},
    {"/results.csv", "results.csv", "text/csv; charset=utf-8", "one row per trial and constraint"},
    {"/junit.xml", "junit.xml", "application/xml; charset=utf-8", "gates for a build server"},
};
#define PAGE_COUNT (sizeof pages / sizeof *pages)

// Pages hold text that a model wrote: no scripts, no network, nothing but their own styles.
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static void respond(struct buf *out, const char *status, const char *type, struct str body,
                    bool head_only) {
    buf_printf(out,
               "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
               "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
               "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
               "Connection: close\r\n\r\n",
               status, type, body.n, policy);
    if (!head_only) buf_add_str(out, body);
}

static void respond_text(struct buf *out, const char *status, bool head_only) {
    char body[64];
    int n = snprintf(body, sizeof body, "%s\n", status);
    respond(out, status, "text/plain; charset=utf-8", (struct str){body, (size_t)n}, head_only);
}

static void page_begin(struct buf *out, const char *title) {
    buf_add_c(out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>");
    escape_html_c(out, title);
    buf_add_c(out, "</title><style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;"
                   "padding:0 1em}pre{background:#f4f4f4;padding:1em;overflow:auto}</style><h1>");
    escape_html_c(out, title);
    buf_add_c(out, "</h1>");
}

static void add_list(struct buf *out, const char *folder) {
    struct arena *a = arena_create("serve");
    page_begin(out, folder);
    buf_add_c(out, "<ul>");
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        if (!file_exists(path_join(a, folder, pages[i].file))) continue;
        buf_printf(out, "<li><a href=\"%s\">%s</a>: %s", pages[i].target, pages[i].file,
                   pages[i].title);
    }
    buf_add_c(out, "<li><a href=\"/facts\">facts</a>: build, machine, sessions, timings "
                   "(what no report reads)</ul>");
    arena_destroy(a);
}

// A file of the record as text; of a long one the end.
static void add_file(struct buf *out, const char *folder, const char *name, struct arena *a) {
    struct file_map map;
    struct err e = {0};
    buf_printf(out, "<h2>%s</h2><pre>", name);
    if (file_map_open(path_join(a, folder, name), &map, &e) != 0) {
        buf_add_c(out, "(there is none)</pre>");
        return;
    }
    struct str text = {(const char *)map.p, map.bytes};
    if (text.n > FACTS_BYTES_MOST) {
        size_t begin = str_find(text, STR("\n"), text.n - FACTS_BYTES_MOST);
        begin = begin == STR_NONE ? text.n - FACTS_BYTES_MOST : begin + 1;
        text = str_slice(text, begin, text.n);
        buf_add_c(out, "...\n");
    }
    escape_html(out, text);
    buf_add_c(out, "</pre>");
    file_map_close(&map);
}

static void add_facts(struct buf *out, const char *folder) {
    static const char *const names[] = {"manifest.json", "sessions.jsonl", "timings.jsonl"};
    struct arena *a = arena_create("serve");
    page_begin(out, "Facts that no report reads");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) add_file(out, folder, names[i], a);
    arena_destroy(a);
}

static void respond_page(const char *folder, const struct page *page, bool head_only,
                         struct buf *out) {
    struct arena *a = arena_create("serve");
    struct str body;
    struct err e = {0};
    const char *path = path_join(a, folder, page->file);
    if (!file_exists(path))
        respond_text(out, "404 Not Found", head_only);
    else if (file_read(path, PAGE_BYTES_MOST, a, &body, &e) != 0)
        respond_text(out, "500 Internal Server Error", head_only);
    else
        respond(out, "200 OK", page->type, body, head_only);
    arena_destroy(a);
}

static void respond_made(void (*make)(struct buf *out, const char *folder), const char *folder,
                         bool head_only, struct buf *out) {
    struct buf body = {0};
    make(&body, folder);
    respond(out, "200 OK", "text/html; charset=utf-8", buf_str(&body), head_only);
    buf_free(&body);
}

// The one Host header, without the white space around its value; n == 0: none, or more than one.
static struct str find_host(struct str request) {
    struct str host = STR("");
    int count = 0;
    size_t at = str_find(request, STR("\r\n"), 0);
    while (at != STR_NONE && at + 2 < request.n) {
        at += 2;
        size_t end = str_find(request, STR("\r\n"), at);
        if (end == STR_NONE) break;
        struct str line = str_slice(request, at, end);
        if (line.n >= 5 && strncasecmp(line.p, "Host:", 5) == 0) {
            host = str_trim(str_slice(line, 5, line.n));
            count++;
        }
        at = end;
    }
    return count == 1 ? host : STR("");
}

static bool is_own_host(struct str host, int port) {
    static const char *const names[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        char with_port[32];
        snprintf(with_port, sizeof with_port, "%s:%d", names[i], port);
        if (str_equal_c(host, with_port) || (port == 80 && str_equal_c(host, names[i])))
            return true;
    }
    return false;
}

// "GET /target HTTP/1.1": the target without its query.
static bool parse_request_line(struct str request, struct str *method, struct str *target) {
    size_t end = str_find(request, STR("\r\n"), 0);
    if (end == STR_NONE) return false;
    struct str line = str_slice(request, 0, end);
    size_t first = str_find(line, STR(" "), 0);
    if (first == STR_NONE) return false;
    size_t second = str_find(line, STR(" "), first + 1);
    if (second == STR_NONE) return false;
    struct str version = str_slice(line, second + 1, line.n);
    if (!str_equal_c(version, "HTTP/1.1") && !str_equal_c(version, "HTTP/1.0")) return false;
    *method = str_slice(line, 0, first);
    *target = str_slice(line, first + 1, second);
    size_t query = str_find(*target, STR("?"), 0);
    if (query != STR_NONE) *target = str_slice(*target, 0, query);
    return true;
}

void serve_request(const char *folder, int port, struct str request, struct buf *response) {
    struct str method, target;
    if (request.n > SERVE_REQUEST_BYTES_MOST) {
        respond_text(response, "431 Request Header Fields Too Large", false);
        return;
    }
    if (!parse_request_line(request, &method, &target)) {
        respond_text(response, "400 Bad Request", false);
        return;
    }
    bool head_only = str_equal_c(method, "HEAD");
    if (!head_only && !str_equal_c(method, "GET")) {
        respond_text(response, "405 Method Not Allowed", false);
        return;
    }
    if (!is_own_host(find_host(request), port)) {
        respond_text(response, "403 Forbidden", head_only);
        return;
    }
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        if (!str_equal_c(target, pages[i].target)) continue;
        respond_page(folder, &pages[i], head_only, response);
        return;
    }
    if (str_equal_c(target, "/"))
        respond_made(add_list, folder, head_only, response);
    else if (str_equal_c(target, "/facts"))
        respond_made(add_facts, folder, head_only, response);
    else
        respond_text(response, "404 Not Found", head_only);
}
