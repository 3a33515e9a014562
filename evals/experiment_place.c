// Places: spelling, order, equality.
#include "evals/experiment_scalar.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    struct place_spot spot;
} named[] = {
    {"start", {PLACE_AT_DEPTH, 0}},
    {"middle", {PLACE_AT_DEPTH, DEPTH_MOST / 2}},
    {"end", {PLACE_AT_DEPTH, DEPTH_MOST}},
    {"in_system", {PLACE_IN_SYSTEM, DEPTH_NONE}},
    {"before_filler", {PLACE_BEFORE_FILLER, DEPTH_NONE}},
    {"after_filler", {PLACE_AFTER_FILLER, DEPTH_NONE}},
    {"first_user", {PLACE_FIRST_USER, DEPTH_NONE}},
    {"last_user", {PLACE_LAST_USER, DEPTH_NONE}},
    {"in_place", {PLACE_IN_PLACE, DEPTH_NONE}},
    {"absent", {PLACE_ABSENT, DEPTH_NONE}},
};
enum { NAMED = sizeof named / sizeof *named, ORDERS_MOST = 1000000 };

struct place place_at(int32_t depth) {
    return (struct place){.anchor = PLACE_AT_DEPTH, .depth = depth};
}

struct place place_of_order(int order) {
    return (struct place){.anchor = PLACE_ORDER, .depth = order + 1};
}

struct place_spot place_spot(const struct place *p, int index) {
    return index == 0 ? (struct place_spot){p->anchor, p->depth} : p->more[index - 1];
}

bool place_is_depth(struct place p) {
    return p.anchor == PLACE_AT_DEPTH && p.more_count == 0;
}

// ---- order ----

// The order of the prompt; what is left where the user has it comes first.
static int64_t spot_rank(struct place_spot s) {
    switch (s.anchor) {
    case PLACE_IN_PLACE: return -4;
    case PLACE_IN_SYSTEM: return -3;
    case PLACE_FIRST_USER: return -2;
    case PLACE_BEFORE_FILLER: return -1;
    case PLACE_AT_DEPTH: return s.depth;
    case PLACE_AFTER_FILLER: return DEPTH_MOST + 1;
    case PLACE_LAST_USER: return DEPTH_MOST + 2;
    case PLACE_ABSENT: return DEPTH_MOST + 3;
    case PLACE_ORDER: break;
    }
    return (int64_t)DEPTH_MOST + 3 + s.depth;
}

static int spot_compare(struct place_spot a, struct place_spot b) {
    int64_t x = spot_rank(a), y = spot_rank(b);
    return (x > y) - (x < y);
}

int place_compare(struct place a, struct place b) {
    for (int i = 0; i <= a.more_count && i <= b.more_count; i++) {
        int order = spot_compare(place_spot(&a, i), place_spot(&b, i));
        if (order != 0) return order;
    }
    return (a.more_count > b.more_count) - (a.more_count < b.more_count);
}

bool place_equal(struct place a, struct place b) {
    return place_compare(a, b) == 0;
}

// ---- spelling ----

static int read_spot(struct str s, struct place_spot *out) {
    for (int i = 0; i < NAMED; i++)
        if (str_equal_c(s, named[i].name)) {
            *out = named[i].spot;
            return 0;
        }
    int64_t order;
    if (str_starts(s, STR("order-")) && scalar_integer(str_slice(s, 6, s.n), &order) == 0 &&
        order > 0 && order <= ORDERS_MOST) {
        *out = (struct place_spot){PLACE_ORDER, (int32_t)order};
        return 0;
    }
    const bool percent = str_ends(s, STR("%"));
    if (percent) s = str_slice(s, 0, s.n - 1);
    int64_t value;
    if (scalar_decimal(s, 3, &value) != 0 || value > DEPTH_MOST) return -1;
    // A bare 0.5 may be meant as a half; only per cents say what they are.
    if (!percent && value > 0 && value <= 1000) return -1;
    *out = (struct place_spot){PLACE_AT_DEPTH, (int32_t)value};
    return 0;
}

int scalar_place(struct str s, struct place *out) {
    struct place_spot spots[PLACE_SPOTS_MOST];
    int count = 0;
    for (size_t at = 0; at <= s.n;) {
        struct place_spot spot;
        size_t plus = str_find(s, STR("+"), at);
        if (plus == STR_NONE) plus = s.n;
        if (count == PLACE_SPOTS_MOST || read_spot(str_trim(str_slice(s, at, plus)), &spot) != 0)
            return -1;
        int k = count++;
        for (; k > 0 && spot_compare(spots[k - 1], spot) > 0; k--) spots[k] = spots[k - 1];
        spots[k] = spot;
        if (k > 0 && spot_compare(spots[k - 1], spot) == 0) return -1;
        at = plus + 1;
    }
    if (count > 1 && spot_rank(spots[count - 1]) > DEPTH_MOST + 2) return -1; // stands alone
    *out =
        (struct place){.anchor = spots[0].anchor, .depth = spots[0].depth, .more_count = count - 1};
    for (int i = 1; i < count; i++) out->more[i - 1] = spots[i];
    return 0;
}

void place_text(struct place p, char out[PLACE_TEXT_SIZE]) {
    size_t n = 0;
    for (int i = 0; i <= p.more_count; i++) {
        struct place_spot s = place_spot(&p, i);
        char number[32];
        const char *name = NULL, *plus = i > 0 ? "+" : "";
        for (int k = 0; k < NAMED && name == NULL; k++)
            if (spot_compare(named[k].spot, s) == 0) name = named[k].name;
        if (s.anchor == PLACE_ORDER) {
            snprintf(number, sizeof number, "order-%d", s.depth);
            name = number;
        }
        if (name == NULL) scalar_decimal_text(s.depth, 3, number);
        n += (size_t)snprintf(out + n, PLACE_TEXT_SIZE - n, "%s%.20s%s", plus,
                              name != NULL ? name : number, name != NULL ? "" : "%");
    }
}
