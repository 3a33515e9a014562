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

// Whoever connects and says nothing, as browsers do in advance, waits beside the others.
struct visitor {
    int fd; // -1: nobody
    uint64_t end_ns;
    size_t n;
    char head[SERVE_REQUEST_BYTES_MOST + 1];
};
#define VISITORS_MOST 16

// 1: the head of a request is there (a body is neither expected nor read), or it is too long, which
// the response says. 0: more is to come. -1: nobody is there any more.
static int read_some(struct visitor *v) {
    ssize_t got = recv(v->fd, v->head + v->n, sizeof v->head - v->n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) return -1;
    v->n += (size_t)got;
    struct str have = {v->head, v->n};
    return v->n == sizeof v->head || str_find(have, STR("\r\n\r\n"), 0) != STR_NONE;
}

static void dismiss(struct visitor *v) {
    if (v->fd < 0) return;
    shutdown(v->fd, SHUT_RDWR);
    close(v->fd);
    v->fd = -1;
}

static void attend(struct visitor *v, bool ready, const char *folder, int port) {
    int state = ready ? read_some(v) : 0;
    if (state == 0 && clock_ns() < v->end_ns) return;
    if (state > 0) {
        struct buf response = {0};
        serve_request(folder, port, (struct str){v->head, v->n}, &response);
        write_all(v->fd, buf_str(&response));
        buf_free(&response);
    }
    dismiss(v);
}

// Where all places are taken, the one that has waited longest goes.
static void welcome(int listener, struct visitor *visitors) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) return;
    struct visitor *place = &visitors[0];
    for (int i = 1; i < VISITORS_MOST && place->fd >= 0; i++)
        if (visitors[i].fd < 0 || visitors[i].end_ns < place->end_ns) place = &visitors[i];
    dismiss(place);
    place->fd = fd;
    place->n = 0;
    place->end_ns = clock_ns() + PATIENCE_NS;
}

static void serve_visitors(int listener, const char *folder, int port) {
    struct visitor visitors[VISITORS_MOST];
    for (int i = 0; i < VISITORS_MOST; i++) visitors[i].fd = -1;
    while (!stopped) {
        struct pollfd p[VISITORS_MOST + 1];
        for (int i = 0; i < VISITORS_MOST; i++)
            p[i] = (struct pollfd){.fd = visitors[i].fd, .events = POLLIN};
        p[VISITORS_MOST] = (struct pollfd){.fd = listener, .events = POLLIN};
        if (poll(p, VISITORS_MOST + 1, 1000) < 0) continue;
        for (int i = 0; i < VISITORS_MOST && !stopped; i++)
            if (visitors[i].fd >= 0) attend(&visitors[i], p[i].revents != 0, folder, port);
        if (p[VISITORS_MOST].revents != 0) welcome(listener, visitors);
    }
    for (int i = 0; i < VISITORS_MOST; i++) dismiss(&visitors[i]);
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
    serve_visitors(listener, folder, bound);
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
