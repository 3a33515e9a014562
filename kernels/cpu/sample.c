#include "kernels/cpu/sample.h"

#include "kernels/cpu/rank.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/team.h"
#include "kernels/sample.h"

#include <assert.h>
#include <stdbool.h>

size_t cpu_sample_bytes(uint32_t n) {
    return cpu_rank_bytes(n);
}

// The first of some ascending sums that is `least` or more, or more than it.
static uint32_t first_sum(const double *sum, uint32_t count, double least, bool more) {
    uint32_t low = 0, high = count - 1; // the last one is
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sum[middle] > least || (!more && sum[middle] == least))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint32_t cpu_sample(const float *z, uint32_t n, uint32_t largest, const struct token_draw *draw,
                    void *memory) {
    double temperature = draw->temperature;
    assert(temperature > 0 && draw->top_p > 0 && draw->top_p <= 1 && draw->u >= 0 && draw->u < 1);
    float first = sample_logit(sample_key(z[largest]));
    struct cpu_ranked *order;
    void *spare;
    uint32_t count = cpu_rank(z, n, sample_last_key(first, temperature), memory, &order, &spare);
    double *sum = spare, total = 0;
    for (uint32_t i = 0; i < count; i++) sum[i] = sample_weight(order[i].key, first, temperature);
    for (uint32_t i = 0; i < count; i++) sum[i] = total += sum[i];
    double kept = sum[first_sum(sum, count, draw->top_p * total, false)];
    return (uint32_t)order[first_sum(sum, count, draw->u * kept, true)].id;
}

struct draw_work {
    const struct cpu_ops *ops;
    const struct cpu_pool *pool;
    const float *z;
    uint32_t R, n;
    const struct token_draw *draws;
    int64_t *out;
    _Atomic uint32_t next; // row
};

static void draw_some(void *work, int thread, int threads) {
    (void)threads;
    struct draw_work *w = work;
    void *memory = (uint8_t *)w->pool->scratch + (size_t)thread * w->pool->slice_bytes;
    for (uint32_t r; (r = atomic_fetch_add(&w->next, 1)) < w->R;) {
        const float *z = w->z + (size_t)r * w->n;
        w->out[r] = w->ops->argmax(z, w->n);
        if (w->out[r] >= 0 && w->draws[r].temperature > 0)
            w->out[r] = cpu_sample(z, w->n, (uint32_t)w->out[r], &w->draws[r], memory);
    }
}

void cpu_draw_rows(const struct cpu_ops *ops, const struct cpu_pool *pool, const float *z,
                   uint32_t R, uint32_t n, const struct token_draw *draws, int64_t *out) {
    struct draw_work work = {ops, pool, z, R, n, draws, out, 0};
    uint64_t operations = 0, useful;
    for (uint32_t r = 0; r < R; r++)
        operations += (draws[r].temperature > 0 ? 64 : 1) * (uint64_t)n;
    useful = operations / SHAPE_THREAD_WORK + 1;
    if (useful > R) useful = R;
    if (useful > (uint64_t)pool->threads) useful = (uint64_t)pool->threads;
    team_run(pool->team, (int)useful, draw_some, &work);
}
