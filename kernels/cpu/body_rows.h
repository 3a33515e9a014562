// Ops that work row by row: norms, rotation, rounding, gates, reductions. Included by each table.
#include "kernels/cpu/body.h"

struct rows_call {
    const float *x;
    uint32_t ldx, n, ldout;
    OPERAND *out;
    const float *weight; // norm
    float epsilon;
    uint32_t heads, E, rotary; // rotation
    enum cpu_pairing pairing;
    const float *cos_sin;
    enum cpu_gate kind; // gate
};

struct rows_work {
    const struct rows_call *c;
    uint32_t R;
    void (*row)(const struct rows_call *c, uint32_t r);
};

static void rows_part(void *work, int thread, int n) {
    const struct rows_work *w = work;
    uint32_t from, to;
    team_part(w->R, thread, n, &from, &to);
    unsigned saved = env_enter();
    for (uint32_t r = from; r < to; r++) w->row(w->c, r);
    env_leave(saved);
}

static void rows_each(const struct cpu_pool *pool, int threads, const struct rows_call *c,
                      uint32_t R, void (*row)(const struct rows_call *c, uint32_t r)) {
    struct rows_work work = {c, R, row};
    team_run(pool->team, threads, rows_part, &work);
}

ENV_WORK void rmsnorm_row(const struct rows_call *c, uint32_t r) {
    const float *x = c->x + (size_t)r * c->ldx;
    OPERAND *out = c->out + (size_t)r * c->ldout;
    uint32_t whole = c->n / NUM_LANES * NUM_LANES, rest = c->n - whole;
    struct lanes squares = lanes_set(0.0f);
    for (uint32_t i = 0; i < whole; i += NUM_LANES) {
        struct lanes v = lanes_load(x + i);
        squares = lanes_fma(v, v, squares);
    }
    if (rest > 0) {
        struct lanes v = lanes_load_n(x + whole, rest);
        squares = lanes_fma(v, v, squares);
    }
    float mean = lanes_sum(squares) / (float)c->n + c->epsilon;
    struct lanes scale = lanes_set(1.0f / sqrtf(mean));
    for (uint32_t i = 0; i < whole; i += NUM_LANES)
        operand_store(out + i,
                      lanes_mul(lanes_mul(lanes_load(x + i), scale), lanes_load(c->weight + i)));
    if (rest > 0)
        operand_store_n(out + whole,
                        lanes_mul(lanes_mul(lanes_load_n(x + whole, rest), scale),
                                  lanes_load_n(c->weight + whole, rest)),
                        rest);
    operand_pad(out, c->n);
}

static void rmsnorm(const struct cpu_pool *pool, const float *x, uint32_t R, uint32_t D,
                    const float *weight, float epsilon, void *out, uint32_t ldout) {
    struct rows_call c = {
        .x = x, .ldx = D, .n = D, .ldout = ldout, .out = out, .weight = weight, .epsilon = epsilon};
    int threads = pool_threads(pool, (uint64_t)R * D);
    rows_each(pool, threads, &c, R, rmsnorm_row);
}

// Pairs (2i, 2i+1): x cos + swapped x (-sin, sin), which is a cos - b sin and b cos + a sin with
// each product rounded. On lanes and not as a plain loop because gcc 12 fuses that one into an
// addsub with fma, -ffp-contract=off or not.
static inline void rope_neighbours(const float *x, const float *cos_sin, uint32_t rotary,
                                   OPERAND *out) {
    for (uint32_t i = 0; i < rotary; i += NUM_LANES) {
        uint32_t n = rotary - i < NUM_LANES ? rotary - i : NUM_LANES;
        struct lanes v = lanes_load_n(x + i, n), angle = lanes_load_n(cos_sin + i, n);
        struct lanes straight = lanes_mul(v, lanes_even(angle));
        struct lanes crossed = lanes_mul(lanes_swapped(v), lanes_alternate(lanes_odd(angle)));
        operand_store_n(out + i, lanes_add(straight, crossed), n);
    }
}

// Pairs (i, i + rotary/2).
static inline void rope_halves(const float *x, const float *cos_sin, uint32_t rotary,
                               OPERAND *out) {
    uint32_t half = rotary / 2;
    for (uint32_t i = 0; i < half; i += NUM_LANES) {
        uint32_t n = half - i < NUM_LANES ? half - i : NUM_LANES;
        float cosine[NUM_LANES] = {0}, sine[NUM_LANES] = {0};
        for (uint32_t j = 0; j < n; j++) {
            cosine[j] = cos_sin[2 * (i + j)];
            sine[j] = cos_sin[2 * (i + j) + 1];
        }
        struct lanes c = lanes_load(cosine), s = lanes_load(sine);
        struct lanes a = lanes_load_n(x + i, n), b = lanes_load_n(x + half + i, n);
        operand_store_n(out + i, lanes_sub(lanes_mul(a, c), lanes_mul(b, s)), n);
        operand_store_n(out + half + i, lanes_add(lanes_mul(b, c), lanes_mul(a, s)), n);
    }
}

ENV_WORK void rope_row(const struct rows_call *c, uint32_t r) {
    const float *cos_sin = c->cos_sin + (size_t)r * c->rotary;
    for (uint32_t h = 0; h < c->heads; h++) {
        const float *x = c->x + (size_t)r * c->ldx + (size_t)h * c->E;
        OPERAND *out = c->out + (size_t)r * c->ldout + (size_t)h * c->E;
        if (c->pairing == CPU_PAIR_HALVES)
            rope_halves(x, cos_sin, c->rotary, out);
        else
            rope_neighbours(x, cos_sin, c->rotary, out);
        for (uint32_t i = c->rotary; i < c->E; i++) out[i] = operand_of(x[i]);
    }
}

static void rope(const struct cpu_pool *pool, const float *x, uint32_t ldx, uint32_t R,
                 uint32_t heads, uint32_t E, uint32_t rotary, enum cpu_pairing pairing,
                 const float *cos_sin, void *out, uint32_t ldout) {
    struct rows_call c = {.x = x,
                          .ldx = ldx,
                          .out = out,
                          .ldout = ldout,
                          .heads = heads,
                          .E = E,
                          .rotary = rotary,
                          .pairing = pairing,
                          .cos_sin = cos_sin};
    assert(rotary <= E && rotary % 2 == 0);
    int threads = pool_threads(pool, (uint64_t)R * heads * E);
    rows_each(pool, threads, &c, R, rope_row);
}

ENV_WORK void round_row(const struct rows_call *c, uint32_t r) {
    const float *x = c->x + (size_t)r * c->ldx;
    OPERAND *out = c->out + (size_t)r * c->ldout;
    uint32_t i = 0;
    for (; i + NUM_LANES <= c->n; i += NUM_LANES) operand_store(out + i, lanes_load(x + i));
    if (i < c->n) operand_store_n(out + i, lanes_load_n(x + i, c->n - i), c->n - i);
    operand_pad(out, c->n);
}

static void round_rows(const struct cpu_pool *pool, const float *x, uint32_t ldx, uint32_t R,
                       uint32_t n, void *out, uint32_t ldout) {
    struct rows_call c = {.x = x, .ldx = ldx, .n = n, .out = out, .ldout = ldout};
    int threads = pool_threads(pool, (uint64_t)R * n);
    rows_each(pool, threads, &c, R, round_row);
}

static inline struct lanes gate_lanes(enum cpu_gate kind, struct lanes g, struct lanes u) {
    return kind == CPU_GATE_SILU ? lanes_silu_gate(g, u) : lanes_gelu_gate(g, u);
}

ENV_WORK void gate_row(const struct rows_call *c, uint32_t r) {
    const float *g = c->x + (size_t)r * c->ldx, *u = g + c->n;
    OPERAND *out = c->out + (size_t)r * c->ldout;
    uint32_t i = 0;
    for (; i + NUM_LANES <= c->n; i += NUM_LANES)
        operand_store(out + i, gate_lanes(c->kind, lanes_load(g + i), lanes_load(u + i)));
    if (i < c->n) {
        uint32_t rest = c->n - i;
        operand_store_n(out + i,
                        gate_lanes(c->kind, lanes_load_n(g + i, rest), lanes_load_n(u + i, rest)),
                        rest);
    }
    operand_pad(out, c->n);
}

static void gate(const struct cpu_pool *pool, enum cpu_gate kind, const float *gu, uint32_t ldgu,
                 uint32_t R, uint32_t F, void *out, uint32_t ldout) {
    struct rows_call c = {.x = gu, .ldx = ldgu, .n = F, .out = out, .ldout = ldout, .kind = kind};
    int threads = pool_threads(pool, (uint64_t)R * F * 4);
    rows_each(pool, threads, &c, R, gate_row);
}

// The largest of n > 0 numbers; *finite says whether all are.
static inline float row_max(const float *z, uint32_t n, bool *finite) {
    struct lanes max = lanes_set(z[0]);
    bool ok = true;
    uint32_t i = 0;
    for (; i + NUM_LANES <= n; i += NUM_LANES) {
        struct lanes v = lanes_load(z + i);
        ok &= lanes_finite(v);
        max = lanes_max(max, v);
    }
    if (i < n) {
        struct lanes v = lanes_keep(lanes_load_n(z + i, n - i), 0, n - i, z[0]);
        ok &= lanes_finite(v);
        max = lanes_max(max, v);
    }
    *finite = ok;
    return lanes_max_of(max);
}

ENV_WORK float log_sum_exp_work(const float *z, uint32_t n) {
    bool finite;
    float max = row_max(z, n, &finite);
    struct lanes at = lanes_set(max), to_log2 = lanes_set(NUM_LOG2_E), sum = lanes_set(0.0f);
    uint32_t i = 0;
    for (; i + NUM_LANES <= n; i += NUM_LANES)
        sum =
            lanes_add(sum, lanes_exp2_below(lanes_mul(lanes_sub(lanes_load(z + i), at), to_log2)));
    if (i < n) {
        struct lanes e = lanes_mul(lanes_sub(lanes_load_n(z + i, n - i), at), to_log2);
        sum = lanes_add(sum, lanes_exp2_below(lanes_keep(e, 0, n - i, -INFINITY)));
    }
    return max + NUM_LN_2 * num_log2(lanes_sum(sum));
}

static float log_sum_exp(const float *z, uint32_t n) {
    assert(n > 0);
    unsigned saved = env_enter();
    float result = log_sum_exp_work(z, n);
    env_leave(saved);
    return result;
}

ENV_WORK int64_t argmax_work(const float *z, uint32_t n) {
    bool finite;
    float max = row_max(z, n, &finite);
    if (!finite) return -1;
    for (uint32_t i = 0; i < n; i++)
        if (z[i] == max) return i;
    return -1;
}

static int64_t argmax(const float *z, uint32_t n) {
    assert(n > 0);
    unsigned saved = env_enter();
    int64_t result = argmax_work(z, n);
    env_leave(saved);
    return result;
}
