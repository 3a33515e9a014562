// Device functions that NVIDIA's headers do not give to the host. Only those with one defined
// result are here: approximations (__expf, rsqrtf) would differ between the two builds. The one
// that a kernel may use, because its results must not depend on it, is as wrong as it may be.
#ifndef LACUNA_KERNELS_SIMT_DEVICE_ARITHMETIC_H
#define LACUNA_KERNELS_SIMT_DEVICE_ARITHMETIC_H

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/numerics.h"

template <class to, class from> to simt_bits(from value) {
    static_assert(sizeof(to) == sizeof(from), "a change of type keeps the bits");
    to result;
    memcpy((void *)&result, &value, sizeof result);
    return result;
}
inline int __float_as_int(float x) {
    return simt_bits<int>(x);
}
inline unsigned __float_as_uint(float x) {
    return simt_bits<unsigned>(x);
}
inline float __int_as_float(int x) {
    return simt_bits<float>(x);
}
inline float __uint_as_float(unsigned x) {
    return simt_bits<float>(x);
}

inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
namespace simt {
// ex2.approx.ftz.f32: 2^x, above or below by the bits of x by 1.4 to 2.8 units in the last place,
// where 2.5 are allowed.
inline float exp2_approximated(float x) {
    if (x != x) return x;
    const uint32_t hash = simt_bits<uint32_t>(x) * 2654435769u;
    const double error = hash >> 31 ? 0x1.6p-23 : -0x1.6p-23; // the polynomial's own comes to it
    const double y = (double)num_exp2(x) * (1.0 + error);
    return y < 0x1p-126 ? 0.0f : (float)y;
}
} // namespace simt

inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline int __float2int_rn(float x) {
    return (int)rintf(x);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __clz(int x) {
    return x != 0 ? __builtin_clz((unsigned)x) : 32;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}

template <class value> value __ldg(const value *p) {
    return *p;
}
template <class value> value __ldcs(const value *p) {
    return *p;
}
template <class value> value __ldcg(const value *p) {
    return *p;
}
template <class value> void __stcs(value *p, value v) {
    *p = v;
}
template <class value> void __stcg(value *p, value v) {
    *p = v;
}

inline int min(int a, int b) {
    return a < b ? a : b;
}
inline int max(int a, int b) {
    return a > b ? a : b;
}
inline unsigned min(unsigned a, unsigned b) {
    return a < b ? a : b;
}
inline unsigned max(unsigned a, unsigned b) {
    return a > b ? a : b;
}
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}

#endif
