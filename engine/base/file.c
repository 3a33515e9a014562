#include "engine/base/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- fail points -------------------------------------------------------------------------------

static int64_t points_passed;
static int64_t fault_at; // 0: none
static enum file_fault fault_kind;

void file_fail_at(int64_t n, enum file_fault fault) {
    assert(n >= 1);
    fault_at = points_passed + n;
    fault_kind = fault;
}

int64_t file_fail_points_passed(void) {
    return points_passed;
}

// Passes a point. Returns true when the action must fail as on a full disk (errno is set).
static bool fail_point(void) {
    if (++points_passed != fault_at) return false;
    if (fault_kind == FILE_FAULT_EXIT) _exit(137);
    if (fault_kind != FILE_FAULT_NO_SPACE) return false;
    errno = ENOSPC;
    return true;
}

static void fail_point_behind(void) {
    if (points_passed == fault_at && fault_kind != FILE_FAULT_NO_SPACE) _exit(137);
}

static bool fault_is_here(enum file_fault kind) {
    return points_passed == fault_at && fault_kind == kind;
}

// ---- reading -----------------------------------------------------------------------------------

static int open_regular(const char *path, int *fd, size_t *bytes, struct err *e) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) FAIL(e, ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat status;
    if (fstat(*fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(*fd);
        FAIL(e, ERR_IO, "%s: is not a regular file", path);
    }
    *bytes = (size_t)status.st_size;
    return 0;
}

int file_map_open(const char *path, struct file_map *out, struct err *e) {
    *out = (struct file_map){0};
    int fd;
    size_t bytes;
    TRY(open_regular(path, &fd, &bytes, e));
    void *p = NULL;
    if (bytes > 0) p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        FAIL(e, ERR_IO, "%s: cannot be mapped (%zu bytes): %s", path, bytes, strerror(errno));
    *out = (struct file_map){p, bytes};
    return 0;
}

void file_map_close(struct file_map *m) {
    if (m->p != NULL) munmap((void *)(uintptr_t)m->p, m->bytes);
    *m = (struct file_map){0};
}

void file_map_release(const struct file_map *m, const void *from, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t start = (size_t)((const uint8_t *)from - m->p), end = start + bytes;
    assert(end <= m->bytes);
    start = (start + page - 1) / page * page; // pages that the range has for itself
    end = end / page * page;
    if (start < end) (void)madvise((void *)(uintptr_t)(m->p + start), end - start, MADV_DONTNEED);
}

int file_read(const char *path, size_t max_bytes, struct arena *a, struct str *out, struct err *e) {
    int fd;
    size_t bytes;
    TRY(open_regular(path, &fd, &bytes, e));
    if (bytes > max_bytes) {
        close(fd);
        FAIL(e, ERR_INPUT, "%s: has %zu bytes; at most %zu are read", path, bytes, max_bytes);
    }
    char *p = arena_alloc(a, bytes + 1);
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = read(fd, p + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            ERR_SET(e, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
            close(fd);
            return -1;
        }
        if (n == 0) break; // became shorter meanwhile
        done += (size_t)n;
    }
    close(fd);
    *out = (struct str){p, done};
    return 0;
}

bool file_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 || errno == EACCES;
}

bool file_is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// ---- writing -----------------------------------------------------------------------------------

// One write, continued only when the system takes less than all of it.
static int write_whole(int fd, const char *path, struct str s, struct err *e) {
    bool full = fail_point();
    size_t n = s.n;
    if (full || fault_is_here(FILE_FAULT_EXIT_HALF)) n = s.n / 2;
    for (size_t done = 0; done < n;) {
        ssize_t got = write(fd, s.p + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) FAIL(e, ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
        done += (size_t)got;
    }
    if (full) FAIL(e, ERR_IO, "%s: cannot be written: %s", path, strerror(ENOSPC));
    fail_point_behind();
    return 0;
}

static int sync_descriptor(int fd, const char *path, struct err *e) {
    if (fail_point() || fdatasync(fd) != 0)
        FAIL(e, ERR_IO, "%s: cannot be synced: %s", path, strerror(errno));
    fail_point_behind();
    return 0;
}

static int sync_folder_of(const char *path, struct err *e) {
    struct arena *a = arena_create("path");
    const char *folder = path_folder(a, path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = 0;
    if (fd < 0 || fail_point() || fsync(fd) != 0)
        result = ERR_SET(e, ERR_IO, "%s: cannot be synced: %s", folder, strerror(errno));
    if (fd >= 0) close(fd);
    if (result == 0) fail_point_behind();
    arena_destroy(a);
    return result;
}

// Syncs the folder of `to`.
static int rename_file(const char *from, const char *to, struct err *e) {
    if (fail_point() || rename(from, to) != 0)
        FAIL(e, ERR_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
    fail_point_behind();
    return sync_folder_of(to, e);
}

int file_write_atomic(const char *path, struct str content, struct err *e) {
    struct arena *a = arena_create("path");
    const char *temporary = arena_printf(a, "%s.tmp-%ld", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int result = 0;
    if (fd < 0)
        result = ERR_SET(e, ERR_IO, "%s: cannot be created: %s", temporary, strerror(errno));
    if (result == 0) result = write_whole(fd, temporary, content, e);
    if (result == 0) result = sync_descriptor(fd, temporary, e);
    if (fd >= 0) close(fd);
    if (result == 0) result = rename_file(temporary, path, e);
    if (result != 0 && fd >= 0) unlink(temporary);
    arena_destroy(a);
    return result;
}

static int make_one(const char *path, bool exclusive, struct err *e) {
    if (fail_point()) FAIL(e, ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    if (mkdir(path, 0755) != 0) {
        if (errno == EEXIST && exclusive) FAIL(e, ERR_RECORD, "%s: exists already", path);
        if (errno == EEXIST && !file_is_directory(path))
            FAIL(e, ERR_IO, "%s: is there and no folder", path);
        if (errno != EEXIST) FAIL(e, ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    }
    fail_point_behind();
    return 0;
}

int file_make_directory(const char *path, struct err *e) {
    if (file_is_directory(path)) return 0;
    struct arena *a = arena_create("path");
    char *copy = arena_strdup(a, path);
    int result = 0;
    for (char *p = copy + 1; result == 0 && *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0';
        if (!file_is_directory(copy)) result = make_one(copy, false, e);
        *p = '/';
    }
    if (result == 0) result = make_one(path, false, e);
    arena_destroy(a);
    return result;
}

int file_make_directory_exclusive(const char *path, struct err *e) {
    TRY(make_one(path, true, e));
    return sync_folder_of(path, e);
}

int file_remove(const char *path, struct err *e) {
    if (fail_point() || (unlink(path) != 0 && errno != ENOENT))
        FAIL(e, ERR_IO, "%s: cannot be removed: %s", path, strerror(errno));
    fail_point_behind();
    return 0;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int file_list(const char *path, struct arena *a, char ***names, size_t *count, struct err *e) {
    DIR *folder = opendir(path);
    if (folder == NULL) FAIL(e, ERR_IO, "%s: cannot be listed: %s", path, strerror(errno));
    size_t n = 0, capacity = 64;
    char **list = arena_array(a, capacity + 1, sizeof *list);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (n == capacity) {
            char **larger = arena_array(a, 2 * capacity + 1, sizeof *larger);
            memcpy(larger, list, n * sizeof *list);
            list = larger;
            capacity *= 2;
        }
        list[n++] = arena_strdup(a, entry->d_name);
    }
    closedir(folder);
    qsort(list, n, sizeof *list, compare_names);
    *names = list;
    *count = n;
    return 0;
}

// ---- appending and locking ---------------------------------------------------------------------

struct file_log {
    int fd;
    char *path;
};

int file_log_open(const char *path, struct file_log **out, struct err *e) {
    bool created = !file_exists(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) FAIL(e, ERR_IO, "%s: cannot be opened for appending: %s", path, strerror(errno));
    if (created && sync_folder_of(path, e) != 0) {
        close(fd);
        return -1;
    }
    struct file_log *f = malloc(sizeof *f);
    char *copy = strdup(path);
    if (f == NULL || copy == NULL) mem_exhausted(path, sizeof *f);
    *f = (struct file_log){fd, copy};
    *out = f;
    return 0;
}

int file_log_append(struct file_log *f, struct str bytes, bool sync, struct err *e) {
    TRY(write_whole(f->fd, f->path, bytes, e));
    return sync ? sync_descriptor(f->fd, f->path, e) : 0;
}

void file_log_close(struct file_log *f) {
    if (f == NULL) return;
    close(f->fd);
    free(f->path);
    free(f);
}

struct file_lock {
    int fd;
};

int file_lock_take(const char *path, struct file_lock **out, struct err *e) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) FAIL(e, ERR_IO, "%s: cannot be opened for locking: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int reason = errno;
        close(fd);
        if (reason == EWOULDBLOCK)
            FAIL(e, ERR_RECORD, "%s: another process writes to this run; wait until it has ended",
                 path);
        FAIL(e, ERR_IO, "%s: cannot be locked: %s", path, strerror(reason));
    }
    struct file_lock *l = malloc(sizeof *l);
    if (l == NULL) mem_exhausted(path, sizeof *l);
    l->fd = fd;
    *out = l;
    return 0;
}

void file_lock_release(struct file_lock *l) {
    if (l == NULL) return;
    close(l->fd);
    free(l);
}

// ---- paths -------------------------------------------------------------------------------------

char *path_join(struct arena *a, const char *folder, const char *name) {
    size_t n = strlen(folder);
    return arena_printf(a, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name);
}

char *path_folder(struct arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return arena_strdup(a, ".");
    if (slash == path) return arena_strdup(a, "/");
    return arena_memdup(a, path, (size_t)(slash - path));
}

const char *path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

char *path_resolve(struct arena *a, const char *base, const char *path) {
    if (path[0] == '/' || strcmp(base, ".") == 0) return arena_strdup(a, path);
    return path_join(a, base, path);
}
