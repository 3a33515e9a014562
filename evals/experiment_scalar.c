#include "evals/experiment_scalar.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool digit(char c) {
    return c >= '0' && c <= '9';
}

int scalar_integer(struct str s, int64_t *out) {
    size_t at = s.n > 0 && s.p[0] == '-' ? 1 : 0;
    size_t digits = s.n - at;
    if (digits == 0 || digits > 18 || (s.p[at] == '0' && (digits > 1 || at == 1))) return -1;
    int64_t value = 0;
    for (size_t i = at; i < s.n; i++) {
        if (!digit(s.p[i])) return -1;
        value = value * 10 + (s.p[i] - '0');
    }
    *out = at == 1 ? -value : value;
    return 0;
}

int scalar_decimal(struct str s, int places, int64_t *out) {
    size_t point = str_find(s, STR("."), 0);
    struct str whole = point == STR_NONE ? s : str_slice(s, 0, point);
    struct str rest = point == STR_NONE ? STR("0") : str_slice(s, point + 1, s.n);
    int64_t value;
    if (whole.n > 9 || scalar_integer(whole, &value) != 0 || value < 0 || rest.n == 0) return -1;
    for (size_t i = 0; i < rest.n || (int)i < places; i++) {
        char c = i < rest.n ? rest.p[i] : '0';
        if (!digit(c)) return -1;
        if ((int)i >= places) {
            if (c != '0') return -1;
            continue;
        }
        value = value * 10 + (c - '0');
    }
    *out = value;
    return 0;
}

int scalar_share(struct str s, int32_t *ppm) {
    int64_t value;
    const bool percent = str_ends(s, STR("%"));
    if (percent) s = str_slice(s, 0, s.n - 1);
    if (scalar_decimal(s, percent ? 4 : 6, &value) != 0 || value > 1000000) return -1;
    *ppm = (int32_t)value;
    return 0;
}

static bool one_of(struct str s, const char *const *words) {
    for (; *words != NULL; words++)
        if (s.n == strlen(*words) && strncasecmp(s.p, *words, s.n) == 0) return true;
    return false;
}

// Numbers of YAML 1.1 and 1.2 in any base, with signs, underscores, exponents; 12:30 (base 60).
static bool number_like(struct str s) {
    size_t at = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    if (at == s.n) return false;
    if (s.n - at > 2 && s.p[at] == '0' && strchr("xXoObB", s.p[at + 1]) != NULL) {
        for (size_t i = at + 2; i < s.n; i++)
            if (!isxdigit((unsigned char)s.p[i]) && s.p[i] != '_') return false;
        return true;
    }
    bool digits = false, exponent = false;
    for (size_t i = at; i < s.n; i++) {
        char c = s.p[i];
        if (digit(c)) {
            digits = true;
        } else if ((c == 'e' || c == 'E') && digits && !exponent && i + 1 < s.n) {
            exponent = true;
            if (s.p[i + 1] == '+' || s.p[i + 1] == '-') i++;
            if (i + 1 >= s.n) return false;
        } else if (c != '.' && c != '_' && c != ',' && c != ':') {
            return false;
        } else if (!digits && c != '.') {
            return false;
        }
    }
    return digits;
}

static bool date_like(struct str s) {
    if (s.n < 8 || !digit(s.p[0]) || !digit(s.p[1]) || !digit(s.p[2]) || !digit(s.p[3]) ||
        s.p[4] != '-')
        return false;
    for (size_t i = 5; i < s.n; i++)
        if (!digit(s.p[i]) && strchr("-:.TtZz +", s.p[i]) == NULL) return false;
    return true;
}

const char *scalar_reads_as(struct str s) {
    static const char *const truths[] = {"y", "n", "yes", "no", "true", "false", "on", "off", NULL};
    static const char *const nulls[] = {"~", "null", NULL};
    static const char *const numbers[] = {".inf", "-.inf", "+.inf", ".nan", NULL};
    if (s.n == 0 || one_of(s, nulls)) return "nothing (null)";
    if (one_of(s, truths)) return "true or false";
    if (number_like(s) || one_of(s, numbers)) return "a number";
    if (date_like(s)) return "a date";
    return str_equal_c(s, "=") || str_equal_c(s, "<<") ? "a YAML 1.1 special value" : NULL;
}

void scalar_decimal_text(int64_t value, int places, char out[32]) {
    int64_t scale = 1;
    for (int i = 0; i < places; i++) scale *= 10;
    int n = snprintf(out, 32, "%lld.%0*lld", (long long)(value / scale), places,
                     (long long)(value % scale));
    while (out[n - 1] == '0') out[--n] = '\0';
    if (out[n - 1] == '.') out[n - 1] = '\0';
}

void scalar_share_text(int32_t ppm, char out[32]) {
    char number[32];
    scalar_decimal_text(ppm, 4, number);
    snprintf(out, 32, "%s%%", number);
}
