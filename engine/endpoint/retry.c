#include "engine/endpoint/retry.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static bool read_number(struct str s, int64_t *out) {
    int64_t value = 0;
    if (s.n == 0 || s.n > 12) return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        value = 10 * value + (s.p[i] - '0');
    }
    *out = value;
    return true;
}

static bool read_date(struct str s, int64_t *out) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[40], weekday[4], month[4], zone[4];
    struct tm t = {0};
    if (s.n != strlen("Sun, 06 Nov 1994 08:49:37 GMT")) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (sscanf(text, "%3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d %3s", weekday, &t.tm_mday, month,
               &t.tm_year, &t.tm_hour, &t.tm_min, &t.tm_sec, zone) != 8)
        return false;
    const char *found = strstr(months, month);
    if (strcmp(zone, "GMT") != 0 || strlen(month) != 3 || found == NULL ||
        (found - months) % 3 != 0)
        return false;
    t.tm_mon = (int)(found - months) / 3;
    t.tm_year -= 1900;
    *out = timegm(&t);
    return true;
}

bool retry_after_seconds(struct str value, int64_t now, int64_t *seconds) {
    int64_t date;
    value = str_trim(value);
    if (read_number(value, seconds)) return true;
    if (!read_date(value, &date)) return false;
    *seconds = date > now ? date - now : 0;
    return true;
}

static bool may_change(const struct retry_attempt *a) {
    static const int passing[] = {408, 425, 429, 500, 502, 503, 504, 529};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (a->status == passing[i]) return true;
    return a->status == 0 && a->lost;
}

static uint64_t pause_of(const struct retry_policy *p, int attempt, struct rng *draw) {
    uint64_t ms = p->first_ms;
    for (int i = 1; i < attempt && ms < p->pause_ms_most; i++) ms *= 2;
    if (ms > p->pause_ms_most) ms = p->pause_ms_most;
    return ms - rng_below(draw, ms / 2 + 1);
}

enum retry_choice retry_choose(const struct retry_policy *policy,
                               const struct retry_attempt *attempt, int64_t now, struct rng *draw,
                               uint64_t *pause_ms) {
    int64_t asked;
    *pause_ms = 0;
    if (!may_change(attempt)) return RETRY_FINAL;
    if (attempt->number >= policy->attempts_most) return RETRY_EXHAUSTED;
    *pause_ms = pause_of(policy, attempt->number, draw);
    if (!retry_after_seconds(attempt->retry_after, now, &asked)) return RETRY_AGAIN;
    const uint64_t asked_ms = (uint64_t)asked * 1000;
    if (asked_ms > *pause_ms) *pause_ms = asked_ms;
    return asked_ms > policy->asked_ms_most ? RETRY_TOO_LONG : RETRY_AGAIN;
}
