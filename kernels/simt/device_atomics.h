// Atomic operations and fences. CUDA's atomics are relaxed; here they also order memory, so that
// the thread sanitizer accepts the usual fence beside them.
#ifndef LACUNA_KERNELS_SIMT_DEVICE_ATOMICS_H
#define LACUNA_KERNELS_SIMT_DEVICE_ATOMICS_H

#include <type_traits>

template <class value, class change> value simt_atomic(value *p, change changed) {
    value old, next;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do {
        next = changed(old);
    } while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return old;
}
template <class value> value atomicAdd(value *p, std::common_type_t<value> v) {
    return simt_atomic(p, [v](value old) { return (value)(old + v); });
}
template <class value> value atomicMax(value *p, std::common_type_t<value> v) {
    return simt_atomic(p, [v](value old) { return old > v ? old : v; });
}
template <class value> value atomicMin(value *p, std::common_type_t<value> v) {
    return simt_atomic(p, [v](value old) { return old < v ? old : v; });
}
template <class value> value atomicExch(value *p, std::common_type_t<value> v) {
    return simt_atomic(p, [v](value) { return v; });
}
template <class value>
value atomicCAS(value *p, std::common_type_t<value> expected, std::common_type_t<value> v) {
    return simt_atomic(p, [=](value old) { return old == expected ? v : old; });
}
inline void __threadfence() {}
inline void __threadfence_block() {}

#endif
