// Nothing is allocated while decoding: the allocator and mmap are replaced by counting ones.
#include "engine/walk.h"
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOOKED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOOKED 0
#endif
#endif
#ifndef HOOKED
#define HOOKED 1
#endif

#if HOOKED
static atomic_long allocations;
static atomic_bool watching;

static void count(void) {
    if (atomic_load(&watching)) atomic_fetch_add(&allocations, 1);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void *malloc(size_t n) {
    count();
    return __libc_malloc(n);
}
__attribute__((visibility("default"))) void *calloc(size_t n, size_t size) {
    count();
    return __libc_calloc(n, size);
}
__attribute__((visibility("default"))) void *realloc(void *p, size_t n) {
    count();
    return __libc_realloc(p, n);
}
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t n) {
    count();
    return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) int posix_memalign(void **p, size_t alignment, size_t n) {
    count();
    *p = __libc_memalign(alignment, n);
    return *p != NULL ? 0 : 12;
}
__attribute__((visibility("default"))) void *mmap(void *p, size_t n, int protection, int flags,
                                                  int file, off_t offset) {
    count();
    return (void *)syscall(SYS_mmap, p, n, protection, flags, file, offset);
}

// Counts when the first and the last pass begin, the prompts' passes included.
static const struct backend_ops *sound;
static struct backend_ops watched;
static long at_first, at_last, passes;

static void watched_begin(struct backend *b, const struct backend_pass *pass) {
    at_last = atomic_load(&allocations);
    if (passes++ == 0) at_first = at_last;
    sound->begin(b, pass);
}

static struct str token_bytes(const void *context, int32_t id) {
    (void)context;
    return id % 2 ? STR("ab ") : STR("z");
}

static void test_decoding_allocates_nothing(void **state) {
    (void)state;
    enum { LEAVES = 5, TOKENS = 600 }; // long enough to take new pages
    static int32_t ids[LEAVES][100];
    const char *path = probe_model("allocations", &(struct tiny_model_options){.context = 2048});
    struct session_options o = {.context_tokens = 1024, .threads = 1};
    walk_session_options(&o, 1024, LEAVES);
    o.pages_least = o.pages_most;
    struct probe p = probe_open(path, &o);
    struct continuation_vocabulary vocabulary = {
        .bytes = token_bytes, .size = 320, .longest_bytes = 3};
    struct walk *w = walk_open(p.session, &vocabulary, LEAVES);
    struct str stop[] = {STR("abab ab ab ab zz"), STR("never")};
    struct provider_generation g = {
        .max_tokens = TOKENS, .temperature = 1.2, .top_p = 0.9, .stop = stop, .stop_count = 2};
    struct err e = {0};
    for (int i = 0; i < LEAVES; i++) {
        probe_ids((uint64_t)i, 320, ids[i], 100);
        struct provider_request r = {.ticket = i,
                                     .key = "test",
                                     .ids = {ids[i], 100},
                                     .generation = &g,
                                     .sampling = rng_open((uint64_t)i, "repeat 0", "sample 0")};
        bool accepted;
        ASSERT_OK(walk_submit(w, &r, &accepted, &e), e);
        assert_true(accepted);
    }
    struct backend *b = session_backend(p.session);
    sound = b->ops;
    watched = *sound;
    watched.begin = watched_begin;
    b->ops = &watched;
    struct arena *a = arena_create("reply");
    struct provider_completion c;
    atomic_store(&watching, true);
    void *volatile some = malloc(10);
    free(some);
    assert_int_equal(atomic_load(&allocations), 1); // the hook is in place
    assert_true(walk_next(w, a, &c));
    assert_true(passes > TOKENS / 2);
    assert_int_equal(at_last - at_first, 0);
    arena_destroy(a);
    walk_close(w);
    probe_close(&p);
}
#else
static void test_decoding_allocates_nothing(void **state) {
    (void)state;
    skip(); // the sanitizers have their own allocator
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decoding_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
