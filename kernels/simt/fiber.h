// Stacks to run on and the switch between two of them: each CUDA thread is one.
#ifndef LACUNA_KERNELS_SIMT_FIBER_H
#define LACUNA_KERNELS_SIMT_FIBER_H

#include <stddef.h>

namespace simt {

struct fiber {
    void *stack_pointer; // while it does not run
    unsigned char *stack;
    size_t stack_bytes;
    void *asan_fake_stack;
    void *tsan_fiber;
};

// A stack of its own above a guard page. `entry` calls fiber_entered first and never returns.
void fiber_create(fiber *f, void (*entry)());
// The stack that runs now becomes `f`.
void fiber_adopt(fiber *f);
void fiber_switch(fiber *from, fiber *to);
void fiber_entered();

} // namespace simt

#endif
