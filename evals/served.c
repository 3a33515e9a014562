#include "evals/served.h"

#include "reports/escape.h"

#include <string.h>

struct record_server served_by(const struct provider_served *s) {
    if (s == NULL) return (struct record_server){0};
    return (struct record_server){s->model, s->fingerprint, s->server};
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool served_same(const struct record_server *a, const struct record_server *b) {
    return same_text(a->model, b->model) && same_text(a->fingerprint, b->fingerprint) &&
           same_text(a->program, b->program);
}

const char *served_words(const struct record_server *s, struct arena *a) {
    const char *const parts[][2] = {
        {"model", s->model}, {"fingerprint", s->fingerprint}, {"server", s->program}};
    struct buf words = {0}, clean = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i][1] != NULL)
            buf_printf(&words, "%s%s %s", words.n > 0 ? ", " : "", parts[i][0], parts[i][1]);
    if (words.n == 0) buf_add_c(&words, "a server that says nothing of itself");
    escape_terminal(&clean, buf_str(&words));
    buf_free(&words);
    return buf_take(&clean, a).p;
}

static const char *copied(struct arena *a, const char *text) {
    return text != NULL ? arena_strdup(a, text) : NULL;
}

bool served_note(struct served_list *l, const struct record_server *by, int64_t trial,
                 struct arena *a) {
    const struct record_server nothing = {0};
    if (served_same(by, &nothing)) return false;
    for (int i = 0; i < l->count; i++) {
        struct served_seen *s = &l->seen[i];
        if (!served_same(&s->by, by)) continue;
        s->replies++;
        if (trial < s->first) s->first = trial;
        if (trial > s->last) s->last = trial;
        return false;
    }
    l->seen = arena_more(a, l->seen, (size_t)l->count, sizeof *l->seen);
    l->seen[l->count++] = (struct served_seen){
        {copied(a, by->model), copied(a, by->fingerprint), copied(a, by->program)},
        1,
        trial,
        trial};
    return true;
}

const char *served_model(const struct served_list *l) {
    for (int i = 0; i < l->count; i++)
        if (l->seen[i].by.model != NULL) return l->seen[i].by.model;
    return NULL;
}
