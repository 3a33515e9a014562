// One pass: its lists go to the device in one copy, made once for all layers, and what its kernels
// find that is not finite comes back in another.
//
// Spans of few rows attend by the `decode` kernel, the others by `prefill`; a watched row, the last
// one of its span, always attends by `decode`, which sums the shares.
#include "kernels/cuda/device.h"
#include "kernels/cuda/kv.h"
#include "kernels/cuda/rows.h"

#include <string.h>

#define FEW_ROWS 1
#define ALIGNMENT 256

// Where a list of the pass stands: counted first, then written. Every list has the same place on
// the host and on the device.
struct cursor {
    uint8_t *host, *device; // NULL: only counting
    size_t at;
};

// The lists stand where the form of the pass alone puts them (a recorded pass is replayed with the
// same addresses); behind them what they point to.
struct places {
    struct cursor lists, tables;
};

template <class T> static T *take(struct cursor *c, size_t count, T **device) {
    T *host = c->host != NULL ? (T *)(c->host + c->at) : NULL;
    *device = c->device != NULL ? (T *)(c->device + c->at) : NULL;
    c->at += (count * sizeof(T) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return host;
}

static uint32_t more(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static uint32_t blocks_of(uint32_t keys) {
    return (keys + CUDA_PAGE - 1) / CUDA_PAGE;
}

static uint32_t pages_of(const struct cuda_span *s) {
    return blocks_of(s->first_position + s->rows);
}

// The pages of a span, and the span itself as the next one of a list.
static void put_span(struct places *p, const struct cuda_span *s, uint32_t watch,
                     struct attention_span *list, uint32_t *count) {
    uint8_t **device_pages, **pages = take(&p->tables, pages_of(s), &device_pages);
    uint32_t at = (*count)++;
    if (pages == NULL) return;
    memcpy(pages, s->pages, pages_of(s) * sizeof *pages);
    list[at] = {s->first_row, s->rows, s->first_position, watch,
                (const uint8_t *const *)device_pages};
}

struct split {
    struct cuda_span_lists lists;
    struct attention_span *many, *few; // host
    uint32_t watched;
};

static void add_span(struct places *p, struct split *to, const struct cuda_span *s,
                     uint32_t watch) {
    struct cuda_span_lists *l = &to->lists;
    bool few = s->rows <= FEW_ROWS || watch != ATTENTION_UNWATCHED;
    uint32_t *rows = few ? &l->few_rows : &l->many_rows, *keys = few ? &l->few_keys : &l->many_keys;
    *rows = more(*rows, s->rows);
    *keys = more(*keys, s->first_position + s->rows);
    put_span(p, s, watch, few ? to->few : to->many, few ? &l->few_count : &l->many_count);
}

// A watched span: its other rows, and the watched one.
static void add_watched(struct places *p, struct split *to, const struct cuda_span *s) {
    struct cuda_span before = *s, last = *s;
    before.rows = s->rows - 1;
    if (before.rows > 0) add_span(p, to, &before, ATTENTION_UNWATCHED);
    last.first_row += before.rows;
    last.first_position += before.rows;
    last.rows = 1;
    add_span(p, to, &last, to->watched++);
}

// Keys that the grid of `decode` is made for: whole blocks, 1, 2, 3, 4, 6, 8, 12, 16, ... of them,
// so that passes of a growing context have few forms. Blocks behind the last key leave at once.
static uint32_t keys_planned(uint32_t keys, uint32_t most) {
    uint32_t blocks = blocks_of(keys), size = 1;
    while (size < blocks) size *= 2;
    if (size >= 4 && blocks <= size / 4 * 3) size = size / 4 * 3;
    if (size > blocks_of(most)) size = more(blocks, blocks_of(most));
    return size * CUDA_PAGE;
}

static struct cuda_span_lists split_spans(struct places *p, const struct cuda_span *spans,
                                          uint32_t count, uint32_t most_keys) {
    struct split to = {};
    struct attention_span *device;
    to.many = take(&p->lists, count, &device);
    to.lists.many = device;
    to.few = take(&p->lists, 2 * (size_t)count, &device);
    to.lists.few = device;
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].watch != NULL)
            add_watched(p, &to, &spans[i]);
        else
            add_span(p, &to, &spans[i], ATTENTION_UNWATCHED);
    }
    to.lists.few_keys = keys_planned(to.lists.few_keys, most_keys);
    return to.lists;
}

// The watches of every layer, which differ in where their shares go.
static void put_watches(struct places *p, const struct cuda_pass *pass, uint32_t layers,
                        struct cuda_pass_state *to) {
    to->watch_count = to->ranges = 0;
    for (uint32_t i = 0; i < pass->span_count; i++) to->watch_count += pass->spans[i].watch != NULL;
    struct attention_watch *device;
    struct attention_watch *watches = take(&p->lists, (size_t)layers * to->watch_count, &device);
    to->watches = device;
    for (uint32_t i = 0, w = 0; i < pass->span_count; i++) {
        const struct cuda_watch *from = pass->spans[i].watch;
        if (from == NULL) continue;
        to->ranges = more(to->ranges, from->count);
        struct attention_key_range *device_ranges;
        struct attention_key_range *ranges = take(&p->tables, from->count, &device_ranges);
        for (uint32_t k = 0; ranges != NULL && k < from->count; k++)
            ranges[k] = {from->ranges[k].first, from->ranges[k].end};
        for (uint32_t l = 0; watches != NULL && l < layers; l++)
            watches[(size_t)l * to->watch_count + w] = {device_ranges, from->count, 0, 1,
                                                        from->shares + l * pass->shares_stride};
        w++;
    }
}

// Counts, or writes when the cursors have memory.
static void put_pass(struct places *p, const struct cuda_pass *pass, const struct cuda_device *d,
                     struct cuda_pass_state *to) {
    int32_t *device_ids, *ids = take(&p->lists, pass->ids != NULL ? pass->rows : 0, &device_ids);
    if (ids != NULL && pass->ids != NULL) memcpy(ids, pass->ids, pass->rows * sizeof *ids);
    to->ids = device_ids;
    uint32_t *device_positions;
    uint32_t *positions =
        take(&p->lists, pass->positions != NULL ? pass->rows : 0, &device_positions);
    if (positions != NULL && pass->positions != NULL)
        memcpy(positions, pass->positions, pass->rows * sizeof *positions);
    to->positions = device_positions;
    uint32_t *device_wanted, *wanted = take(&p->lists, pass->wanted_count, &device_wanted);
    if (wanted != NULL && pass->wanted_count > 0)
        memcpy(wanted, pass->wanted, pass->wanted_count * sizeof *wanted);
    to->wanted = device_wanted;
    struct attention_span *device, *spans = take(&p->lists, pass->span_count, &device);
    to->span_count = 0;
    for (uint32_t i = 0; i < pass->span_count; i++)
        put_span(p, &pass->spans[i], ATTENTION_UNWATCHED, spans, &to->span_count);
    to->spans = device;
    to->all = split_spans(p, pass->spans, pass->span_count, d->limits.positions);
    to->some = split_spans(p, pass->wanted_spans, pass->wanted_span_count, d->limits.positions);
    put_watches(p, pass, d->limits.L, to);
    to->rows = pass->rows;
    to->wanted_count = pass->wanted_count;
}

static size_t fault_bytes(const struct cuda_limits *l) {
    return (size_t)l->L * CUDA_FAULT_KINDS * sizeof(uint32_t);
}

static size_t told_bytes(const struct cuda_limits *l) {
    return fault_bytes(l) + CUDA_RESULT_ROWS * sizeof(uint32_t);
}

void pass_begin(struct cuda_device *d, const struct cuda_pass *pass) {
    struct cuda_pass_state *to = &d->pass;
    struct places at = {};
    put_pass(&at, pass, d, to);
    size_t lists = at.lists.at, bytes = lists + at.tables.at;
    if (!area_reserve(d, &to->host, bytes) || !area_reserve(d, &to->device, bytes)) return;
    device_check(d, cudaEventSynchronize(to->copied), "pass");
    uint8_t *host = (uint8_t *)to->host.p, *device = (uint8_t *)to->device.p;
    at = {{host, device, 0}, {host + lists, device + lists, 0}};
    put_pass(&at, pass, d, to);
    device_check(d, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, d->stream),
                 "pass");
    device_check(d, cudaEventRecord(to->copied, d->stream), "pass");
    device_check(d, cudaMemsetAsync(d->told.p, 0xff, fault_bytes(&d->limits), d->stream), "pass");
    d->told_now = false;
}

bool pass_form(const struct cuda_device *d, struct cuda_pass_form *out) {
    const struct cuda_pass_state *pass = &d->pass;
    *out = {pass->rows,   pass->wanted_count, pass->watch_count,
            pass->ranges, pass->all.few_keys, pass->some.few_keys};
    return pass->rows == pass->span_count;
}

// ---- planning ----------------------------------------------------------------------------------

static struct attention_shape shape_of(const struct cuda_attention *a) {
    return {a->H, a->G, a->E, a->scale, a->softcap, a->window, a->page_offset};
}

static size_t workspace_bytes(const struct cuda_limits *l) {
    struct attention_shape shape = {l->H, l->G, l->E, 1.0, 0.0, 0, 0};
    struct attention_limits limits = {l->sequences, FEW_ROWS, l->positions, l->ranges};
    return attention_decode_workspace(&shape, &limits);
}

static size_t list_bytes(const struct cuda_limits *l) {
    size_t pages = ((size_t)l->positions + CUDA_PAGE - 1) / CUDA_PAGE;
    size_t tables = (5 * l->sequences) * (pages * sizeof(void *) + ALIGNMENT);
    size_t spans = 7 * (size_t)l->sequences * sizeof(struct attention_span);
    size_t watches = (size_t)l->sequences * (l->L * sizeof(struct attention_watch) + ALIGNMENT) +
                     l->ranges * sizeof(struct attention_key_range);
    return l->rows * 3 * sizeof(uint32_t) + tables + spans + watches + 16 * ALIGNMENT;
}

uint64_t pass_bytes(const struct cuda_limits *l) {
    return list_bytes(l) + workspace_bytes(l) + told_bytes(l);
}

int pass_prepare(struct cuda_device *d, const struct cuda_limits *l) {
    d->limits = *l;
    bool done = area_reserve(d, &d->pass.host, list_bytes(l)) &&
                area_reserve(d, &d->pass.device, list_bytes(l)) &&
                area_reserve(d, &d->workspace, workspace_bytes(l)) &&
                area_reserve(d, &d->told, told_bytes(l)) &&
                area_reserve(d, &d->told_host, told_bytes(l));
    return done ? 0 : -1;
}

// ---- ops ---------------------------------------------------------------------------------------

static uint32_t *fault_word(struct cuda_device *d, uint32_t layer, enum cuda_fault_kind kind) {
    d->told_now = false;
    return (uint32_t *)d->told.p + (size_t)layer * CUDA_FAULT_KINDS + kind;
}

void pass_kv_append(struct cuda_device *d, const struct cuda_attention *a, const void *k,
                    const void *v, uint32_t ld) {
    const struct cuda_pass_state *pass = &d->pass;
    struct kv_call call = {a->G,
                           a->E,
                           a->page_offset,
                           pass->spans,
                           pass->span_count,
                           pass->rows,
                           k,
                           v,
                           ld,
                           fault_word(d, a->layer, CUDA_FAULT_KV)};
    device_check(d, kv_append_launch(d->stream, &call), "keys and values");
}

void pass_attention(struct cuda_device *d, const struct cuda_attention *a, bool wanted,
                    const void *q, uint32_t ldq, void *out, uint32_t ldout) {
    const struct cuda_pass_state *pass = &d->pass;
    const struct cuda_span_lists *l = wanted ? &pass->some : &pass->all;
    struct attention_call call = {};
    call.shape = shape_of(a);
    call.q = q;
    call.ldq = ldq;
    call.out = out;
    call.ldout = ldout;
    call.bad_row = fault_word(d, a->layer, CUDA_FAULT_SCORE);
    if (l->many_count > 0) {
        call.limits = {l->many_count, l->many_rows, l->many_keys, 0};
        call.spans = l->many;
        device_check(d, attention_prefill_launch(d->stream, &call), "attention of many rows");
    }
    if (l->few_count == 0) return;
    call.limits = {l->few_count, l->few_rows, l->few_keys, pass->ranges};
    call.spans = l->few;
    call.watches = pass->watches + (size_t)a->layer * pass->watch_count;
    if (!area_reserve(d, &d->workspace, attention_decode_workspace(&call.shape, &call.limits)))
        return;
    call.workspace = d->workspace.p;
    device_check(d, attention_decode_launch(d->stream, &call), "attention of few rows");
}

void *pass_results(struct cuda_device *d) {
    d->told_now = false;
    return (uint8_t *)d->told.p + fault_bytes(&d->limits);
}

const void *pass_told(struct cuda_device *d) {
    size_t bytes = told_bytes(&d->limits);
    d->told_now =
        device_check(
            d, cudaMemcpyAsync(d->told_host.p, d->told.p, bytes, cudaMemcpyDeviceToHost, d->stream),
            "results") &&
        device_check(d, cudaStreamSynchronize(d->stream), "kernels");
    return d->told_now ? (const uint8_t *)d->told_host.p + fault_bytes(&d->limits) : NULL;
}

bool pass_fault(struct cuda_device *d, enum cuda_fault_kind *kind, uint32_t *layer, uint32_t *row) {
    size_t words = (size_t)d->limits.L * CUDA_FAULT_KINDS;
    if (!d->told_now && pass_told(d) == NULL) return false;
    const uint32_t *bad = (const uint32_t *)d->told_host.p;
    for (size_t i = 0; i < words; i++) {
        if (bad[i] == UINT32_MAX) continue;
        *layer = (uint32_t)(i / CUDA_FAULT_KINDS);
        *kind = (enum cuda_fault_kind)(i % CUDA_FAULT_KINDS);
        *row = bad[i];
        return true;
    }
    return false;
}
