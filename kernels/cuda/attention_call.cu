// The host's side that both attention kernels share: rules of a call, arguments for the device.
#include "kernels/cuda/attention_core.cuh"

#define LOG2_E 0x1.71547652b82fep+0

bool attention_supports(uint32_t E) {
    return E == 32 || E == 64 || E == 80 || E == 96 || E == 128 || E == 256;
}

static bool is_aligned(const void *p, size_t bytes) {
    return p != NULL && (uintptr_t)p % bytes == 0;
}

bool attention_is_valid(const struct attention_call *c) {
    const struct attention_shape *s = &c->shape;
    size_t width = (size_t)s->H * s->E;
    return attention_supports(s->E) && s->G > 0 && s->H > 0 && s->H % s->G == 0 &&
           s->page_offset % 16 == 0 && c->limits.spans > 0 && c->limits.spans <= 65535 &&
           c->limits.rows > 0 && c->limits.keys >= c->limits.rows && c->limits.keys < 1u << 31 &&
           c->spans != NULL && c->bad_row != NULL && is_aligned(c->q, 16) &&
           is_aligned(c->out, 16) && c->ldq >= width && c->ldout >= width && c->ldq % 8 == 0 &&
           c->ldout % 8 == 0 && (c->limits.ranges == 0 || c->watches != NULL);
}

struct attention_args attention_args_of(const struct attention_call *c) {
    const struct attention_shape *s = &c->shape;
    struct attention_args a = {};
    a.spans = c->spans;
    a.watches = c->limits.ranges > 0 ? c->watches : NULL;
    a.q = (const uint16_t *)c->q;
    a.out = (uint16_t *)c->out;
    a.ldq = c->ldq;
    a.ldout = c->ldout;
    a.H = s->H;
    a.G = s->G;
    a.group = s->H / s->G;
    a.score_scale = (float)(s->softcap != 0 ? s->scale / s->softcap : s->scale * LOG2_E);
    a.cap_scale = s->softcap != 0 ? (float)(s->softcap * LOG2_E) : 0.0f;
    a.window = s->window;
    a.page_offset = s->page_offset;
    a.bad_row = c->bad_row;
    return a;
}
