// See fiber.h. The address sanitizer is told of each switch, the thread sanitizer knows each fiber
// as a thread of its own.
#include "kernels/simt/fiber.h"
#include "kernels/simt/report.h"
#include "kernels/simt/sanitizers.h"

#include <sys/mman.h>

#ifdef SIMT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMT_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
}
enum { TSAN_NO_SYNC = 1 }; // a switch orders nothing, or it would hide every race
#endif

// Saves the callee's registers on the old stack, then takes them from the new one. It ends in a
// jump rather than a return: the processor's return predictor would guess wrong at each switch.
extern "C" void simt_switch_stack(void **save, void *to);
__asm__(".pushsection .text\n"
        ".globl simt_switch_stack\n"
        ".hidden simt_switch_stack\n"
        ".type simt_switch_stack,@function\n"
        "simt_switch_stack:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp,(%rdi)\n"
        "mov %rsi,%rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "pop %rdx\n"
        "jmp *%rdx\n"
        ".size simt_switch_stack,.-simt_switch_stack\n"
        ".popsection\n");

namespace simt {

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096, SAVED_REGISTERS = 6 };

static fiber *left; // whose switch brought us where we are

void fiber_create(fiber *f, void (*entry)()) {
    void *map = mmap(nullptr, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map, GUARD_BYTES, PROT_NONE) != 0)
        fail("no memory for the stacks of threads");
    *f = fiber{};
    f->stack = (unsigned char *)map + GUARD_BYTES;
    f->stack_bytes = STACK_BYTES;
    // The image that a switch takes its registers from; below an empty return address, so that the
    // stack is aligned as at a call.
    void **top = (void **)(f->stack + STACK_BYTES - 64);
    *--top = nullptr;
    *--top = (void *)entry;
    for (int i = 0; i < SAVED_REGISTERS; i++) *--top = nullptr;
    f->stack_pointer = top;
#ifdef SIMT_TSAN
    f->tsan_fiber = __tsan_create_fiber(0);
#endif
}

void fiber_adopt(fiber *f) {
    *f = fiber{};
#ifdef SIMT_TSAN
    f->tsan_fiber = __tsan_get_current_fiber();
#endif
}

// Behind a switch: ends what its first half began. The bounds of an adopted stack are learnt here.
static void arrived(fiber *me) {
#ifdef SIMT_ASAN
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(me ? me->asan_fake_stack : nullptr, &bottom, &bytes);
    left->stack = (unsigned char *)bottom;
    left->stack_bytes = bytes;
#else
    (void)me;
#endif
}

void fiber_entered() {
    arrived(nullptr);
}

void fiber_switch(fiber *from, fiber *to) {
    left = from;
#ifdef SIMT_ASAN
    __sanitizer_start_switch_fiber(&from->asan_fake_stack, to->stack, to->stack_bytes);
#endif
#ifdef SIMT_TSAN
    __tsan_switch_to_fiber(to->tsan_fiber, TSAN_NO_SYNC);
#endif
    simt_switch_stack(&from->stack_pointer, to->stack_pointer);
    arrived(from);
}

} // namespace simt
