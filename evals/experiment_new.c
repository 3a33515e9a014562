// The table of fields as a commented file to start from: what must be given stands there, what may
// be given stands behind a comment sign with its default.
#include "evals/experiment.h"
#include "evals/experiment_fields.h"

#include <string.h>

#define COMMENT_COLUMN 44
#define LINE_COLUMNS 100

struct writer {
    struct buf *out;
    const char *name; // of the experiment
};

static bool is_active(const struct field *f);

static bool any_active(const struct field *fields) {
    for (; fields->key != NULL; fields++)
        if (is_active(fields)) return true;
    return false;
}

// Does the field stand in the file, or only as a comment?
static bool is_active(const struct field *f) {
    if (f->example != NULL || (f->flags & FIELD_REQUIRED)) {
        // What is required without an example of its own has children that have one.
        return f->example != NULL || f->type == FIELD_OBJECT;
    }
    return f->type == FIELD_OBJECT && f->shape == SHAPE_ONE && (f->flags & FIELD_OPTIONAL) == 0 &&
           any_active(f->fields);
}

static const char *placeholder(const struct field *f) {
    switch (f->type) {
    case FIELD_INTEGER: return "1024";
    case FIELD_SHARE: return "60%";
    case FIELD_PLACE: return "middle";
    case FIELD_NAME: return "NAME";
    case FIELD_WORD: return f->words[0];
    case FIELD_PATTERN: return "'PATTERN'";
    case FIELD_JSON: return "{NAME: 1}";
    case FIELD_OBJECT: return "{all: [{pattern: 'PATTERN'}, {words: {at_most: 50}}]}";
    case FIELD_TEXT_FILE:
    case FIELD_PATH: return "FILE";
    default: return "\"...\"";
    }
}

static void add_value(struct buf *out, const struct field *f) {
    if (f->shape == SHAPE_MAP && f->example == NULL) {
        buf_printf(out, "{NAME: %s}", placeholder(f));
    } else if (f->example != NULL) {
        buf_add_c(out, f->example);
    } else if (f->fallback == NULL) {
        buf_printf(out, f->shape == SHAPE_LIST ? "[%s]" : "%s", placeholder(f));
    } else if (f->shape == SHAPE_LIST) {
        buf_add_char(out, '[');
        for (const char *p = f->fallback; *p != '\0'; p++)
            buf_add_c(out, *p == ' ' ? ", " : ((char[]){*p, '\0'}));
        buf_add_char(out, ']');
    } else {
        buf_add_c(out, f->fallback[0] == '\0' ? "\"\"" : f->fallback);
    }
}

// "   - key:" with the comment sign before it where nothing stands.
static void add_key(struct buf *line, const char *key, int indent, bool dash, bool active) {
    buf_printf(line, "%s%*s%s%s:", active ? "" : "# ", dash ? indent - 2 : indent, "",
               dash ? "- " : "", key);
}

// The line with its help behind it, or above it where that would be too wide.
static void add_line(struct writer *w, struct buf *line, const char *help, int indent,
                     bool active) {
    const size_t column = line->n < COMMENT_COLUMN ? COMMENT_COLUMN : line->n + 1;
    if (column + 2 + strlen(help) <= LINE_COLUMNS)
        buf_printf(w->out, "%-*s# %s\n", (int)column, line->p, help);
    else
        buf_printf(w->out, "%s%*s# %s\n%s\n", active ? "" : "# ", indent, "", help, line->p);
    buf_free(line);
}

static void add_fields(struct writer *w, const struct field *fields, int indent, bool dash,
                       bool active);

static void add_object(struct writer *w, const struct field *f, int indent, bool dash,
                       bool active) {
    struct buf line = {0};
    add_key(&line, f->key, indent, dash, active);
    add_line(w, &line, f->help, indent, active);
    if (f->shape == SHAPE_MAP) {
        add_key(w->out, f->example, indent + 2, false, active);
        buf_add_char(w->out, '\n');
        add_fields(w, f->fields, indent + 4, false, active);
    } else if (f->shape == SHAPE_LIST) {
        add_fields(w, f->fields, indent + 4, true, active);
    } else {
        add_fields(w, f->fields, indent + 2, false, active);
    }
}

static void add_fields(struct writer *w, const struct field *fields, int indent, bool dash,
                       bool active) {
    for (const struct field *f = fields; f->key != NULL; f++) {
        if (f->flags & FIELD_STORED) continue;
        const bool here = active && is_active(f);
        if (indent == 0) buf_add_char(w->out, '\n');
        if (f->type == FIELD_OBJECT && f->shared == NULL) {
            add_object(w, f, indent, dash, here);
        } else {
            struct buf line = {0};
            add_key(&line, f->key, indent, dash, here);
            buf_add_char(&line, ' ');
            if (fields == experiment_fields && strcmp(f->key, "name") == 0)
                buf_add_c(&line, w->name);
            else
                add_value(&line, f);
            add_line(w, &line, f->help, indent, here);
        }
        dash = false;
    }
}

void experiment_new(const char *name, struct buf *out) {
    struct writer w = {out, name == NULL ? "my-experiment" : name};
    buf_add_c(out,
              "# An experiment for lacuna. What stands behind a comment sign may be given; what "
              "is shown there is\n"
              "# the default, or a NAME or FILE of yours. `lacuna plan` says what the file would "
              "run.\n");
    add_fields(&w, experiment_fields, 0, false, true);
}
