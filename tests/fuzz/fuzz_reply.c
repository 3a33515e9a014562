// libFuzzer: any bytes as what a server sends: a reply, whole or in events, a refusal, a
// Retry-After.
#include "engine/base/arena.h"
#include "engine/endpoint/dialect.h"
#include "engine/endpoint/retry.h"
#include "engine/endpoint/secret.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One line, short enough for a message.
static void check_line(const char *text) {
    assert(text != NULL && strlen(text) < 1000);
    for (const char *p = text; *p != '\0'; p++) assert((unsigned char)*p >= ' ');
    assert(utf8_valid(str_from(text)));
}

static void check_reply(enum dialect_api api, struct str body, struct arena *a) {
    struct dialect_reply r;
    dialect_reply_read(api, body, a, &r);
    assert((r.code == NULL) == (r.why == NULL));
    if (r.code != NULL) {
        check_line(r.why);
        return;
    }
    assert(utf8_valid(r.text) && (!r.has_reasoning || utf8_valid(r.reasoning)));
    assert(r.prompt_tokens >= DIALECT_UNKNOWN && r.tokens >= DIALECT_UNKNOWN);
    assert(r.reasoning_tokens >= DIALECT_UNKNOWN);
}

static void check_stream(struct str body, struct arena *a) {
    struct str whole;
    if (!dialect_stream_join(DIALECT_CHAT, body, a, &whole)) return;
    check_reply(DIALECT_CHAT, whole, a);
}

static void check_retry_after(struct str value) {
    const struct retry_policy policy = {5, 1000, 60000, 600000};
    const struct retry_attempt attempt = {.number = 1, .status = 429, .retry_after = value};
    const int64_t now = 1790000000;
    struct rng draw = rng_open(1, "fuzz", "retry");
    int64_t seconds = 0;
    uint64_t pause_ms = 0;
    if (retry_after_seconds(value, now, &seconds)) assert(seconds >= 0);
    enum retry_choice choice = retry_choose(&policy, &attempt, now, &draw, &pause_ms);
    assert(choice == RETRY_AGAIN || choice == RETRY_TOO_LONG);
    assert(choice != RETRY_AGAIN || pause_ms <= policy.asked_ms_most);
}

static void check_hidden(struct str body, struct arena *a) {
    static const char key[] = "abababab";
    char *bytes = arena_memdup(a, body.p, body.n);
    secret_hide(key, bytes, body.n);
    assert(memmem(bytes, body.n, key, sizeof key - 1) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct arena *a = arena_create("fuzz");
    struct str body = {arena_memdup(a, data + 1, size - 1), size - 1};
    switch (data[0] % 5) {
    case 0: check_reply(DIALECT_CHAT, body, a); break;
    case 1: check_reply(DIALECT_TEXT, body, a); break;
    case 2: check_retry_after(body); break;
    case 3: check_stream(body, a); break;
    default: check_hidden(body, a);
    }
    check_line(dialect_refusal(body, a));
    arena_destroy(a);
    return 0;
}
