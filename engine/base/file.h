// Files: whole reads, memory maps, durable writes, locks. All messages name the path.
//
// Every write, sync, rename, link and unlink of this module passes a numbered *fail point*, so that
// tests can stop the program at each of them (file_fail_at). Nothing else of the program writes to
// a run folder.
#ifndef LACUNA_ENGINE_BASE_FILE_H
#define LACUNA_ENGINE_BASE_FILE_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

// A read-only private mapping of a whole file. `bytes` may be 0, then p is NULL.
struct file_map {
    const uint8_t *p;
    size_t bytes;
};

int file_map_open(const char *path, struct file_map *out, struct err *e); // regular files only
void file_map_close(struct file_map *m);
// Lets go of the memory behind [from, from + bytes) of the mapping; a later look reads the file
// again.
void file_map_release(const struct file_map *m, const void *from, size_t bytes);

// Reads a file into the arena; refuses more than max_bytes (ERR_INPUT). NUL behind the end.
int file_read(const char *path, size_t max_bytes, struct arena *a, struct str *out, struct err *e);
// What may not be looked at counts as there: opening it says why it cannot be had.
bool file_exists(const char *path);
bool file_is_directory(const char *path);

// Durable, all or nothing: writes PATH.tmp-PID, syncs it, renames it to PATH, syncs the folder.
int file_write_atomic(const char *path, struct str content, struct err *e);

int file_make_directory(const char *path, struct err *e);           // parents too; exists is fine
int file_make_directory_exclusive(const char *path, struct err *e); // exists is ERR_RECORD
int file_remove(const char *path, struct err *e);                   // absent is fine
// Names in a folder without "." and "..", sorted bytewise; NULL-terminated array in the arena.
int file_list(const char *path, struct arena *a, char ***names, size_t *count, struct err *e);

// Appending, one write per call; `file_append` with sync=true returns after fdatasync.
struct file_log;
int file_log_open(const char *path, struct file_log **out, struct err *e);
int file_log_append(struct file_log *f, struct str bytes, bool sync, struct err *e);
void file_log_close(struct file_log *f); // NULL is allowed

// An exclusive advisory lock that dies with the process. Held by somebody else: ERR_RECORD.
struct file_lock;
int file_lock_take(const char *path, struct file_lock **out, struct err *e);
void file_lock_release(struct file_lock *l); // NULL is allowed

// Path arithmetic on '/'. `path_resolve` joins `path` to the folder `base` unless it is absolute.
char *path_join(struct arena *a, const char *folder, const char *name);
char *path_folder(struct arena *a, const char *path); // "." when there is no '/'
const char *path_name(const char *path);              // the part behind the last '/'
char *path_resolve(struct arena *a, const char *base, const char *path);

// Fail points, for tests. At the n-th point from now (1 = the next) the action happens once:
enum file_fault {
    FILE_FAULT_EXIT,      // the process ends at once (_exit 137), as by kill -9, before the action
    FILE_FAULT_EXIT_HALF, // a write is cut in half, then the process ends; else as EXIT
    FILE_FAULT_EXIT_BEHIND, // the process ends right after the action
    FILE_FAULT_NO_SPACE,    // the call fails as if the disk were full (ENOSPC), half of it written
};
void file_fail_at(int64_t n, enum file_fault fault);
int64_t file_fail_points_passed(void); // since the start of the process

#endif
