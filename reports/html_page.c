#include "reports/html_page.h"

#include "reports/escape.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--back:#fff;"
    "--card:#f6f8fa;--mark:#fff3b0;--good:#1a7f37;--bad:#b2182b;--warn:#9a6700;"
    "--low:#b2182b;--high:#2166ac}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;"
    "--back:#0d1117;--card:#151b23;--mark:#5c4b00;--good:#56d364;--bad:#ff7b72;--warn:#e3b341;"
    "--low:#b83a4b;--high:#2f6fb3}}"
    "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--back);max-width:1180px;margin:0 auto;padding:24px 20px 80px}"
    "h1{font-size:26px;margin:0 0 2px}h2{font-size:19px;margin:36px 0 10px;padding-bottom:4px;"
    "border-bottom:1px solid var(--line)}h3{font-size:16px;margin:22px 0 6px}"
    ".rate,.word{white-space:nowrap}p{margin:6px 0}.soft{color:var(--soft)}code{font:12.5px "
    "ui-monospace,monospace}"
    "table{border-collapse:collapse;margin:8px 0;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 12px 4px 0;text-align:left;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:600;color:var(--soft);font-size:13px}"
    ".box{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 16px;"
    "margin:10px 0}.warn{border-left:4px solid var(--warn)}.scroll{overflow-x:auto}"
    ".figures{display:flex;flex-wrap:wrap;gap:12px 36px;align-items:flex-start}"
    "svg{max-width:100%;height:auto;font-family:system-ui,sans-serif}"
    "svg .axis{font-size:12px;fill:var(--soft)}svg .right{text-anchor:end}"
    "svg .mid,svg .big,svg .small{text-anchor:middle}svg .big{font-size:15px;font-weight:600}"
    "svg .small{font-size:11px}svg .none{fill:var(--card);stroke:var(--line)}"
    "svg .low{fill:var(--low)}svg .high{fill:var(--high)}svg .ink{fill:var(--ink)}"
    "svg .edge{stroke:var(--line)}"
    "svg .weak{stroke:var(--warn);stroke-dasharray:4 3;stroke-width:1.5}"
    "svg .grid{stroke:var(--line)}svg .line{stroke-width:2.2}"
    "svg .arm{stroke-dasharray:5 4;stroke-width:1.4;opacity:.8}"
    "svg .whisker{stroke-width:1.4;opacity:.75}"
    "details{border:1px solid var(--line);border-radius:6px;margin:4px 0;background:var(--card)}"
    "summary{cursor:pointer;padding:5px 12px}details>div{padding:4px 12px 12px}"
    "details details{background:var(--back)}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,monospace;"
    "margin:4px 0;padding:8px 10px;border:1px solid var(--line);border-radius:6px;"
    "background:var(--back);max-height:420px;overflow-y:auto;unicode-bidi:plaintext}"
    "mark{background:var(--mark);color:inherit;border-radius:3px;padding:1px 2px;"
    "unicode-bidi:plaintext}"
    ".template{color:var(--soft);font-style:italic}"
    ".chip{display:inline-block;font-size:12px;border-radius:10px;padding:0 8px;margin-right:6px;"
    "border:1px solid}.met{color:var(--good)}.omitted,.violated,.error,.invalid{color:var(--bad)}"
    ".unscored{color:var(--warn)}"
    ".pair{display:grid;grid-template-columns:1fr 1fr;gap:16px}.pair>div{min-width:0}";

void html_cell(const char *text, struct buf *out) {
    buf_add_c(out, "<td>");
    escape_html_c(out, text);
    buf_add_c(out, "</td>");
}

void html_page_open(const char *title, const char *heading, const char *question, struct buf *out) {
    buf_add_c(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<title>lacuna: ");
    escape_html_c(out, title);
    buf_printf(out, "</title>\n<style>%s</style></head>\n<body>\n<h1>", style);
    escape_html_c(out, heading);
    buf_add_c(out, "</h1>\n<p class=\"soft\">");
    escape_html_c(out, question);
    buf_add_c(out, "</p>\n");
}
