// SHA-256 (FIPS 180-4, by libcrypto) and its spellings in the record.
#ifndef LACUNA_ENGINE_BASE_HASH_H
#define LACUNA_ENGINE_BASE_HASH_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdint.h>

#define HASH_HEX_SIZE 65 // 64 lower-case hex digits and a NUL

struct hash; // an incremental SHA-256

struct hash *hash_open(void);
void hash_add(struct hash *h, const void *bytes, size_t n);
void hash_close(struct hash *h, char hex[HASH_HEX_SIZE]); // frees h

void hash_bytes(const void *bytes, size_t n, char hex[HASH_HEX_SIZE]);
void hash_raw(const void *bytes, size_t n, uint8_t digest[32]);
int hash_file(const char *path, char hex[HASH_HEX_SIZE], struct err *e);
// Token ids are hashed as little-endian u32, one after the other.
void hash_ids(const int32_t *ids, size_t count, char hex[HASH_HEX_SIZE]);
// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): for tables, not for identities.
uint64_t hash_fnv(struct str s);
bool hash_is_hex(struct str s); // exactly 64 lower-case hex digits

#endif
