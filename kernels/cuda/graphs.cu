// Decoding passes as CUDA graphs: the first of a form is launched op by op (its kernels are loaded
// and its working memory is taken), the second is recorded while it is queued, later ones are
// replayed by one launch. A graph is what the ops would launch, in their order, so it changes no
// bit.
//
// A replay has the grids and arguments of the recording; what differs from pass to pass is read
// from the lists that pass_begin uploads before it. A pass of another form has a recording of its
// own. There are few: the rows are the sequences that decode together, and the keys come in steps
// (pass.cu). Of more than CUDA_GRAPHS_MOST the one goes that was not used for longest: each takes
// memory of the driver's for its hundreds of launches.
#include "kernels/cuda/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct graph_key {
    void (*work)(void *context);
    void *context;
    struct cuda_pass_form form;
};

struct graph {
    struct graph_key key;
    cudaGraphExec_t executable; // NULL: the form was seen once
    uint64_t used;              // when, by the clock below
};

struct cuda_graphs {
    bool on, recording;
    char spoilt[256], why[256]; // of the recording; why there are no more recordings. "": not so
    uint64_t clock;
    struct graph list[CUDA_GRAPHS_MOST];
    int count;
};

int graphs_open(struct cuda_device *d) {
    d->graphs = (struct cuda_graphs *)calloc(1, sizeof *d->graphs);
    if (d->graphs == NULL) return -1;
    d->graphs->on = true;
    return 0;
}

void graphs_close(struct cuda_device *d) {
    if (d->graphs == NULL) return;
    graphs_drop(d);
    free(d->graphs);
    d->graphs = NULL;
}

static void forget(struct cuda_device *d, struct graph *g) {
    if (g->executable != NULL) device_check(d, cudaGraphExecDestroy(g->executable), "graph");
    *g = {};
}

void graphs_drop(struct cuda_device *d) {
    struct cuda_graphs *all = d->graphs;
    for (int i = 0; i < all->count; i++) forget(d, &all->list[i]);
    all->count = 0;
}

void graphs_use(struct cuda_device *d, bool on) {
    d->graphs->on = on;
}

bool graphs_recording(const struct cuda_device *d) {
    return d->graphs->recording;
}

void graphs_spoil(struct cuda_device *d, const char *why) {
    char *spoilt = d->graphs->spoilt;
    if (spoilt[0] == '\0') snprintf(spoilt, sizeof d->graphs->spoilt, "%s", why);
}

static struct graph *find(struct cuda_graphs *all, const struct graph_key *key) {
    for (int i = 0; i < all->count; i++)
        if (memcmp(&all->list[i].key, key, sizeof *key) == 0) return &all->list[i];
    return NULL;
}

// A place for another form, if need be that of the one that was not used for longest.
static struct graph *add(struct cuda_device *d, const struct graph_key *key) {
    struct cuda_graphs *all = d->graphs;
    struct graph *at = &all->list[0];
    if (all->count < CUDA_GRAPHS_MOST) {
        at = &all->list[all->count++];
    } else {
        for (struct graph &g : all->list)
            if (g.used < at->used) at = &g;
        forget(d, at);
    }
    at->key = *key;
    return at;
}

static void note(struct cuda_device *d, const char *what, cudaError_t result) {
    if (result == cudaSuccess) return;
    (void)cudaGetLastError();
    char why[200];
    snprintf(why, sizeof why, "%s: %s (%s)", what, cudaGetErrorString(result),
             cudaGetErrorName(result));
    graphs_spoil(d, why);
}

// What the work queues, as an executable graph; NULL when it cannot be had. Nothing has run.
static cudaGraphExec_t record(struct cuda_device *d, const struct graph_key *key) {
    struct cuda_graphs *all = d->graphs;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    all->spoilt[0] = '\0';
    cudaError_t begun = cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal);
    note(d, "recording a pass", begun);
    if (begun != cudaSuccess) return NULL;
    all->recording = true;
    key->work(key->context);
    all->recording = false;
    note(d, "recording a pass", cudaStreamEndCapture(d->stream, &graph));
    if (all->spoilt[0] == '\0')
        note(d, "a graph of a pass", cudaGraphInstantiate(&executable, graph, 0));
    if (graph != NULL) (void)cudaGraphDestroy(graph);
    return all->spoilt[0] == '\0' ? executable : NULL;
}

const char *graphs_play(struct cuda_device *d, void (*work)(void *context), void *context) {
    struct cuda_graphs *all = d->graphs;
    struct graph_key key = {work, context, {}};
    struct graph *at = NULL;
    const char *told = NULL;
    if (all->on && d->failed == cudaSuccess && pass_form(d, &key.form)) {
        at = find(all, &key);
        if (at == NULL) {
            at = add(d, &key);
        } else if (at->executable == NULL && all->why[0] == '\0') {
            at->executable = record(d, &key);
            if (at->executable == NULL) {
                memcpy(all->why, all->spoilt, sizeof all->why);
                told = all->why;
            }
        }
        at->used = ++all->clock;
    }
    if (at == NULL || at->executable == NULL)
        work(context);
    else
        device_check(d, cudaGraphLaunch(at->executable, d->stream), "a recorded pass");
    return told;
}
