// Cases: the user's own rows, from CSV (RFC 4180) or JSON lines.
#include "evals/experiment.h"

#include "engine/base/file.h"

#include <stdlib.h>
#include <string.h>

#define CASES_BYTES_MOST (64 << 20)
#define CASES_COLUMNS_MOST 256
#define CASE_ID_BYTES_MOST 128

struct reader {
    const char *path;
    struct arena *arena;
    struct str text;
    size_t at;
    int line;
    struct case_table *table;
    int *lines; // of each row
};

static void add_row(struct reader *r, struct str *values, int line) {
    struct case_table *t = r->table;
    t->rows = arena_more(r->arena, t->rows, (size_t)t->row_count, sizeof *t->rows);
    r->lines = arena_more(r->arena, r->lines, (size_t)t->row_count, sizeof *r->lines);
    r->lines[t->row_count] = line;
    t->rows[t->row_count++].values = values;
}

static bool has_control(struct str s) {
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F) return true;
    return false;
}

static int check_column(struct reader *r, struct str name, int line, struct err *e) {
    if (name.n == 0)
        FAIL(e, ERR_CONFIG, "%s:%d: column %d has no name", r->path, line,
             r->table->column_count + 1);
    if (has_control(name) || memchr(name.p, '{', name.n) || memchr(name.p, '}', name.n) ||
        str_starts(name, STR("re:")))
        FAIL(e, ERR_CONFIG,
             "%s:%d: the column '" STR_FMT "' cannot be written as {{name}}: braces, control "
             "characters and a leading 're:' are not possible in a name",
             r->path, line, STR_ARG(name));
    for (int i = 0; i < r->table->column_count; i++)
        if (str_equal_c(name, r->table->columns[i]))
            FAIL(e, ERR_CONFIG, "%s:%d: the column '" STR_FMT "' stands twice", r->path, line,
                 STR_ARG(name));
    if (r->table->column_count == CASES_COLUMNS_MOST)
        FAIL(e, ERR_CONFIG, "%s:%d: more than %d columns", r->path, line, CASES_COLUMNS_MOST);
    r->table->columns[r->table->column_count++] = str_to_c(r->arena, name);
    return 0;
}

// One field of a CSV record; *last when the record ends behind it.
static int read_field(struct reader *r, struct str *out, bool *last, struct err *e) {
    const char *p = r->text.p;
    const size_t n = r->text.n;
    struct buf value = {0};
    int result = 0;
    const int first_line = r->line;
    if (r->at < n && p[r->at] == '"') {
        bool closed = false;
        for (r->at++; r->at < n && !closed;) {
            if (p[r->at] == '"' && r->at + 1 < n && p[r->at + 1] == '"') {
                buf_add_char(&value, '"');
                r->at += 2;
            } else if (p[r->at] == '"') {
                closed = true;
                r->at++;
            } else {
                r->line += p[r->at] == '\n';
                buf_add_char(&value, p[r->at++]);
            }
        }
        if (!closed)
            result =
                ERR_SET(e, ERR_CONFIG, "%s:%d: a quoted field is not closed", r->path, first_line);
    } else {
        while (r->at < n && strchr(",\r\n", p[r->at]) == NULL && result == 0) {
            if (p[r->at] == '"')
                result =
                    ERR_SET(e, ERR_CONFIG,
                            "%s:%d: a quote inside a field that does not begin with one; write "
                            "\"...\" around the field and \"\" for each quote in it",
                            r->path, r->line);
            buf_add_char(&value, p[r->at++]);
        }
    }
    *out = buf_take(&value, r->arena);
    if (result != 0) return result;
    *last = r->at >= n || p[r->at] != ',';
    if (!*last) {
        r->at++;
        return 0;
    }
    if (r->at < n && p[r->at] == '\r' && r->at + 1 < n && p[r->at + 1] == '\n') r->at++;
    if (r->at < n && p[r->at] != '\n')
        FAIL(e, ERR_CONFIG, "%s:%d: %s", r->path, r->line,
             p[r->at] == '\r' ? "a carriage return that ends no line (quote the field)"
                              : "a character behind the closing quote of a field");
    if (r->at < n) r->at++;
    r->line++;
    return 0;
}

static int read_csv(struct reader *r, struct err *e) {
    struct case_table *t = r->table;
    bool last = false;
    while (!last) {
        struct str name;
        TRY(read_field(r, &name, &last, e));
        TRY(check_column(r, name, 1, e));
    }
    while (r->at < r->text.n) {
        const int line = r->line;
        struct str *values = arena_array(r->arena, (size_t)t->column_count, sizeof *values);
        struct str extra;
        int count = 0;
        for (last = false; !last; count++)
            TRY(read_field(r, count < t->column_count ? &values[count] : &extra, &last, e));
        if (count != t->column_count)
            FAIL(e, ERR_CONFIG, "%s:%d: %d field%s where the header has %d", r->path, line, count,
                 count == 1 ? "" : "s", t->column_count);
        add_row(r, values, line);
    }
    return 0;
}

static int json_row(struct reader *r, const json_t *o, struct err *e) {
    struct case_table *t = r->table;
    const char *key;
    json_t *value;
    if (!json_is_object(o))
        FAIL(e, ERR_CONFIG, "%s:%d: expected an object of column: value", r->path, r->line);
    if (t->row_count == 0)
        json_object_foreach((json_t *)o, key, value)
            TRY(check_column(r, str_from(key), r->line, e));
    struct str *values = arena_array(r->arena, (size_t)t->column_count + 1, sizeof *values);
    for (int i = 0; i < t->column_count; i++) {
        value = json_object_get(o, t->columns[i]);
        if (json_is_string(value))
            values[i] = str_copy(r->arena,
                                 (struct str){json_string_value(value), json_string_length(value)});
        else if (json_is_integer(value))
            values[i] =
                str_from(arena_printf(r->arena, "%lld", (long long)json_integer_value(value)));
        else
            FAIL(e, ERR_CONFIG, "%s:%d: the column '%s' %s", r->path, r->line, t->columns[i],
                 value == NULL ? "is missing (the first line has it)"
                               : "is neither a text nor a whole number");
    }
    json_object_foreach((json_t *)o, key, value) {
        bool known = false;
        for (int i = 0; i < t->column_count; i++) known |= strcmp(key, t->columns[i]) == 0;
        if (!known)
            FAIL(e, ERR_CONFIG, "%s:%d: the column '%s' is not in the first line", r->path, r->line,
                 key);
    }
    add_row(r, values, r->line);
    return 0;
}

static int read_json_lines(struct reader *r, struct err *e) {
    for (; r->at < r->text.n; r->line++) {
        size_t end = str_find(r->text, STR("\n"), r->at);
        if (end == STR_NONE) end = r->text.n;
        struct str line = str_slice(r->text, r->at, end);
        json_t *o = NULL;
        if (str_trim(line).n == 0) FAIL(e, ERR_CONFIG, "%s:%d: an empty line", r->path, r->line);
        if (json_parse(line, arena_printf(r->arena, "%s:%d", r->path, r->line), &o, e) != 0) {
            if (e != NULL) e->code = ERR_CONFIG;
            return -1;
        }
        int result = json_row(r, o, e);
        json_decref(o);
        if (result != 0) return -1;
        r->at = end + 1;
    }
    return 0;
}

static int check_id(struct reader *r, struct str id, int line, struct err *e) {
    if (id.n == 0) FAIL(e, ERR_CONFIG, "%s:%d: the case id is empty", r->path, line);
    if (id.n > CASE_ID_BYTES_MOST)
        FAIL(e, ERR_CONFIG, "%s:%d: the case id has %zu bytes, more than %d", r->path, line, id.n,
             CASE_ID_BYTES_MOST);
    if (memchr(id.p, '/', id.n) != NULL || has_control(id) || str_equal_c(id, "-"))
        FAIL(e, ERR_CONFIG,
             "%s:%d: the case id '" STR_FMT "' cannot be part of a trial's key: no '/', no control "
             "characters, not '-' alone",
             r->path, line, STR_ARG(id));
    return 0;
}

struct id_line {
    const char *id;
    int line;
};

static int by_id(const void *a, const void *b) {
    const struct id_line *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static int take_ids(struct reader *r, const char *id_column, struct err *e) {
    struct case_table *t = r->table;
    int column = 0;
    while (column < t->column_count && strcmp(t->columns[column], id_column) != 0) column++;
    if (column == t->column_count) {
        const char *near = str_nearest(id_column, t->columns, (size_t)t->column_count);
        if (t->column_count == 1 && strchr(t->columns[0], ';') != NULL)
            FAIL(e, ERR_CONFIG,
                 "%s:1: there is no column '%s': its columns are parted by semicolons, and "
                 "commas are needed",
                 r->path, id_column);
        FAIL(e, ERR_CONFIG, "%s:1: there is no column '%s'%s%s%s", r->path, id_column,
             near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
             near == NULL ? "" : "'?");
    }
    struct id_line *ids = arena_array(r->arena, (size_t)t->row_count + 1, sizeof *ids);
    for (int i = 0; i < t->row_count; i++) {
        TRY(check_id(r, t->rows[i].values[column], r->lines[i], e));
        t->rows[i].id = str_to_c(r->arena, t->rows[i].values[column]);
        ids[i] = (struct id_line){t->rows[i].id, r->lines[i]};
    }
    qsort(ids, (size_t)t->row_count, sizeof *ids, by_id);
    for (int i = 1; i < t->row_count; i++)
        if (strcmp(ids[i].id, ids[i - 1].id) == 0)
            FAIL(e, ERR_CONFIG, "%s:%d: the case id '%s' was already given in line %d", r->path,
                 ids[i].line, ids[i].id, ids[i - 1].line);
    return 0;
}

static int line_of(struct str text, size_t at) {
    int line = 1;
    for (size_t i = 0; i < at; i++) line += text.p[i] == '\n';
    return line;
}

int cases_load(const char *path, const char *id_column, struct arena *a, struct case_table *out,
               struct err *e) {
    struct str bytes;
    *out = (struct case_table){0};
    TRY(file_read(path, CASES_BYTES_MOST, a, &bytes, e));
    hash_bytes(bytes.p, bytes.n, out->sha256);
    struct str text = bytes;
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_slice(text, 3, text.n);
    size_t bad = utf8_first_bad(text);
    if (bad < text.n)
        FAIL(e, ERR_CONFIG, "%s:%d: byte 0x%02X is not UTF-8; save the file as UTF-8", path,
             line_of(text, bad), (unsigned char)text.p[bad]);
    const char *nul = memchr(text.p, '\0', text.n);
    if (nul != NULL)
        FAIL(e, ERR_CONFIG, "%s:%d: a NUL character", path, line_of(text, (size_t)(nul - text.p)));
    struct reader r = {.path = path, .arena = a, .text = text, .line = 1, .table = out};
    out->columns = arena_array(a, CASES_COLUMNS_MOST, sizeof *out->columns);
    const struct str name = str_from(path_name(path));
    if (str_ends(name, STR(".jsonl")))
        TRY(read_json_lines(&r, e));
    else if (str_ends(name, STR(".csv")))
        TRY(read_csv(&r, e));
    else
        FAIL(e, ERR_CONFIG, "%s: cases are read from a .csv or a .jsonl file", path);
    if (out->row_count == 0) FAIL(e, ERR_CONFIG, "%s: there is no case in it", path);
    return take_ids(&r, id_column, e);
}
