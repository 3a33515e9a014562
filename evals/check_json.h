// JSON in a reply: where it stands, whether it is JSON (RFC 8259), what stands at a pointer (RFC
// 6901), and tool calls.
//
// A key given twice in one object, NaN, Infinity, comments and trailing commas are not JSON here. A
// text nested deeper than 2,048 or with numbers beyond 64 bits cannot be decided: an error.
#ifndef LACUNA_EVALS_CHECK_JSON_H
#define LACUNA_EVALS_CHECK_JSON_H

#include "engine/base/json.h"
#include "evals/check_search.h"
#include "evals/check_spec.h"

// A place of a value with its variables filled in.
struct json_ask {
    struct str pointer, equals; // equals.p == NULL: not asked
    const struct pattern *pattern;
    bool absent;
    enum check_type type;
};

struct json_finding {
    bool found;
    json_t *value;     // of the JSON; the caller drops it
    size_t range[2];   // where it stands
    bool closed;       // what follows in the text cannot change it
    const char *error; // "json_depth", "json_number"; or NULL
    const char *why;   // not found: what is wrong with it, in the arena
};

// The whole text, alone or inside one code fence; or, with `block`, the first fenced block that is
// JSON.
struct json_finding json_in_text(struct str text, bool block, struct arena *a);

// Does the value have what is asked? *why says what was found instead, in the arena; *error names
// an error of the pattern.
bool json_answers(const json_t *value, const struct json_ask *ask, struct arena *a,
                  const char **why, const char **error);

// The calls in a text, in order: <tool_call>{"name": ..., "arguments": {...}}</tool_call> as Qwen's
// and Hermes' templates ask for; without any such tag the whole text as one such object or a list
// of them. `parameters` stands for `arguments` too, and arguments may be a string that is JSON.
struct tool_call {
    struct str name;
    json_t *arguments; // dropped by tool_calls_close
    size_t range[2];
    bool closed;
};
struct tool_calls {
    struct tool_call *calls;
    size_t count;
    const char *error;
};
void tool_calls_find(struct str text, struct arena *a, struct tool_calls *out);
void tool_calls_close(struct tool_calls *calls);

#endif
