#include "evals/experiment_yaml.h"

#include <string.h>
#include <yaml.h>

struct anchor {
    const char *name;
    struct node *node;
    int line;
};

struct reader {
    yaml_parser_t parser;
    struct diagnostics *d;
    struct arena *arena;
    struct str source;
    const char *origin;
    struct anchor *anchors;
    int anchor_count;
    int64_t expanded;
    size_t cursor_byte, cursor_index; // a place in the source in bytes and in characters
    bool stopped;                     // the rest of the file is not looked at
};

static struct mark mark_of(const struct reader *r, yaml_mark_t m) {
    return (struct mark){r->origin, (int)m.line + 1, (int)m.column + 1};
}

static struct mark mark_at_byte(const struct reader *r, size_t at) {
    struct mark m = {r->origin, 1, 1};
    for (size_t i = 0; i < at; i++) {
        if (r->source.p[i] == '\n') {
            m.line++;
            m.column = 1;
        } else if (((unsigned char)r->source.p[i] & 0xC0) != 0x80) {
            m.column++;
        }
    }
    return m;
}

// What libyaml would repair or change without a word. False: there is no use in reading on.
static bool check_bytes(struct reader *r) {
    struct str s = r->source;
    if (s.n > YAML_BYTES_MOST) {
        diagnose(r->d, mark_at_byte(r, 0), "",
                 "the file has %zu bytes, more than %d; put long texts into files of their own "
                 "(text_file)",
                 s.n, YAML_BYTES_MOST);
        return false;
    }
    if (s.n >= 2 && (memcmp(s.p, "\xFF\xFE", 2) == 0 || memcmp(s.p, "\xFE\xFF", 2) == 0)) {
        diagnose(r->d, mark_at_byte(r, 0), "", "the file is UTF-16; save it as UTF-8");
        return false;
    }
    size_t bad = utf8_first_bad(s);
    if (bad < s.n) {
        diagnose(r->d, mark_at_byte(r, bad), "", "byte 0x%02X is not UTF-8; save the file as UTF-8",
                 (unsigned char)s.p[bad]);
        return false;
    }
    if (str_starts(s, STR("\xEF\xBB\xBF"))) {
        diagnose(r->d, mark_at_byte(r, 0), "",
                 "the file begins with a byte order mark; save it as UTF-8 without one");
        r->source = str_slice(s, 3, s.n);
    }
    const char *cr = memchr(r->source.p, '\r', r->source.n);
    if (cr != NULL)
        diagnose(r->d, mark_at_byte(r, (size_t)(cr - r->source.p)), "",
                 "a carriage return (CRLF line end): it would silently become a line feed in the "
                 "prompts; save the file with LF line ends");
    static const struct {
        const char *bytes, *name;
    } breaks[] = {{"\xC2\x85", "U+0085"}, {"\xE2\x80\xA8", "U+2028"}, {"\xE2\x80\xA9", "U+2029"}};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        size_t at = str_find(r->source, str_from(breaks[i].bytes), 0);
        if (at != STR_NONE)
            diagnose(r->d, mark_at_byte(r, at), "",
                     "the line separator %s is a line end to YAML and would be changed; write "
                     "\"\\u%s\" in double quotes",
                     breaks[i].name, breaks[i].name + 2);
    }
    return true;
}

static bool next_event(struct reader *r, yaml_event_t *event) {
    if (yaml_parser_parse(&r->parser, event)) return true;
    const yaml_parser_t *p = &r->parser;
    struct mark mark = mark_of(r, p->problem_mark);
    // Errors below the scanner (control characters) have a byte offset only.
    if (p->error == YAML_READER_ERROR)
        mark = mark_at_byte(r, p->problem_offset < r->source.n ? p->problem_offset : r->source.n);
    const char *problem = p->problem == NULL ? "not YAML" : p->problem;
    if (p->context != NULL)
        diagnose(r->d, mark, "", "%s (%s that begins at line %zu)", problem, p->context,
                 p->context_mark.line + 1);
    else
        diagnose(r->d, mark, "", "%s", problem);
    r->stopped = true;
    return false;
}

static void remember_anchor(struct reader *r, const yaml_char_t *name, struct node *n) {
    for (int i = 0; i < r->anchor_count; i++)
        if (strcmp(r->anchors[i].name, (const char *)name) == 0) {
            diagnose(r->d, n->mark, "", "the anchor &%s was already given in line %d",
                     (const char *)name, r->anchors[i].line);
            return;
        }
    r->anchors = arena_more(r->arena, r->anchors, (size_t)r->anchor_count, sizeof *r->anchors);
    r->anchors[r->anchor_count++] =
        (struct anchor){arena_strdup(r->arena, (const char *)name), n, n->mark.line};
}

static bool count_nodes(struct reader *r, struct mark mark, int64_t nodes) {
    r->expanded += nodes;
    if (r->expanded <= NODE_EXPANDED_MOST) return true;
    diagnose(r->d, mark, "", "more than %d values, aliases counted as often as they are used",
             NODE_EXPANDED_MOST);
    r->stopped = true;
    return false;
}

static struct node *follow_alias(struct reader *r, const yaml_event_t *event, int depth) {
    const char *name = (const char *)event->data.alias.anchor;
    struct mark mark = mark_of(r, event->start_mark);
    for (int i = 0; i < r->anchor_count; i++) {
        struct node *n = r->anchors[i].node;
        if (strcmp(r->anchors[i].name, name) != 0) continue;
        if (n->open) {
            diagnose(r->d, mark, "",
                     "*%s stands inside its own anchor &%s (line %d): a value "
                     "cannot contain itself",
                     name, name, r->anchors[i].line);
        } else if (depth + n->height > NODE_DEPTH_MOST) {
            diagnose(r->d, mark, "", "nested more than %d deep (through *%s)", NODE_DEPTH_MOST,
                     name);
        } else {
            return count_nodes(r, mark, n->expanded) ? n : NULL;
        }
        r->stopped = true;
        return NULL;
    }
    const char **names = arena_array(r->arena, (size_t)r->anchor_count + 1, sizeof *names);
    for (int i = 0; i < r->anchor_count; i++) names[i] = r->anchors[i].name;
    const char *near = str_nearest(name, names, (size_t)r->anchor_count);
    diagnose(r->d, mark, "", "*%s has no anchor &%s before it%s%s%s", name, name,
             near == NULL ? "" : "; did you mean *", near == NULL ? "" : near,
             near == NULL ? "" : "?");
    r->stopped = true;
    return NULL;
}

// A plain scalar ends before " #"; who wanted the number sign in the text has lost the rest of it.
static bool comment_follows(struct reader *r, const yaml_event_t *event) {
    // Marks count characters and never go back, so one walk over the source finds all their bytes.
    const char *end = r->source.p + r->source.n;
    while (r->cursor_index < event->end_mark.index && r->cursor_byte < r->source.n) {
        uint32_t code_point;
        r->cursor_byte += utf8_decode(r->source, r->cursor_byte, &code_point);
        r->cursor_index++;
    }
    const char *p = r->source.p + r->cursor_byte;
    const char *at = p;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at > p && at < end && *at == '#';
}

static struct node *read_scalar(struct reader *r, const yaml_event_t *event) {
    struct node *n = arena_alloc(r->arena, sizeof *n);
    n->kind = NODE_SCALAR;
    n->mark = mark_of(r, event->start_mark);
    n->text = str_copy(
        r->arena, (struct str){(const char *)event->data.scalar.value, event->data.scalar.length});
    switch (event->data.scalar.style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE: n->style = STYLE_SINGLE; break;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE: n->style = STYLE_DOUBLE; break;
    case YAML_LITERAL_SCALAR_STYLE: n->style = STYLE_LITERAL; break;
    case YAML_FOLDED_SCALAR_STYLE: n->style = STYLE_FOLDED; break;
    default: n->style = STYLE_PLAIN; break;
    }
    n->several_lines = event->start_mark.line != event->end_mark.line;
    n->comment_behind = n->style == STYLE_PLAIN && r->origin == NULL && comment_follows(r, event);
    n->expanded = 1;
    n->height = 1;
    return n;
}

static struct node *read_node(struct reader *r, const yaml_event_t *event, int depth);

static void check_key(struct reader *r, const struct node *map, const struct node *key) {
    if (str_equal_c(key->text, "<<") && key->style == STYLE_PLAIN)
        diagnose(r->d, key->mark, "<<",
                 "merge keys are not used here; repeat the keys, or give a whole value by alias");
    for (int i = 0; i < map->count; i++)
        if (str_equal(map->entries[i].key, key->text)) {
            diagnose(r->d, key->mark, "", "the key '" STR_FMT "' was already given in line %d",
                     STR_ARG(key->text), map->entries[i].key_mark.line);
            return;
        }
}

// The key of a mapping: text, once. NULL when the tree cannot be made.
static struct node *read_key(struct reader *r, const yaml_event_t *event, const struct node *map) {
    struct mark mark = mark_of(r, event->start_mark);
    if (event->type != YAML_SCALAR_EVENT) {
        diagnose(r->d, mark, "",
                 "a key must be a word; a text that begins with {{ or [ must stand in quotes");
        r->stopped = true;
        return NULL;
    }
    if (map->count >= NODE_KEYS_MOST) {
        diagnose(r->d, mark, "", "more than %d keys in one mapping", NODE_KEYS_MOST);
        r->stopped = true;
        return NULL;
    }
    struct node *key = read_node(r, event, 1);
    if (key != NULL) check_key(r, map, key);
    return key;
}

static void read_collection(struct reader *r, struct node *n, int depth) {
    const bool map = n->kind == NODE_MAP;
    while (!r->stopped) {
        yaml_event_t event;
        if (!next_event(r, &event)) return;
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return;
        }
        struct node *key = NULL;
        if (map) {
            key = read_key(r, &event, n);
            yaml_event_delete(&event);
            if (key == NULL || !next_event(r, &event)) return;
        }
        struct node *value = read_node(r, &event, depth + 1);
        yaml_event_delete(&event);
        if (value == NULL) return;
        struct node_entry *entry = node_add(n, r->arena);
        entry->value = value;
        entry->key_mark = key == NULL ? value->mark : key->mark;
        if (key != NULL) entry->key = key->text;
        n->expanded += value->expanded;
        if (value->height + 1 > n->height) n->height = value->height + 1;
    }
}

static struct node *read_node(struct reader *r, const yaml_event_t *event, int depth) {
    struct mark mark = mark_of(r, event->start_mark);
    if (event->type == YAML_ALIAS_EVENT) return follow_alias(r, event, depth);
    if (depth > NODE_DEPTH_MOST) {
        diagnose(r->d, mark, "", "nested more than %d deep", NODE_DEPTH_MOST);
        r->stopped = true;
        return NULL;
    }
    if (!count_nodes(r, mark, 1)) return NULL;
    struct node *n;
    const yaml_char_t *anchor, *tag;
    if (event->type == YAML_SCALAR_EVENT) {
        n = read_scalar(r, event);
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else {
        const bool list = event->type == YAML_SEQUENCE_START_EVENT;
        n = arena_alloc(r->arena, sizeof *n);
        n->kind = list ? NODE_LIST : NODE_MAP;
        n->mark = mark;
        n->expanded = n->height = 1;
        anchor = list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
        tag = list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    }
    if (tag != NULL)
        diagnose(r->d, mark, "", "the tag %s: tags are not used here; leave it out",
                 (const char *)tag);
    if (anchor != NULL) remember_anchor(r, anchor, n);
    if (n->kind != NODE_SCALAR) {
        n->open = true;
        read_collection(r, n, depth);
        n->open = false;
    }
    return r->stopped ? NULL : n;
}

static void check_document_start(struct reader *r, const yaml_event_t *event, bool second) {
    struct mark mark = mark_of(r, event->start_mark);
    if (second) {
        diagnose(r->d, mark, "", "a second document begins here; an experiment file holds one");
        r->stopped = true;
    }
    if (event->data.document_start.tag_directives.start !=
            event->data.document_start.tag_directives.end ||
        event->data.document_start.version_directive != NULL)
        diagnose(r->d, mark, "", "directives (%%YAML, %%TAG) are not used here; leave them out");
}

static struct node *read_stream(struct reader *r) {
    struct node *root = NULL;
    bool done = false;
    while (!done && !r->stopped) {
        yaml_event_t event;
        if (!next_event(r, &event)) return NULL;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT: break;
        case YAML_DOCUMENT_START_EVENT: check_document_start(r, &event, root != NULL); break;
        case YAML_STREAM_END_EVENT: done = true; break;
        default: root = read_node(r, &event, 1); break;
        }
        yaml_event_delete(&event);
    }
    return root;
}

struct node *yaml_read(struct str source, const char *origin, struct diagnostics *d) {
    struct reader r = {.d = d, .arena = d->arena, .source = source, .origin = origin};
    if (!check_bytes(&r)) return NULL;
    if (!yaml_parser_initialize(&r.parser)) mem_exhausted("YAML parser", sizeof r.parser);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.source.p, r.source.n);
    struct node *root = read_stream(&r);
    yaml_parser_delete(&r.parser);
    if (root == NULL && d->errors == 0)
        diagnose(d, (struct mark){origin, 1, 1}, "",
                 "the file is empty; `lacuna new` writes one to start from");
    return root;
}
