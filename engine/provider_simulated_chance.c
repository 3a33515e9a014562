// What a trial's key says, and the chance that the subject file gives it.
#include "engine/provider_simulated_file.h"

#include <stdlib.h>
#include <string.h>

// model/arm/length/row@place/repeat or case/sample; a case's id may hold slashes itself.
int subject_trial_read(const char *key, struct subject_trial *out, struct err *e) {
    struct str fields[4], all = str_from(key);
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
        size_t end = str_find(all, STR("/"), at);
        if (end == STR_NONE) FAIL(e, ERR_INPUT, "'%s' is not the key of a trial", key);
        fields[i] = str_slice(all, at, end);
        at = end + 1;
    }
    const char *last = strrchr(key, '/');
    if ((size_t)(last - key) < at) FAIL(e, ERR_INPUT, "'%s' is not the key of a trial", key);
    size_t end = (size_t)(last - key), sign = str_find(fields[3], STR("@"), 0);
    size_t row = sign == STR_NONE ? fields[3].n : sign;
    *out = (struct subject_trial){
        .arm = fields[1],
        .row = str_slice(fields[3], 0, row),
        .place = sign == STR_NONE ? STR("") : str_slice(fields[3], row + 1, fields[3].n),
        .repeat = str_slice(all, at, end),
        .prompt = str_slice(all, 0, end),
        .key = key,
        .length = fields[2].p[0] == '-' ? 0 : strtod(fields[2].p, NULL)};
    return 0;
}

// "start", "middle", "end", "12.5%".
static bool depth_of(struct str place, double *out) {
    static const char *const words[] = {"start", "middle", "end"};
    for (int i = 0; i < 3; i++) {
        *out = 50 * i;
        if (str_equal_c(place, words[i])) return true;
    }
    char text[24], *end;
    if (place.n < 2 || place.n >= sizeof text || place.p[place.n - 1] != '%') return false;
    memcpy(text, place.p, place.n);
    text[place.n - 1] = '\0';
    *out = strtod(text, &end);
    return *end == '\0';
}

// False: the curve has none for this place.
static bool chance_at(const struct subject_curve *curve, struct str place, double *out) {
    double depth;
    for (int i = 0; i < curve->place_count; i++) {
        *out = curve->places[i].chance;
        if (str_equal_c(place, curve->places[i].place)) return true;
    }
    if (curve->by_depth.count > 0 && depth_of(place, &depth)) {
        *out = subject_line_at(&curve->by_depth, depth, 0);
        return true;
    }
    size_t plus = str_find(place, STR("+"), 0);
    double left, right;
    if (plus == STR_NONE || !chance_at(curve, str_slice(place, 0, plus), &left) ||
        !chance_at(curve, str_slice(place, plus + 1, place.n), &right))
        return false;
    *out = left > right ? left : right;
    return true;
}

static bool row_moves(const struct subject_constraint *c, struct str row) {
    for (int i = 0; i < c->row_count; i++)
        if (str_equal(row, c->rows[i])) return true;
    return c->row_count == 0;
}

static double length_factor(const struct subject_curve *curve, double length) {
    if (curve->half_length > 0) return 1 / (1 + length / curve->half_length);
    return subject_line_at(&curve->by_length, length, 1);
}

int subject_chance(const struct subject_constraint *c, const struct subject_trial *t,
                   struct str prompt, double *out, struct err *e) {
    const struct subject_curve *curve = &c->curve;
    *out = str_equal_c(t->arm, "short") ? curve->brief : curve->absent;
    if (!str_equal_c(t->arm, "placed")) return 0;
    if (c->find != NULL) {
        size_t at = str_find(prompt, str_from(c->find), 0);
        if (at == STR_NONE) return 0;
        *out = subject_line_at(&curve->by_depth, 100 * (double)at / (double)prompt.n, 0);
    } else if (!row_moves(c, t->row)) {
        *out = curve->elsewhere;
    } else if (!chance_at(curve, t->place, out)) {
        FAIL(e, ERR_INPUT, "constraint '%s' has no chance at the place '" STR_FMT "'", c->id,
             STR_ARG(t->place));
    }
    *out *= length_factor(curve, t->length);
    return 0;
}
