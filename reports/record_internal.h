// What the record's own files share: file names, the walk over lines, the rules of the ledger.
#ifndef LACUNA_REPORTS_RECORD_INTERNAL_H
#define LACUNA_REPORTS_RECORD_INTERNAL_H

#include "engine/base/file.h"
#include "reports/record.h"
#include "reports/record_inputs.h"
#include "reports/record_line.h"
#include "reports/record_map.h"

#define RECORD_SMALL_FILE_BYTES_MOST ((size_t)64 << 20) // identity, manifest, resolved, pending
#define RECORD_WHERE_BYTES 600
#define RECORD_PATH_BYTES 4096

// Whole lines of a mapped file, one after the other. What stands behind the last line break is
// `tail`; a last line that is no JSON, with nothing but blank lines behind it, is tail as well: a
// write that was cut, to which something else added a line break.
struct record_lines {
    const char *path;
    struct file_map map;
    struct str text; // the whole lines
    struct str tail;
    size_t at;
    int64_t number; // of the line that record_lines_next gave, from 0
};
int record_lines_open(const char *path, struct record_lines *out, struct err *e); // absent: empty
void record_lines_close(struct record_lines *l);
// The next line, its line break included; `where` gets "PATH:NUMBER" (from 1). False at the end.
bool record_lines_next(struct record_lines *l, struct str *line, char where[RECORD_WHERE_BYTES]);

// Where a ledger stands: which attempts are in it. The one place that knows the order's rules.
struct record_progress {
    const struct record_trial *trials;
    int64_t trial_count, next; // next: the first trial without a first attempt
    int *attempts;             // [trial_count]
    uint8_t *status;           // [trial_count], of the highest attempt
};
void record_progress_start(struct record_progress *p, const struct record_trial *trials,
                           int64_t trial_count, struct arena *a);
// Counts the outcome, or fails with ERR_RECORD saying what is out of order.
int record_progress_add(struct record_progress *p, const struct record_outcome *o,
                        const char *where, struct err *e);

// "line" and "previous" of a chained line: its number, and the hash of the line before.
int record_check_link(const json_t *o, const char *where, int64_t number, const char *previous,
                      struct err *e);
// A ledger line by itself: JSON, number, chain, fields.
int record_ledger_line(struct str line, const char *where, int64_t number, const char *previous,
                       struct arena *a, struct record_outcome *out, struct err *e);
// A plan line by itself.
int record_plan_line(struct str line, const char *where, int64_t number, struct arena *a,
                     struct record_trial *out, struct err *e);

// Does the identity say that texts of this kind ("prompts", "replies") are not kept?
bool record_drops(const json_t *identity, const char *what);
// A line has its reply's texts where the identity says that they are kept, and nowhere else.
int record_check_kept(const struct record_outcome *o, bool drops_replies, const char *where,
                      struct err *e);
// Reads identity.json: *o is the caller's, sha256 of the file's bytes.
int record_identity_read(const char *path, json_t **o, char sha256[HASH_HEX_SIZE], struct err *e);

// "path: stored there, asked here" for every field of `asked` that `stored` has not or has
// otherwise. Keys that name places in the file system are left out. Returns the number of
// differences; *scoring says whether all of them are of checks, gates, the primary contrast or
// tolerances.
int record_differences(const json_t *stored, const json_t *asked, struct buf *out, bool *scoring);

#endif
