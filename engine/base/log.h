// Messages to stderr, and a progress line. Results go to stdout and never through here.
#ifndef LACUNA_ENGINE_BASE_LOG_H
#define LACUNA_ENGINE_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_QUIET, LOG_NORMAL }; // QUIET: warnings alone
void log_set_level(enum log_level level);

// "lacuna: text" and a line break, in one write; a progress bar on the terminal is redrawn below
// it.
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warn(const char *format, ...);

// A bar with the time left when stderr is a terminal; otherwise a plain line now and then (each
// tenth of the work, at most one in five seconds). `done` counts work units (tokens, say), while
// `item` of `items` is what the user counts (trials).
struct progress {
    const char *what;
    uint64_t total, done, started_ns, printed_ns;
    uint64_t items, item;
    bool terminal;
    int printed_tenth;
};
void progress_start(struct progress *p, const char *what, uint64_t total, uint64_t items);
void progress_update(struct progress *p, uint64_t done, uint64_t item);
void progress_finish(struct progress *p);

#endif
