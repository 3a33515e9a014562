#include "engine/watch.h"

#include <string.h>

static size_t heads_of(const struct watch *w) {
    return (size_t)w->model->L * w->model->H;
}

static double *subject_array(const struct watch *w, struct arena *a) {
    return arena_array(a, (size_t)w->subject_count * heads_of(w), sizeof(double));
}

void watch_start(struct watch *w, const struct model_config *c, const struct provider_request *r,
                 struct arena *a) {
    *w = (struct watch){.model = c, .prompt_tokens = (uint32_t)r->ids.count};
    if (r->span_count == 0) return;
    size_t count = (size_t)r->span_count;
    struct provider_span *spans = arena_array(a, count, sizeof *spans);
    struct backend_key_range *ranges = arena_array(a, count, sizeof *ranges);
    for (size_t i = 0; i < count; i++) {
        spans[i] = r->spans[i];
        ranges[i] = (struct backend_key_range){spans[i].first_token,
                                               spans[i].first_token + spans[i].tokens};
    }
    w->spans = spans;
    w->subject_count = r->subject_count;
    w->item = (struct session_watch){ranges, (uint32_t)count,
                                     arena_array(a, heads_of(w) * count, sizeof *w->item.shares)};
    w->row = subject_array(w, a);
    w->prompt = subject_array(w, a);
    w->sum = subject_array(w, a);
    w->most = subject_array(w, a);
    w->prompt_tokens_share = arena_array(a, (size_t)r->subject_count, sizeof(double));
    w->tokens_sum = arena_array(a, (size_t)r->subject_count, sizeof(double));
}

// Shares of the row at hand by subject: its spans in ascending order.
static void sum_spans(struct watch *w) {
    size_t heads = heads_of(w);
    memset(w->row, 0, (size_t)w->subject_count * heads * sizeof *w->row);
    for (size_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < w->item.count; i++)
            w->row[(size_t)w->spans[i].subject * heads + h] +=
                (double)w->item.shares[h * w->item.count + i];
}

// The tokens of a subject that the row at hand sees, out of all that it sees.
static double tokens_share(const struct watch *w, int subject) {
    uint32_t end = w->prompt_tokens + w->rows, window = w->model->window;
    uint32_t first = window != 0 && end > window ? end - window : 0, seen = 0;
    for (uint32_t i = 0; i < w->item.count; i++) {
        const struct backend_key_range *range = &w->item.ranges[i];
        uint32_t from = range->first > first ? range->first : first;
        if (w->spans[i].subject == subject && range->end > from) seen += range->end - from;
    }
    return (double)seen / (double)(end - first);
}

void watch_add(struct watch *w) {
    if (w->item.count == 0) return;
    size_t n = (size_t)w->subject_count * heads_of(w);
    sum_spans(w);
    for (int s = 0; s < w->subject_count; s++) {
        double share = tokens_share(w, s);
        if (w->rows == 0)
            w->prompt_tokens_share[s] = share;
        else
            w->tokens_sum[s] += share;
    }
    if (w->rows++ == 0) {
        memcpy(w->prompt, w->row, n * sizeof *w->row);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        w->sum[i] += w->row[i];
        if (w->row[i] > w->most[i]) w->most[i] = w->row[i];
    }
}

const struct provider_attention *watch_end(const struct watch *w, struct arena *a) {
    if (w->rows == 0) return NULL;
    size_t heads = heads_of(w), n = (size_t)w->subject_count * heads;
    struct provider_attention *out = arena_array(a, (size_t)w->subject_count, sizeof *out);
    double *prompt = subject_array(w, a), *mean = subject_array(w, a), *most = subject_array(w, a);
    double rows = (double)(w->rows - 1);
    memcpy(prompt, w->prompt, n * sizeof *prompt);
    memcpy(most, w->most, n * sizeof *most);
    for (size_t i = 0; i < n && w->rows > 1; i++) mean[i] = w->sum[i] / rows;
    for (int s = 0; s < w->subject_count; s++) {
        size_t at = (size_t)s * heads;
        out[s] = (struct provider_attention){.prompt = prompt + at,
                                             .prompt_tokens = w->prompt_tokens_share[s]};
        if (w->rows == 1) continue;
        out[s].reply_mean = mean + at;
        out[s].reply_max = most + at;
        out[s].reply_tokens = w->tokens_sum[s] / rows;
    }
    return out;
}
