// A map from text (keys of trials, hashes of inputs) to a number; open addressing, grows, no
// removal.
#ifndef LACUNA_REPORTS_RECORD_MAP_H
#define LACUNA_REPORTS_RECORD_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct record_map;

struct record_map *record_map_open(void);
void record_map_close(struct record_map *m); // NULL is allowed

// `text` is borrowed for the map's life. False when the text is there already; its number stays.
bool record_map_put(struct record_map *m, const char *text, int64_t number);
int64_t record_map_get(const struct record_map *m, const char *text); // -1: not there

#endif
