// What a served model costs its client, over the whole path of `lacuna run`: CPU time of the
// program alone, for the server of the benchmark is another process.
//
//     bench_endpoint PROGRAM FOLDER cost [PROMPT-TOKENS [REQUESTS [IN-FLIGHT]]]
//     bench_endpoint PROGRAM FOLDER soak [SECONDS [IN-FLIGHT]]
//
// PROGRAM is lacuna, FOLDER a place for the run on the kind of disk that is to be measured. `cost`
// prints milliseconds of CPU a request, user and system together: asking (the prompt out of the
// record, the request, the reply, the verdicts, the ledger) apart from planning and reports. `soak`
// answers each request behind a second, some of them with faults, and prints memory and open files
// over time: both must stay where they are.
#include "tests/support/served_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_TOKENS = 200, SOAK_PROMPT_TOKENS = 2048 };

static int cost(struct served_load *load) {
    load->delay_ms = 200; // without it so few are in flight as the server can answer
    struct served_load_result r = served_load_run(load);
    const double n = load->requests;
    printf("%d requests of %d prompt tokens, %d in flight, exit code %d\n"
           "ms of CPU a request: plan %.3f, ask %.3f, reports %.3f\n",
           load->requests, load->prompt_tokens, r.most_at_once, r.exit_code, r.plan_cpu_ms / n,
           r.ask_cpu_ms / n, r.rest_cpu_ms / n);
    free(r.samples);
    return r.exit_code != 0;
}

static int soak(struct served_load *load) {
    load->delay_ms = 1000;
    load->faults = load->progress = true;
    struct served_load_result r = served_load_run(load);
    long first = 0, most = 0;
    int files = 0;
    // From a tenth on: by then connections and buffers are as many as they will be.
    for (int i = r.sample_count / 10; i < r.sample_count; i++) {
        const struct served_load_sample *s = &r.samples[i];
        if (first == 0) first = s->own_bytes;
        if (s->own_bytes > most) most = s->own_bytes;
        if (s->files > files) files = s->files;
    }
    printf("%d requests in %.0f s, %d at once, exit code %d\n"
           "memory %.1f MiB behind a tenth of it, at most %.1f MiB; at most %d open files\n",
           r.requests, r.sample_count > 0 ? r.samples[r.sample_count - 1].seconds : 0,
           r.most_at_once, r.exit_code, (double)first / (1 << 20), (double)most / (1 << 20), files);
    free(r.samples);
    return r.exit_code != 0;
}

static int number(int argc, char **argv, int i, int otherwise) {
    return argc > i ? (int)strtol(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    const bool costs = argc > 3 && strcmp(argv[3], "cost") == 0;
    const bool soaks = argc > 3 && strcmp(argv[3], "soak") == 0;
    const int size = number(argc, argv, 4, costs ? 2048 : 600), n = number(argc, argv, 5, 3000);
    const int in_flight = costs ? number(argc, argv, 6, 64) : number(argc, argv, 5, 64);
    if ((!costs && !soaks) || size < 1 || n < 3 || in_flight < 1) {
        fprintf(stderr, "usage: bench_endpoint PROGRAM FOLDER cost [PROMPT-TOKENS [REQUESTS "
                        "[IN-FLIGHT]]]\n"
                        "       bench_endpoint PROGRAM FOLDER soak [SECONDS [IN-FLIGHT]]\n");
        return 2;
    }
    struct served_load load = {.program = argv[1],
                               .folder = argv[2],
                               .requests = (costs ? n : size * in_flight) / 3 * 3,
                               .prompt_tokens = costs ? size : SOAK_PROMPT_TOKENS,
                               .reply_tokens = REPLY_TOKENS,
                               .in_flight = in_flight};
    return costs ? cost(&load) : soak(&load);
}
