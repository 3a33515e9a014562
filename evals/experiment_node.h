// The experiment file as a tree of nodes with places, whatever it was read from: YAML, a `--set`
// value, or the record's resolved.json. Aliases share nodes, so the tree is a graph without cycles
// whose expanded size and height are bounded by the loader (NODE_EXPANDED_MOST, NODE_DEPTH_MOST).
#ifndef LACUNA_EVALS_EXPERIMENT_NODE_H
#define LACUNA_EVALS_EXPERIMENT_NODE_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/json.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define NODE_DEPTH_MOST 64
#define NODE_EXPANDED_MOST 16384 // nodes, were every alias copied
#define NODE_KEYS_MOST 1024      // keys of one mapping

// Where a node stands: line and column from 1 in the file, or the command line option it came from.
struct mark {
    const char *origin; // "--set generation.samples=2"; NULL: the file
    int line, column;   // 0: no place is known (resolved.json)
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };
enum node_style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL, STYLE_FOLDED };

struct node;
struct node_entry {
    struct str key; // NODE_MAP only
    struct mark key_mark;
    struct node *value;
};
struct node {
    enum node_kind kind;
    struct mark mark;
    enum node_style style; // scalars
    bool stored;           // from JSON: a string that nobody typed, so no style warnings
    bool several_lines;    // the scalar was written over more than one line
    bool comment_behind;   // " #" follows a plain scalar on its line
    struct str text;
    struct node_entry *entries; // lists and maps
    int count;
    int64_t expanded; // nodes below and including this one, were every alias copied
    int height;       // 1 for a scalar
    bool open;        // still being read: an alias to it would be a cycle
};

const char *node_kind_name(const struct node *n);               // "a text", "a list", "a mapping"
struct node *node_get(const struct node *map, const char *key); // NULL: absent, or not a map
struct node_entry *node_add(struct node *parent, struct arena *a);

// Every complaint about one file, in the order found; printed sorted by place.
struct diagnostic {
    struct mark mark;
    const char *path; // "constraints[2].chek", "" for the file
    const char *text;
    bool warning;
};
#define DIAGNOSTICS_MOST 500 // what is beyond is counted only
struct diagnostics {
    struct arena *arena;
    const char *file;
    struct diagnostic *items;
    int count, errors;
};
__attribute__((format(printf, 4, 5))) void diagnose(struct diagnostics *d, struct mark mark,
                                                    const char *path, const char *format, ...);
__attribute__((format(printf, 4, 5))) void diagnose_warning(struct diagnostics *d, struct mark mark,
                                                            const char *path, const char *format,
                                                            ...);
// An error about what stands at `path` below `root`, or at its nearest ancestor that was written.
// Silent when something at, below or above that path is already in error: it would be a
// consequence.
__attribute__((format(printf, 4, 5))) void diagnose_at(struct diagnostics *d,
                                                       const struct node *root, const char *path,
                                                       const char *format, ...);
// Is something at, below or above that path in error already?
bool diagnosed(const struct diagnostics *d, const char *path);
void diagnose_warning_at(struct diagnostics *d, const struct node *root, const char *path,
                         const char *text);
// -1 with all errors, one a line, in e->text (what does not fit is counted), or 0 without errors.
int diagnostics_fail(struct diagnostics *d, struct err *e);
// The warnings as lines of the same form, sorted by place, in the arena.
void diagnostics_warnings(struct diagnostics *d, const char ***lines, int *count);

// The tree of a JSON value. Strings count as quoted; "NAME_base64" gives the bytes under NAME.
struct node *node_from_json(const json_t *value, struct arena *a);

// The JSON text of a mapping of any values, as a JSON string. Plain numbers (at most nine
// decimals), true, false and null are what they are in JSON; other plain scalars that a YAML reader
// could take for something else are complained about, and NULL is returned. A stored node is such a
// text.
json_t *node_json_text(const struct node *n, const char *path, struct diagnostics *d);

// Puts `value` at "models[0].context_tokens", making mappings on the way; shared nodes on the way
// are copied first, so that an alias elsewhere keeps its value. -1: *why says what is wrong with
// the path.
int node_set(struct node **root, const char *path, struct node *value, struct arena *a,
             const char **why);
// What stands at the path, or NULL; *nearest gets the mark of the deepest node on the way.
const struct node *node_find(const struct node *root, const char *path, struct mark *nearest);

#endif
