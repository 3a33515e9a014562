#include "engine/base/log.h"

#include "engine/base/clock.h"
#include "engine/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum log_level current_level = LOG_NORMAL;
static bool bar_on_screen; // the last thing on the terminal is a bar without a line break

void log_set_level(enum log_level level) {
    current_level = level;
}

static void write_all(const char *p, size_t n) {
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, p, n);
        if (done <= 0) return; // nobody listens; messages are not worth failing for
        p += done;
        n -= (size_t)done;
    }
}

static void log_line(const char *kind, const char *format, va_list args) {
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
    struct buf line = {0};
    buf_printf(&line, "%slacuna: %s%s\n", bar_on_screen ? "\r\033[K" : "", kind, text);
    bar_on_screen = false;
    write_all(line.p, line.n);
    buf_free(&line);
}

#define LOG_AT(level, kind)                                                                        \
    if (current_level < (level)) return;                                                           \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    log_line(kind, format, args);                                                                  \
    va_end(args)

void log_info(const char *format, ...) {
    LOG_AT(LOG_NORMAL, "");
}

void log_warn(const char *format, ...) {
    LOG_AT(LOG_QUIET, "warning: ");
}

#define PLAIN_INTERVAL_NS 5000000000u
#define BAR_INTERVAL_NS 100000000u
#define BAR_WIDTH 30

void progress_start(struct progress *p, const char *what, uint64_t total, uint64_t items) {
    *p = (struct progress){.what = what,
                           .total = total == 0 ? 1 : total,
                           .items = items,
                           .started_ns = clock_ns(),
                           .terminal = isatty(STDERR_FILENO) == 1,
                           .printed_tenth = 0};
}

static void time_left(const struct progress *p, uint64_t now, char out[32]) {
    if (p->done == 0) {
        snprintf(out, 32, "--:--");
        return;
    }
    double spent = (double)(now - p->started_ns) / 1e9;
    double left = spent * (double)(p->total - p->done) / (double)p->done;
    unsigned long seconds = (unsigned long)(left + 0.5);
    if (seconds >= 3600)
        snprintf(out, 32, "%lu:%02lu:%02lu", seconds / 3600, seconds / 60 % 60, seconds % 60);
    else
        snprintf(out, 32, "%lu:%02lu", seconds / 60, seconds % 60);
}

static void draw_bar(struct progress *p, uint64_t now) {
    char left[32];
    time_left(p, now, left);
    int filled = (int)(p->done * BAR_WIDTH / p->total);
    struct buf line = {0};
    buf_printf(&line, "\r\033[K%s [", p->what);
    for (int i = 0; i < BAR_WIDTH; i++) buf_add_char(&line, i < filled ? '#' : '.');
    buf_printf(&line, "] %llu/%llu  %s left", (unsigned long long)p->item,
               (unsigned long long)p->items, left);
    write_all(line.p, line.n);
    buf_free(&line);
    bar_on_screen = true;
}

void progress_update(struct progress *p, uint64_t done, uint64_t item) {
    p->done = done > p->total ? p->total : done;
    p->item = item;
    if (current_level < LOG_NORMAL) return;
    uint64_t now = clock_ns();
    if (p->terminal) {
        if (now - p->printed_ns < BAR_INTERVAL_NS) return;
        p->printed_ns = now;
        draw_bar(p, now);
        return;
    }
    int tenth = (int)(p->done * 10 / p->total);
    if (tenth <= p->printed_tenth || now - p->printed_ns < PLAIN_INTERVAL_NS) return;
    p->printed_tenth = tenth;
    p->printed_ns = now;
    char left[32];
    time_left(p, now, left);
    log_info("%s: %llu of %llu, %s left", p->what, (unsigned long long)item,
             (unsigned long long)p->items, left);
}

void progress_finish(struct progress *p) {
    if (p->terminal && bar_on_screen) {
        write_all("\r\033[K", 4);
        bar_on_screen = false;
    }
}
