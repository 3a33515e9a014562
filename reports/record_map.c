#include "reports/record_map.h"

#include "engine/base/arena.h"
#include "engine/base/hash.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    const char *text; // NULL: free
    int64_t number;
};
struct record_map {
    struct slot *slots;
    uint64_t capacity, used; // capacity is a power of two
};

static struct slot *slots_create(uint64_t capacity) {
    struct slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) mem_exhausted("the index of a record", capacity * sizeof *slots);
    return slots;
}

struct record_map *record_map_open(void) {
    struct record_map *m = malloc(sizeof *m);
    if (m == NULL) mem_exhausted("the index of a record", sizeof *m);
    *m = (struct record_map){slots_create(64), 64, 0};
    return m;
}

void record_map_close(struct record_map *m) {
    if (m == NULL) return;
    free(m->slots);
    free(m);
}

static struct slot *find_slot(const struct record_map *m, const char *text) {
    uint64_t at = hash_fnv(str_from(text)) & (m->capacity - 1);
    while (m->slots[at].text != NULL && strcmp(m->slots[at].text, text) != 0)
        at = (at + 1) & (m->capacity - 1);
    return &m->slots[at];
}

static void grow(struct record_map *m) {
    struct record_map larger = {slots_create(m->capacity * 2), m->capacity * 2, m->used};
    for (uint64_t i = 0; i < m->capacity; i++)
        if (m->slots[i].text != NULL) *find_slot(&larger, m->slots[i].text) = m->slots[i];
    free(m->slots);
    *m = larger;
}

bool record_map_put(struct record_map *m, const char *text, int64_t number) {
    struct slot *s = find_slot(m, text);
    if (s->text != NULL) return false;
    *s = (struct slot){text, number};
    if (++m->used * 2 > m->capacity) grow(m);
    return true;
}

int64_t record_map_get(const struct record_map *m, const char *text) {
    const struct slot *s = find_slot(m, text);
    return s->text == NULL ? -1 : s->number;
}
