#include "engine/base/hash.h"

#include "engine/base/file.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

struct hash {
    EVP_MD_CTX *context;
};

struct hash *hash_open(void) {
    struct hash *h = malloc(sizeof *h);
    if (h == NULL) mem_exhausted("a hash", sizeof *h);
    h->context = EVP_MD_CTX_new();
    if (h->context == NULL || EVP_DigestInit_ex(h->context, EVP_sha256(), NULL) != 1)
        mem_exhausted("a hash", sizeof *h);
    return h;
}

void hash_add(struct hash *h, const void *bytes, size_t n) {
    int good = EVP_DigestUpdate(h->context, bytes, n);
    assert(good == 1);
    (void)good;
}

static void digest_hex(const uint8_t digest[32], char hex[HASH_HEX_SIZE]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
}

static void digest_close(struct hash *h, uint8_t digest[32]) {
    unsigned n = 0;
    int good = EVP_DigestFinal_ex(h->context, digest, &n);
    assert(good == 1 && n == 32);
    (void)good;
    EVP_MD_CTX_free(h->context);
    free(h);
}

void hash_close(struct hash *h, char hex[HASH_HEX_SIZE]) {
    uint8_t digest[32];
    digest_close(h, digest);
    digest_hex(digest, hex);
}

void hash_raw(const void *bytes, size_t n, uint8_t digest[32]) {
    struct hash *h = hash_open();
    hash_add(h, bytes, n);
    digest_close(h, digest);
}

void hash_bytes(const void *bytes, size_t n, char hex[HASH_HEX_SIZE]) {
    uint8_t digest[32];
    hash_raw(bytes, n, digest);
    digest_hex(digest, hex);
}

int hash_file(const char *path, char hex[HASH_HEX_SIZE], struct err *e) {
    struct file_map map;
    TRY(file_map_open(path, &map, e));
    hash_bytes(map.p, map.bytes, hex);
    file_map_close(&map);
    return 0;
}

void hash_ids(const int32_t *ids, size_t count, char hex[HASH_HEX_SIZE]) {
    struct hash *h = hash_open();
    uint8_t bytes[1024];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)ids[i];
        for (int k = 0; k < 4; k++) bytes[n++] = (uint8_t)(id >> 8 * k);
        if (n < sizeof bytes && i + 1 < count) continue;
        hash_add(h, bytes, n);
        n = 0;
    }
    hash_close(h, hex);
}

uint64_t hash_fnv(struct str s) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (uint8_t)s.p[i]) * 1099511628211u;
    return h;
}

bool hash_is_hex(struct str s) {
    if (s.n != HASH_HEX_SIZE - 1) return false;
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}
