// The tree of an experiment file against the table of fields.
#include "evals/experiment_fields.h"
#include "evals/experiment_scalar.h"

#include "engine/base/file.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TEXT_FILE_BYTES_MOST (16 << 20)

struct resolve {
    struct diagnostics *d;
    struct arena *arena;
    const char *folder;
    bool stored;
};

static const char *below(struct resolve *r, const char *path, const char *key) {
    return path[0] == '\0' ? key : arena_printf(r->arena, "%s.%s", path, key);
}

// What stands there, for a message: short, on one line, in quotes.
static const char *shown(struct resolve *r, const struct node *n) {
    if (n->kind != NODE_SCALAR) return node_kind_name(n);
    if (n->text.n == 0) return n->style == STYLE_PLAIN ? "nothing" : "an empty text";
    struct str head = str_head(n->text, 48);
    char *text =
        arena_printf(r->arena, "'" STR_FMT "%s'", STR_ARG(head), head.n < n->text.n ? "..." : "");
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = ' ';
    return text;
}

static bool is_null(const struct node *n) {
    return n->kind == NODE_SCALAR && n->style == STYLE_PLAIN &&
           (n->text.n == 0 || str_equal_c(n->text, "~") || str_equal_c(n->text, "null"));
}

static const char *join_words(struct resolve *r, const char *const *words) {
    struct buf out = {0};
    for (int i = 0; words[i] != NULL; i++)
        buf_printf(&out, "%s%s", i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ", words[i]);
    return buf_take(&out, r->arena).p;
}

static size_t count_words(const char *const *words) {
    size_t n = 0;
    while (words[n] != NULL) n++;
    return n;
}

static json_t *word_value(struct resolve *r, const struct field *f, const struct node *n,
                          const char *path) {
    for (int i = 0; f->words[i] != NULL; i++)
        if (str_equal_c(n->text, f->words[i])) return json_text(n->text);
    const char *near = str_nearest(str_to_c(r->arena, n->text), f->words, count_words(f->words));
    diagnose(r->d, n->mark, path, "expected %s, found %s%s%s%s", join_words(r, f->words),
             shown(r, n), near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
             near == NULL ? "" : "'?");
    return NULL;
}

static json_t *integer_value(struct resolve *r, const struct field *f, const struct node *n,
                             const char *path) {
    int64_t value;
    if (n->style == STYLE_PLAIN && scalar_integer(n->text, &value) == 0 && value >= f->least &&
        value <= f->most)
        return json_integer(value);
    const char *range = f->least == f->most
                            ? arena_printf(r->arena, "%lld", (long long)f->least)
                            : arena_printf(r->arena, "a whole number from %lld to %lld",
                                           (long long)f->least, (long long)f->most);
    const char *hint = "";
    if (n->style != STYLE_PLAIN)
        hint = " in quotes, which is a text";
    else if (scalar_integer(n->text, &value) != 0 && scalar_reads_as(n->text) != NULL)
        hint = " (write plain digits: no leading zero, sign +, point, exponent or separator)";
    diagnose(r->d, n->mark, path, "expected %s, found %s%s", range, shown(r, n), hint);
    return NULL;
}

static json_t *decimal_value(struct resolve *r, const struct field *f, const struct node *n,
                             const char *path) {
    int64_t value;
    char least[32], most[32];
    if ((n->style == STYLE_PLAIN || n->stored) && scalar_decimal(n->text, 6, &value) == 0 &&
        value >= f->least && value <= f->most) {
        scalar_decimal_text(value, 6, least);
        return json_text_c(least);
    }
    scalar_decimal_text(f->least, 6, least);
    scalar_decimal_text(f->most, 6, most);
    diagnose(r->d, n->mark, path, "expected a decimal number from %s to %s such as 0.7, found %s",
             least, most, shown(r, n));
    return NULL;
}

static json_t *share_value(struct resolve *r, const struct node *n, const char *path) {
    int32_t ppm;
    if (scalar_share(n->text, &ppm) != 0) {
        diagnose(r->d, n->mark, path, "expected a share such as 2.5%% (or 0.025), found %s",
                 shown(r, n));
        return NULL;
    }
    char text[32];
    scalar_share_text(ppm, text);
    return json_text_c(text);
}

// Every spot at a depth?
static bool place_only_depths(const struct place *p) {
    bool depths = true;
    for (int i = 0; i <= p->more_count; i++)
        depths = depths && place_spot(p, i).anchor == PLACE_AT_DEPTH;
    return depths;
}

static json_t *place_value(struct resolve *r, const struct field *f, const struct node *n,
                           const char *path) {
    static const char *const words[] = {"start",         "middle",       "end",
                                        "in_system",     "first_user",   "last_user",
                                        "before_filler", "after_filler", "in_place"};
    const bool depths = (f->flags & FIELD_ANCHOR) == 0, anchors = (f->flags & FIELD_DEPTH) == 0;
    const bool absent = (f->flags & FIELD_ABSENT) != 0, order = (f->flags & FIELD_ORDER) != 0;
    struct place place;
    if (scalar_place(n->text, &place) == 0 && (place.anchor != PLACE_ABSENT || absent) &&
        (place.anchor != PLACE_ORDER || order)) {
        char text[PLACE_TEXT_SIZE];
        place_text(place, text);
        if (place_only_depths(&place) ? depths : anchors) return json_text_c(text);
        diagnose(r->d, n->mark, path, "'%s' belongs under %s", text,
                 place_only_depths(&place) ? "depths" : "anchors");
        return NULL;
    }
    const char *near = str_nearest(str_to_c(r->arena, n->text), words + (depths ? 0 : 3),
                                   (depths ? 3 : 0) + (anchors ? 6 : 0));
    int64_t half;
    if (scalar_decimal(n->text, 6, &half) == 0 && half > 0 && half <= 1000000) {
        diagnose(r->d, n->mark, path,
                 "%s could be a fraction or a per cent; write it with a %% sign", shown(r, n));
        return NULL;
    }
    diagnose(
        r->d, n->mark, path, "expected %s%s%s%s, found %s%s%s%s%s",
        depths ? "start, middle, end or a share of the filler such as 25%" : "",
        depths && anchors ? ", or " : "",
        anchors ? "in_system, first_user, last_user, before_filler, after_filler or in_place" : "",
        absent ? ", or absent" : "", shown(r, n),
        str_find(n->text, STR("+"), 0) == STR_NONE
            ? ""
            : arena_printf(r->arena, " (joined by +: 2 to %d different ones)", PLACE_SPOTS_MOST),
        near == NULL ? "" : "; did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
    return NULL;
}

static json_t *boolean_value(struct resolve *r, const struct node *n, const char *path) {
    if (n->style == STYLE_PLAIN && str_equal_c(n->text, "true")) return json_true();
    if (n->style == STYLE_PLAIN && str_equal_c(n->text, "false")) return json_false();
    diagnose(r->d, n->mark, path, "expected true or false, found %s%s", shown(r, n),
             n->style == STYLE_PLAIN ? "" : " in quotes");
    return NULL;
}

// A plain scalar that some YAML reader takes for something else than text must be quoted.
static bool check_is_text(struct resolve *r, const struct node *n, const char *path) {
    if (n->style == STYLE_PLAIN) {
        const char *other = n->stored ? "not a string" : scalar_reads_as(n->text);
        if (other != NULL && is_null(n)) {
            diagnose(r->d, n->mark, path, "expected a text, found nothing; \"\" is an empty text");
            return false;
        }
        if (other != NULL) {
            diagnose(r->d, n->mark, path,
                     "expected a text, but %s reads as %s; write \"" STR_FMT "\" in quotes",
                     shown(r, n), other, STR_ARG(n->text));
            return false;
        }
    }
    if (memchr(n->text.p, '\0', n->text.n) != NULL) {
        diagnose(r->d, n->mark, path, "the text holds a NUL character");
        return false;
    }
    return true;
}

static bool name_character(char c, bool first) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return !first && c != '\0' && strchr("._-:", c) != NULL;
}

static bool name_valid(struct str name) {
    bool good = name.n > 0 && name.n <= FIELD_NAME_MOST;
    for (size_t i = 0; good && i < name.n; i++) good = name_character(name.p[i], i == 0);
    return good;
}

bool experiment_name_valid(const char *name) {
    return name_valid(str_from(name));
}

static bool check_name(struct resolve *r, struct str name, struct mark mark, const char *path) {
    const bool good = name_valid(name);
    if (!good)
        diagnose(r->d, mark, path,
                 "expected a name: a letter or digit, then letters, digits, '.', '_', '-' or ':' "
                 "(%d at most), found '%.*s'",
                 FIELD_NAME_MOST, name.n > 80 ? 80 : (int)name.n, name.n == 0 ? "" : name.p);
    return good;
}

static void warn_about_text(struct resolve *r, const struct node *n, const char *path) {
    if (n->stored) return;
    static const char *const escapes[] = {"\\n", "\\t", "\\u", "\\x"};
    if (n->style == STYLE_SINGLE || n->style == STYLE_PLAIN)
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            if (str_find(n->text, str_from(escapes[i]), 0) != STR_NONE) {
                diagnose_warning(r->d, n->mark, path,
                                 "%s stays two characters %s; for the character it stands for, use "
                                 "double quotes",
                                 escapes[i],
                                 n->style == STYLE_SINGLE ? "in single quotes" : "without quotes");
                break;
            }
    if (n->style == STYLE_FOLDED)
        diagnose_warning(r->d, n->mark, path,
                         "the folded style (>) turns line breaks into spaces; | keeps them");
    else if (n->style != STYLE_LITERAL && n->several_lines)
        diagnose_warning(r->d, n->mark, path,
                         "line breaks of a text over several lines become spaces; | keeps them");
    if ((n->style == STYLE_FOLDED || n->style == STYLE_LITERAL) && str_ends(n->text, STR("\n")))
        diagnose_warning(r->d, n->mark, path,
                         "the text ends with a line break, before whatever the chat template puts "
                         "behind it; |- leaves it out");
    if (n->comment_behind)
        diagnose_warning(r->d, n->mark, path,
                         "the text ends before ' #', where a comment begins; put it in quotes if "
                         "the # belongs to it");
}

static const char *type_name(const struct field *f) {
    switch (f->type) {
    case FIELD_INTEGER: return "a whole number";
    case FIELD_DECIMAL: return "a decimal number";
    case FIELD_SHARE: return "a share such as 2.5%";
    case FIELD_PLACE: return "a place such as middle or 25%";
    case FIELD_BOOLEAN: return "true or false";
    case FIELD_NAME: return "a name";
    case FIELD_WORD: return "a word";
    case FIELD_TEXT:
    case FIELD_STRING: return "a text";
    case FIELD_PATTERN: return "a pattern";
    case FIELD_TEXT_FILE:
    case FIELD_PATH: return "a path";
    case FIELD_OBJECT: return "a mapping (key: value)";
    case FIELD_JSON: return "a mapping of JSON values";
    }
    return "nothing";
}

static json_t *text_value(struct resolve *r, const struct field *f, const struct node *n,
                          const char *path) {
    if (!check_is_text(r, n, path)) return NULL;
    if (f->type == FIELD_NAME)
        return check_name(r, n->text, n->mark, path) ? json_text(n->text) : NULL;
    if (f->type == FIELD_TEXT) warn_about_text(r, n, path);
    if (f->type == FIELD_PATTERN && memchr(n->text.p, '\b', n->text.n) != NULL) {
        diagnose(r->d, n->mark, path,
                 "\\b in double quotes is a backspace; write patterns in single quotes");
        return NULL;
    }
    if (f->type != FIELD_TEXT && n->text.n == 0) {
        diagnose(r->d, n->mark, path, "expected %s, found an empty text", type_name(f));
        return NULL;
    }
    // Bytes that are no text (from a file) go into the object under another name: see put_value.
    if (!utf8_valid(n->text)) {
        json_t *holder = json_object();
        json_put_bytes(holder, "", n->text);
        return holder;
    }
    return json_text(n->text);
}

static json_t *resolve_object(struct resolve *r, const struct field *fields, const struct node *n,
                              const char *path);

// One value, whatever the field's shape. NULL when it is wrong.
static json_t *resolve_one(struct resolve *r, const struct field *f, const struct node *n,
                           const char *path) {
    if (f->type == FIELD_OBJECT) {
        if (n->kind == NODE_MAP) return resolve_object(r, f->fields, n, path);
    } else if (f->type == FIELD_JSON) {
        if (n->kind == NODE_MAP || n->stored) return node_json_text(n, path, r->d);
    } else if (n->kind == NODE_SCALAR && !(is_null(n) && !n->stored)) {
        switch (f->type) {
        case FIELD_INTEGER: return integer_value(r, f, n, path);
        case FIELD_DECIMAL: return decimal_value(r, f, n, path);
        case FIELD_SHARE: return share_value(r, n, path);
        case FIELD_PLACE: return place_value(r, f, n, path);
        case FIELD_BOOLEAN: return boolean_value(r, n, path);
        case FIELD_WORD: return word_value(r, f, n, path);
        default: return text_value(r, f, n, path);
        }
    }
    diagnose(r->d, n->mark, path, "expected %s, found %s", type_name(f),
             is_null(n) ? "nothing" : shown(r, n));
    return NULL;
}

static json_t *resolve_list(struct resolve *r, const struct field *f, const struct node *n,
                            const char *path) {
    if (n->kind != NODE_LIST) {
        diagnose(r->d, n->mark, path, "expected a list of which each item is %s, found %s",
                 type_name(f), shown(r, n));
        return NULL;
    }
    if (n->count < f->items_least)
        diagnose(r->d, n->mark, path, "expected at least %d item%s, found %s", f->items_least,
                 f->items_least == 1 ? "" : "s",
                 n->count == 0 ? "an empty list" : arena_printf(r->arena, "%d", n->count));
    const int most = f->type == FIELD_OBJECT ? FIELD_OBJECTS_MOST : FIELD_ITEMS_MOST;
    if (n->count > most && !r->stored) { // what was stored may have been read from files
        diagnose(r->d, n->mark, path, "expected at most %d items, found %d", most, n->count);
        return NULL;
    }
    json_t *list = json_array();
    for (int i = 0; i < n->count; i++) {
        json_t *item =
            resolve_one(r, f, n->entries[i].value, arena_printf(r->arena, "%s[%d]", path, i));
        json_array_append_new(list, item == NULL ? json_null() : item);
    }
    return list;
}

static json_t *resolve_map(struct resolve *r, const struct field *f, const struct node *n,
                           const char *path) {
    if (n->kind != NODE_MAP) {
        diagnose(r->d, n->mark, path, "expected a mapping of names, each to %s, found %s",
                 type_name(f), shown(r, n));
        return NULL;
    }
    json_t *map = json_object();
    for (int i = 0; i < n->count; i++) {
        const struct node_entry *entry = &n->entries[i];
        if (!check_name(r, entry->key, entry->key_mark, path)) continue;
        const char *key = str_to_c(r->arena, entry->key);
        json_t *value = resolve_one(r, f, entry->value, below(r, path, key));
        if (value != NULL) json_put(map, key, value);
    }
    return map;
}

static json_t *resolve_field(struct resolve *r, const struct field *f, const struct node *n,
                             const char *path) {
    if (f->shape == SHAPE_LIST) return resolve_list(r, f, n, path);
    if (f->shape == SHAPE_MAP) return resolve_map(r, f, n, path);
    return resolve_one(r, f, n, path);
}

static json_t *fallback_one(struct resolve *r, const struct field *f, struct str word) {
    struct node n = {.kind = NODE_SCALAR, .stored = true, .style = STYLE_DOUBLE, .text = word};
    if (f->type == FIELD_INTEGER || f->type == FIELD_BOOLEAN) n.style = STYLE_PLAIN;
    json_t *value = resolve_one(r, f, &n, f->key);
    assert(value != NULL); // the table's own defaults are valid
    return value;
}

// The default of a field that is not given, or NULL when it has none.
static json_t *fallback_value(struct resolve *r, const struct field *f, const struct node *parent,
                              const char *path) {
    if (f->shape == SHAPE_MAP) return json_object();
    if (f->type == FIELD_OBJECT && f->shape == SHAPE_ONE && (f->flags & FIELD_OPTIONAL) == 0) {
        const struct node empty = {.kind = NODE_MAP, .mark = parent->mark};
        return resolve_object(r, f->fields, &empty, path);
    }
    if (f->fallback == NULL) return NULL;
    if (f->shape == SHAPE_ONE) return fallback_one(r, f, str_from(f->fallback));
    json_t *list = json_array();
    for (const char *p = f->fallback; *p != '\0';) {
        size_t n = strcspn(p, " ");
        json_array_append_new(list, fallback_one(r, f, (struct str){p, n}));
        p += n + (p[n] == ' ');
    }
    return list;
}

static const struct field *field_named(const struct field *fields, struct str key) {
    for (const struct field *f = fields; f->key != NULL; f++)
        if (str_equal_c(key, f->key)) return f;
    return NULL;
}

// Where else in the table a key of this name belongs: "generation.max_tokens", or NULL.
static const char *elsewhere(struct resolve *r, const struct field *fields, struct str key,
                             const char *path) {
    const struct field *f = field_named(fields, key);
    if (f != NULL && (f->flags & FIELD_STORED) == 0)
        return path[0] == '\0' ? arena_printf(r->arena, "%s at the top level", f->key)
                               : below(r, path, f->key);
    for (f = fields; f->key != NULL; f++) {
        if (f->type != FIELD_OBJECT || (f->flags & FIELD_AGAIN)) continue;
        const char *step = f->shape == SHAPE_LIST  ? arena_printf(r->arena, "%s[]", f->key)
                           : f->shape == SHAPE_MAP ? arena_printf(r->arena, "%s.NAME", f->key)
                                                   : f->key;
        const char *found = elsewhere(r, f->fields, key, below(r, path, step));
        if (found != NULL) return found;
    }
    return NULL;
}

// The key of the table that an unknown one is probably meant to be, or NULL.
static const char *meant_key(struct resolve *r, const struct field *fields, struct str key) {
    const char *names[64];
    size_t count = 0;
    for (const struct field *f = fields; f->key != NULL; f++) {
        if (f->flags & FIELD_STORED) continue;
        assert(count < sizeof names / sizeof *names);
        names[count++] = f->key;
    }
    return str_nearest(str_to_c(r->arena, key), names, count);
}

// A required key that is there under a wrong name is not missing as well.
static bool is_mistyped(struct resolve *r, const struct field *fields, const struct node *map,
                        const char *key) {
    for (int i = 0; i < map->count; i++) {
        if (field_named(fields, map->entries[i].key) != NULL) continue;
        const char *meant = meant_key(r, fields, map->entries[i].key);
        if (meant != NULL && strcmp(meant, key) == 0) return true;
    }
    return false;
}

static void unknown_key(struct resolve *r, const struct field *fields,
                        const struct node_entry *entry, const char *path) {
    const size_t n = entry->key.n < 80 ? entry->key.n : 80;
    const char *where = below(r, path, str_to_c(r->arena, str_slice(entry->key, 0, n)));
    const char *near = meant_key(r, fields, entry->key);
    const char *other = elsewhere(r, experiment_fields, entry->key, "");
    if (near != NULL) {
        diagnose(r->d, entry->key_mark, where, "unknown key; did you mean '%s'?", near);
    } else if (other != NULL) {
        diagnose(r->d, entry->key_mark, where, "unknown key here; did you mean %s?", other);
    } else {
        struct buf known = {0};
        for (const struct field *f = fields; f->key != NULL; f++)
            if ((f->flags & FIELD_STORED) == 0)
                buf_printf(&known, "%s%s", known.n == 0 ? "" : ", ", f->key);
        diagnose(r->d, entry->key_mark, where, "unknown key; known here: %s", known.p);
        buf_free(&known);
    }
}

// Reads the file that stands for the text of the field before.
static void text_from_file(struct resolve *r, const struct field *f, const struct node *n,
                           const char *path, json_t *object) {
    const struct field *text = f - 1;
    const struct field as_path = {.key = f->key, .type = FIELD_PATH};
    json_t *name = resolve_one(r, &as_path, n, path);
    if (name == NULL) return;
    struct str bytes;
    struct err e = {0};
    if (file_read(path_resolve(r->arena, r->folder, json_string_value(name)), TEXT_FILE_BYTES_MOST,
                  r->arena, &bytes, &e) != 0)
        diagnose(r->d, n->mark, path, "%s", e.text);
    else if (memchr(bytes.p, '\0', bytes.n) != NULL)
        diagnose(r->d, n->mark, path, "'%s' holds a NUL byte", json_string_value(name));
    else {
        if (str_ends(bytes, STR("\n")))
            diagnose_warning(r->d, n->mark, path,
                             "'%s' ends with a line break, which the model will see before "
                             "whatever the chat template puts behind it",
                             json_string_value(name));
        json_put_bytes(object, text->key, bytes);
    }
    json_decref(name);
}

static void put_value(json_t *object, const struct field *f, json_t *value) {
    const bool holder =
        json_is_object(value) && (f->type == FIELD_TEXT || f->type == FIELD_PATTERN);
    if (!holder || f->shape != SHAPE_ONE) {
        json_put(object, f->key, value);
        return;
    }
    char key[80];
    snprintf(key, sizeof key, "%s_base64", f->key);
    json_put(object, key, json_incref(json_object_get(value, "_base64")));
    json_decref(value);
}

// Whether one of the keys that may stand for f is there; more than one of them all is an error.
static bool stands_instead(struct resolve *r, const struct field *f, const struct node *map,
                           const char *path) {
    const char *first = node_get(map, f->key) != NULL ? f->key : NULL;
    bool any = false;
    for (int i = 0; f->instead != NULL && f->instead[i] != NULL; i++) {
        const struct node *n = node_get(map, f->instead[i]);
        if (n == NULL) continue;
        any = true;
        if (first != NULL)
            diagnose(r->d, n->mark, below(r, path, f->instead[i]),
                     "%s is given too; one of them must go", first);
        else
            first = f->instead[i];
    }
    return any;
}

static void resolve_entry(struct resolve *r, const struct field *fields, const struct field *f,
                          const struct node *map, const char *path, json_t *object) {
    const struct node *n = node_get(map, f->key);
    const char *where = below(r, path, f->key);
    const bool instead = stands_instead(r, f, map, path);
    if (n != NULL && (f->flags & FIELD_STORED) && !r->stored) n = NULL;
    if (f->with != NULL && node_get(map, f->with) == NULL) {
        if (n != NULL) diagnose(r->d, n->mark, where, "goes with %s, which is not given", f->with);
    } else if (n != NULL && f->type == FIELD_TEXT_FILE) {
        text_from_file(r, f, n, where, object);
    } else if (n != NULL) {
        json_t *value = resolve_field(r, f, n, where);
        if (value != NULL) put_value(object, f, value);
    } else if (f->flags & FIELD_REQUIRED) {
        if (instead || is_mistyped(r, fields, map, f->key)) return;
        diagnose(r->d, map->mark, where, "is missing: expected %s (%s)",
                 f->shape == SHAPE_LIST ? "a list" : type_name(f), f->help);
    } else {
        json_t *value = fallback_value(r, f, map, where);
        if (value != NULL) json_put(object, f->key, value);
    }
}

static json_t *resolve_object(struct resolve *r, const struct field *fields, const struct node *n,
                              const char *path) {
    json_t *object = json_object();
    for (int i = 0; i < n->count; i++) {
        const struct field *f = field_named(fields, n->entries[i].key);
        if (f == NULL || ((f->flags & FIELD_STORED) && !r->stored))
            unknown_key(r, fields, &n->entries[i], path);
    }
    for (const struct field *f = fields; f->key != NULL; f++)
        resolve_entry(r, fields, f, n, path, object);
    return object;
}

json_t *fields_resolve(const struct node *root, const char *folder, bool stored,
                       struct diagnostics *d) {
    struct resolve r = {.d = d, .arena = d->arena, .folder = folder, .stored = stored};
    if (root->kind != NODE_MAP) {
        diagnose(d, root->mark, "",
                 "expected a mapping (key: value), found %s; `lacuna new` writes "
                 "a file to start from",
                 node_kind_name(root));
        return json_object();
    }
    return resolve_object(&r, experiment_fields, root, "");
}
