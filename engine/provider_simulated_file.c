#include "engine/provider_simulated_file.h"

#include "engine/provider_file.h"

#include <string.h>

#define LENGTH_MOST 1e9

// ---- numbers and lists -------------------------------------------------------------------------

static int read_number(const json_t *value, double most, const char *where, double *out,
                       struct err *e) {
    if (!json_is_number(value)) FAIL(e, ERR_CONFIG, "%s: not a number", where);
    *out = json_number_value(value);
    if (!(*out >= 0 && *out <= most))
        FAIL(e, ERR_CONFIG, "%s: %g is outside 0 to %g", where, *out, most);
    return 0;
}

// A missing key leaves *out as it is.
static int maybe_number(const json_t *o, const char *key, const char *where, double most,
                        struct arena *a, double *out, struct err *e) {
    const json_t *value = json_object_get(o, key);
    if (value == NULL) return 0;
    return read_number(value, most, arena_printf(a, "%s: \"%s\"", where, key), out, e);
}

static int maybe_line(const json_t *o, const char *key, const char *where, double at_most,
                      struct arena *a, struct subject_line *out, struct err *e) {
    const json_t *list = json_object_get(o, key);
    if (list == NULL) return 0;
    where = arena_printf(a, "%s: \"%s\"", where, key);
    if (!json_is_array(list) || json_array_size(list) == 0)
        FAIL(e, ERR_CONFIG, "%s: not a list of points [position, value]", where);
    out->count = (int)json_array_size(list);
    out->points = arena_array(a, (size_t)out->count, sizeof *out->points);
    for (int i = 0; i < out->count; i++) {
        const json_t *pair = json_array_get(list, (size_t)i);
        const char *point = arena_printf(a, "%s[%d]", where, i);
        struct subject_point *p = &out->points[i];
        if (!json_is_array(pair) || json_array_size(pair) != 2)
            FAIL(e, ERR_CONFIG, "%s: not a point [position, value]", point);
        TRY(read_number(json_array_get(pair, 0), at_most, point, &p->at, e));
        TRY(read_number(json_array_get(pair, 1), 1, point, &p->value, e));
        if (i > 0 && p->at <= p[-1].at)
            FAIL(e, ERR_CONFIG, "%s: %g follows %g; positions must ascend", point, p->at, p[-1].at);
    }
    return 0;
}

double subject_line_at(const struct subject_line *line, double at, double otherwise) {
    const struct subject_point *p = line->points;
    int n = line->count;
    if (n == 0) return otherwise;
    if (at <= p[0].at) return p[0].value;
    for (int i = 1; i < n; i++)
        if (at <= p[i].at)
            return p[i - 1].value +
                   (p[i].value - p[i - 1].value) * ((at - p[i - 1].at) / (p[i].at - p[i - 1].at));
    return p[n - 1].value;
}

// ---- the file ----------------------------------------------------------------------------------

static int read_places(const json_t *o, const char *where, struct arena *a,
                       struct subject_curve *out, struct err *e) {
    json_t *places = json_object_get(o, "by_place"), *value;
    const char *key;
    if (places == NULL) return 0;
    if (!json_is_object(places)) FAIL(e, ERR_CONFIG, "%s: \"by_place\" is not an object", where);
    out->place_count = 0;
    out->places = arena_array(a, json_object_size(places) + 1, sizeof *out->places);
    json_object_foreach(places, key, value) {
        struct subject_place *p = &out->places[out->place_count++];
        p->place = arena_strdup(a, key);
        TRY(read_number(value, 1, arena_printf(a, "%s: \"by_place\": \"%s\"", where, key),
                        &p->chance, e));
    }
    return 0;
}

// Keys that are given replace what *out has.
static int read_curve(const json_t *o, const char *where, struct arena *a,
                      struct subject_curve *out, struct err *e) {
    static const char *const known[] = {"by_depth",  "by_place", "by_length", "half_length",
                                        "elsewhere", "short",    "absent"};
    if (o == NULL) return 0;
    where = arena_printf(a, "%s: curve", where);
    TRY(JSON_ONLY_KEYS(o, where, known, e));
    bool table = json_object_get(o, "by_length") != NULL;
    bool half = json_object_get(o, "half_length") != NULL;
    if (table && half)
        FAIL(e, ERR_CONFIG, "%s: has both \"by_length\" and \"half_length\"; one must go", where);
    if (half) out->by_length.count = 0;
    if (table) out->half_length = 0;
    TRY(maybe_line(o, "by_depth", where, 100, a, &out->by_depth, e));
    TRY(read_places(o, where, a, out, e));
    TRY(maybe_line(o, "by_length", where, LENGTH_MOST, a, &out->by_length, e));
    TRY(maybe_number(o, "half_length", where, LENGTH_MOST, a, &out->half_length, e));
    if (half && out->half_length < 1)
        FAIL(e, ERR_CONFIG, "%s: \"half_length\" is %g; at least 1 is needed", where,
             out->half_length);
    TRY(maybe_number(o, "elsewhere", where, 1, a, &out->elsewhere, e));
    TRY(maybe_number(o, "short", where, 1, a, &out->brief, e));
    return maybe_number(o, "absent", where, 1, a, &out->absent, e);
}

static int read_texts(const json_t *o, const char *key, const char *where, struct arena *a,
                      struct subject_texts *out, struct err *e) {
    return provider_file_texts(o, key, where, a, &out->texts, &out->count, e);
}

// What a file may not leave out, or say in vain.
static int check_constraint(const struct subject_constraint *c, const char *where, struct err *e) {
    if (c->met.count == 0)
        FAIL(e, ERR_CONFIG, "%s: \"met\" is missing: what does a reply say that honours it?",
             where);
    if (c->curve.by_depth.count == 0 && c->curve.place_count == 0)
        FAIL(e, ERR_CONFIG, "%s: its curve has neither \"by_depth\" nor \"by_place\"", where);
    if (c->row_count > 0 && c->curve.elsewhere < 0)
        FAIL(e, ERR_CONFIG,
             "%s: has \"rows\", so its curve needs \"elsewhere\": the chance in other rows", where);
    if (c->row_count > 0 && c->find != NULL)
        FAIL(e, ERR_CONFIG, "%s: has both \"rows\" and \"find\"; one must go", where);
    if (c->find != NULL && c->curve.by_depth.count == 0)
        FAIL(e, ERR_CONFIG, "%s: has \"find\", so its curve needs \"by_depth\"", where);
    if (c->violated_share > 0 && c->violated.count == 0)
        FAIL(e, ERR_CONFIG, "%s: \"violated_share\" needs a text \"violated\"", where);
    for (int i = 0; i < c->met.count && c->curve.absent > 0 && c->said_anyway.count == 0; i++)
        if (copy_wanted(c->met.texts[i], &c->copy))
            FAIL(e, ERR_CONFIG,
                 "%s: its curve has \"absent\" above 0, but \"met\" copies from the prompt, where "
                 "nothing stands in that arm: give \"said_anyway\"",
                 where);
    return 0;
}

static int read_constraint(const json_t *o, const char *where, struct arena *a,
                           struct subject_constraint *out, struct err *e) {
    static const char *const known[] = {"id",          "curve",         "rows",       "find",
                                        "met",         "omitted",       "copy_after", "violated",
                                        "said_anyway", "violated_share"};
    struct str *markers;
    const char *id;
    TRY(JSON_ONLY_KEYS(o, where, known, e));
    TRY(json_need_string(o, "id", where, &id, e));
    out->id = arena_strdup(a, id);
    TRY(read_curve(json_object_get(o, "curve"), where, a, &out->curve, e));
    TRY(provider_file_texts(o, "rows", where, a, &out->rows, &out->row_count, e));
    TRY(provider_file_text(o, "find", where, a, &out->find, e));
    TRY(provider_file_texts(o, "copy_after", where, a, &markers, &out->copy.count, e));
    out->copy.markers = markers;
    TRY(read_texts(o, "met", where, a, &out->met, e));
    TRY(read_texts(o, "omitted", where, a, &out->omitted, e));
    TRY(read_texts(o, "violated", where, a, &out->violated, e));
    TRY(read_texts(o, "said_anyway", where, a, &out->said_anyway, e));
    TRY(maybe_number(o, "violated_share", where, 1, a, &out->violated_share, e));
    return check_constraint(out, where, e);
}

static int read_constraints(const json_t *o, const char *path, const struct subject_curve *curve,
                            struct arena *a, struct subject *out, struct err *e) {
    json_t *list;
    TRY(json_need_array(o, "constraints", path, &list, e));
    out->constraint_count = (int)json_array_size(list);
    out->constraints = arena_array(a, (size_t)out->constraint_count, sizeof *out->constraints);
    for (int i = 0; i < out->constraint_count; i++) {
        const char *where = arena_printf(a, "%s: constraints[%d]", path, i);
        struct subject_constraint *c = &out->constraints[i];
        c->curve = *curve;
        TRY(read_constraint(json_array_get(list, (size_t)i), where, a, c, e));
        for (int k = 0; k < i; k++)
            if (strcmp(c->id, out->constraints[k].id) == 0)
                FAIL(e, ERR_CONFIG, "%s: '%s' is constraints[%d] already", where, c->id, k);
    }
    return 0;
}

static int read_subject(const json_t *o, const char *path, struct arena *a, struct subject *out,
                        struct err *e) {
    static const char *const known[] = {
        "lacuna_simulated", "seed", "context_tokens", "in_flight", "curve", "agreement",
        "prompt_agreement", "cut",  "cut_reply",      "begin",     "end",   "constraints"};
    int64_t context, in_flight, seed;
    TRY(JSON_ONLY_KEYS(o, path, known, e));
    TRY(provider_file_integer(o, "context_tokens", path, UINT32_MAX, 0, &context, e));
    TRY(provider_file_integer(o, "in_flight", path, SIMULATED_IN_FLIGHT_MOST, 64, &in_flight, e));
    TRY(provider_file_integer(o, "seed", path, INT64_MAX, 1, &seed, e));
    if (in_flight == 0) FAIL(e, ERR_CONFIG, "%s: \"in_flight\" is 0; at least 1 is needed", path);
    out->context_tokens = (uint32_t)context;
    out->in_flight = (int)in_flight;
    out->seed = (uint64_t)seed;
    TRY(maybe_number(o, "agreement", path, 1, a, &out->agreement, e));
    TRY(maybe_number(o, "prompt_agreement", path, 1, a, &out->prompt_agreement, e));
    TRY(maybe_line(o, "cut", path, LENGTH_MOST, a, &out->cut, e));
    TRY(provider_file_text(o, "cut_reply", path, a, &out->cut_reply, e));
    if (out->cut_reply == NULL) out->cut_reply = "Thank you for";
    TRY(provider_file_text(o, "begin", path, a, &out->begin, e));
    TRY(provider_file_text(o, "end", path, a, &out->end, e));
    struct subject_curve curve = {.elsewhere = -1, .brief = 1};
    TRY(read_curve(json_object_get(o, "curve"), path, a, &curve, e));
    return read_constraints(o, path, &curve, a, out, e);
}

int subject_read(const char *path, struct arena *a, struct subject *out, struct err *e) {
    *out = (struct subject){0};
    json_t *o;
    TRY(provider_file_read(path, "lacuna_simulated", a, out->sha256, &o, e));
    int result = read_subject(o, path, a, out, e);
    json_decref(o);
    return result;
}
