// lacuna view: the reports of a run at http://127.0.0.1, until interrupted.
#include "evals/cli.h"
#include "evals/serve.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_NS 5000000000u // for a whole request, and for a whole response

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
    (void)signal_number;
    stopped = 1;
}

static int listen_local(int port, int *descriptor, int *bound, struct err *e) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) FAIL(e, ERR_IO, "no socket: %s", strerror(errno));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        ERR_SET(e, ERR_IO, "127.0.0.1:%d: %s; name another port with --port", port,
                strerror(errno));
        close(fd);
        return -1;
    }
    *descriptor = fd;
    *bound = ntohs(address.sin_port);
    return 0;
}

// Waits until the descriptor is ready; false when the time is up or the program is to stop.
static bool wait_for(int fd, short events, uint64_t end_ns) {
    struct pollfd p = {.fd = fd, .events = events};
    while (!stopped) {
        uint64_t now = clock_ns();
        if (now >= end_ns) return false;
        int ready = poll(&p, 1, (int)((end_ns - now) / 1000000u) + 1);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
    return false;
}

// The head of a request; a body is neither expected nor read.
static bool read_head(int fd, char *bytes, size_t *n) {
    uint64_t end = clock_ns() + PATIENCE_NS;
    *n = 0;
    while (*n <= SERVE_REQUEST_BYTES_MOST) {
        struct str have = {bytes, *n};
        if (str_find(have, STR("\r\n\r\n"), 0) != STR_NONE) return true;
        if (!wait_for(fd, POLLIN, end)) return false;
        ssize_t got = recv(fd, bytes + *n, SERVE_REQUEST_BYTES_MOST + 1 - *n, MSG_DONTWAIT);
        if (got <= 0 && errno != EAGAIN && errno != EINTR) return false;
        if (got == 0) return false;
        if (got > 0) *n += (size_t)got;
    }
    return true; // too long, which the response says
}

static void write_all(int fd, struct str bytes) {
    uint64_t end = clock_ns() + PATIENCE_NS;
    for (size_t done = 0; done < bytes.n;) {
        if (!wait_for(fd, POLLOUT, end)) return;
        ssize_t n = send(fd, bytes.p + done, bytes.n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return;
        if (n > 0) {
            done += (size_t)n;
            end = clock_ns() + PATIENCE_NS; // as long as it moves
        }
    }
}

static void serve_one(int fd, const char *folder, int port) {
    char head[SERVE_REQUEST_BYTES_MOST + 1];
    size_t n;
    struct buf response = {0};
    if (read_head(fd, head, &n)) {
        serve_request(folder, port, (struct str){head, n}, &response);
        write_all(fd, buf_str(&response));
    }
    buf_free(&response);
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

static int serve(const char *folder, int port, struct err *e) {
    int listener = -1, bound = 0;
    TRY(listen_local(port, &listener, &bound, e));
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    printf("http://127.0.0.1:%d/\n", bound);
    fflush(stdout);
    fprintf(stderr, "lacuna: serving %s until interrupted (Ctrl-C)\n", folder);
    while (!stopped) {
        if (!wait_for(listener, POLLIN, clock_ns() + PATIENCE_NS)) continue;
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0) serve_one(fd, folder, bound);
    }
    close(listener);
    return 0;
}

int cli_view(int argc, char **argv) {
    int64_t port = 0;
    const struct cli_option options[] = {
        {.name = "--port",
         .value = "N",
         .help = "port to listen at; 0 takes a free one",
         .number = &port},
    };
    const char *folder = NULL;
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, 1, &folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    int result = 0;
    struct arena *a = arena_create("view");
    if (port < 0 || port > 65535)
        result = ERR_SET(&e, ERR_USAGE, "--port %lld is not between 0 and 65535", (long long)port);
    else if (!file_exists(path_join(a, folder, "identity.json")))
        result = ERR_SET(&e, ERR_RECORD, "%s: is not the record of a run", folder);
    else
        result = serve(folder, (int)port, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}
