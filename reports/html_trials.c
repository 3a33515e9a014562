#include "reports/html_trials.h"

#include "reports/escape.h"

#include <stdio.h>
#include <string.h>

#define SURROUNDINGS_BYTES 300

struct view {
    const struct record *record;
    bool whole_prompts;
    bool has_prompts;
};

static void add_chip(struct buf *out, const char *kind, const char *label, const char *word) {
    buf_printf(out, "<span class=\"chip %s\">", kind);
    escape_html_c(out, label);
    if (word != NULL) {
        buf_add_c(out, ": ");
        escape_html_c(out, word);
    }
    buf_add_c(out, "</span>");
}

static void add_verdict_chips(const struct record_outcome *o, struct buf *out) {
    if (o == NULL) {
        add_chip(out, "unscored", "not run", NULL);
        return;
    }
    if (o->status != STATUS_OK) {
        add_chip(out, record_status_name(o->status), record_status_name(o->status), o->reason_code);
        return;
    }
    for (int i = 0; i < o->verdict_count; i++) {
        const struct record_verdict *v = &o->verdicts[i];
        char word[96];
        snprintf(word, sizeof word, "%s%s%s%s", verdict_name(v->verdict), v->reason ? " (" : "",
                 v->reason ? v->reason : "", v->reason ? ")" : "");
        add_chip(out, verdict_name(v->verdict), v->constraint, word);
    }
}

// Byte ranges of the constraints in the prompt, ascending; the plan gives them in text order.
static void add_marked(struct str text, size_t begin, size_t end, const struct record_trial *t,
                       struct buf *out) {
    size_t at = begin;
    while (at < end) {
        const struct record_span *next = NULL;
        for (int i = 0; i < t->span_count; i++) {
            const struct record_span *s = &t->spans[i];
            if (s->first_byte >= at && s->first_byte < end && s->bytes > 0 &&
                (next == NULL || s->first_byte < next->first_byte))
                next = s;
        }
        if (next == NULL || next->first_byte + next->bytes > text.n) break;
        escape_html(out, str_slice(text, at, next->first_byte));
        size_t stop = next->first_byte + next->bytes;
        buf_add_c(out, "<mark title=\"");
        escape_html_c(out, next->constraint);
        buf_add_c(out, "\">");
        escape_html(out, str_slice(text, next->first_byte, stop));
        buf_add_c(out, "</mark>");
        at = stop;
    }
    if (at < end) escape_html(out, str_slice(text, at, end));
}

static size_t to_boundary(struct str text, size_t at) {
    while (at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80) at++;
    return at;
}

static void add_surroundings(struct str text, const struct record_trial *t, struct buf *out) {
    size_t shown = 0;
    for (int i = 0; i < t->span_count; i++) {
        const struct record_span *s = &t->spans[i];
        if (s->first_byte + s->bytes > text.n) continue;
        size_t begin = s->first_byte > SURROUNDINGS_BYTES ? s->first_byte - SURROUNDINGS_BYTES : 0;
        size_t end = s->first_byte + s->bytes + SURROUNDINGS_BYTES;
        begin = to_boundary(text, begin < shown ? shown : begin);
        end = to_boundary(text, end > text.n ? text.n : end);
        if (end <= begin) continue;
        if (begin > shown) buf_add_c(out, " [...] ");
        add_marked(text, begin, end, t, out);
        shown = end;
    }
    if (shown < text.n) buf_add_c(out, " [...]");
}

int html_prompt(const struct record *r, const struct record_trial *t, bool whole, struct buf *out,
                struct err *e) {
    if (!record_has_prompts(r)) {
        buf_printf(out,
                   "<p class=\"soft\">%u prompt tokens; the prompts are not kept in this copy of "
                   "the record (SHA-256 <code>%s</code>).</p>\n",
                   t->prompt_tokens, t->prompt_sha256);
        return 0;
    }
    struct arena *a = arena_create("trial");
    struct record_part *parts;
    size_t count;
    struct str text;
    int result = record_get_prompt(r, t->prompt_sha256, a, &parts, &count, &text, e);
    if (result == 0) {
        buf_printf(out, "<details><summary>Prompt, %u tokens</summary><div><pre dir=\"auto\">",
                   t->prompt_tokens);
        if (whole)
            add_marked(text, 0, text.n, t, out);
        else
            add_surroundings(text, t, out);
        buf_add_c(out, "</pre></div></details>\n");
    }
    arena_destroy(a);
    return result;
}

static void add_found(const char *what, const char *constraint, const struct str *texts, int count,
                      struct buf *out) {
    for (int i = 0; i < count; i++) {
        buf_printf(out, "; %s for ", what);
        escape_html_c(out, constraint);
        if (texts == NULL) continue; // not kept
        buf_add_c(out, ": <bdi>");
        escape_html(out, texts[i]);
        buf_add_c(out, "</bdi>");
    }
}

// What checks do not look at.
static void add_beside_answer(struct str text, struct buf *out) {
    if (text.n == 0) return;
    buf_add_c(out, "<span class=\"soft\">");
    escape_html(out, text);
    buf_add_c(out, "</span>");
}

static void add_words(const struct record_outcome *o, struct buf *out) {
    if (o->forgotten) {
        buf_printf(out,
                   "<p class=\"soft\">Its text is not kept: %zu bytes, SHA-256 <code>%s</code>."
                   "</p>\n",
                   o->reply_bytes, o->reply_sha256);
        return;
    }
    if (o->reasoning.n > 0) {
        buf_add_c(out, "<details><summary>Reasoning</summary><div><pre dir=\"auto\">");
        escape_html(out, o->reasoning);
        buf_add_c(out, "</pre></div></details>\n");
    }
    buf_add_c(out, "<pre dir=\"auto\">");
    add_beside_answer(str_slice(o->reply, 0, o->answer[0]), out);
    escape_html(out, str_slice(o->reply, o->answer[0], o->answer[1]));
    add_beside_answer(str_slice(o->reply, o->answer[1], o->reply.n), out);
    buf_add_c(out, "</pre>\n");
}

void html_reply(const struct record_outcome *o, struct buf *out) {
    if (o == NULL) return;
    if (o->status != STATUS_OK) {
        buf_add_c(out, "<p class=\"error\">");
        escape_html_c(out, o->reason_text);
        buf_add_c(out, "</p>\n");
    }
    buf_add_c(out, "<p class=\"soft\">Reply, ");
    if (o->tokens >= 0)
        buf_printf(out, "%d tokens", o->tokens);
    else
        buf_add_c(out, "tokens not told");
    if (o->reasoning_counted && o->reasoning_tokens > 0)
        buf_printf(out, ", %d of reasoning", o->reasoning_tokens);
    buf_printf(out, ", finish: %s", o->finish != NULL ? o->finish : "-");
    for (int i = 0; i < o->verdict_count; i++) {
        const struct record_verdict *v = &o->verdicts[i];
        add_found("near miss", v->constraint, v->near, v->near_count, out);
        add_found("copied distractor", v->constraint, v->copied, v->copied_count, out);
        if (!v->thought) continue;
        buf_add_c(out, "; thought of and dropped: ");
        escape_html_c(out, v->constraint);
    }
    buf_add_c(out, "</p>\n");
    add_words(o, out);
}

static int add_evidence(const struct record *r, int64_t number, struct buf *out, struct err *e) {
    struct arena *a = arena_create("trial");
    const struct record_evidence *v;
    int result = record_get_evidence(r, number, a, &v, e);
    for (int i = 0; result == 0 && v != NULL && i < v->attention_count; i++) {
        const struct record_attention *t = &v->attention[i];
        bool replied = t->mean.of[ROWS_REPLY] != RECORD_NO_SHARE;
        enum record_rows rows = replied ? ROWS_REPLY : ROWS_PROMPT;
        buf_add_c(out, "<p class=\"soft\">Attention on ");
        escape_html_c(out, t->constraint);
        buf_printf(out, ", %s: %.2f %%, on %.2f %% of the tokens",
                   replied ? "reply" : "prompt's end", t->mean.of[rows] / 1e4,
                   (replied ? t->reply_tokens : t->prompt_tokens) / 1e4);
        for (int k = 0; k < t->strongest_count && k < 3; k++)
            buf_printf(out, "%s layer %d head %d %.1f %%", k == 0 ? "; most:" : ",",
                       t->strongest[k].layer, t->strongest[k].head,
                       t->strongest[k].shares.of[rows] / 1e4);
        buf_add_c(out, "</p>\n");
    }
    arena_destroy(a);
    return result;
}

static int add_trial(const struct view *view, int64_t number, struct buf *out, struct err *e) {
    const struct record_trial *t = &view->record->trials[number];
    const struct record_outcome *o = view->record->outcomes[number];
    buf_add_c(out, "<details class=\"trial\" data-key=\"");
    escape_html_c(out, t->key);
    buf_add_c(out, "\"><summary><code>");
    escape_html_c(out, t->key);
    buf_add_c(out, "</code> ");
    add_verdict_chips(o, out);
    buf_add_c(out, "</summary><div>\n");
    html_reply(o, out);
    TRY(add_evidence(view->record, number, out, e));
    TRY(html_prompt(view->record, t, view->whole_prompts, out, e));
    buf_add_c(out, "</div></details>\n");
    return 0;
}

// About four bytes a token: only to choose between whole prompts and surroundings.
static uint64_t estimate_prompt_bytes(const struct record *r, int64_t trials) {
    uint64_t bytes = 0;
    for (int64_t i = 0; i < trials; i++) bytes += 4 * (uint64_t)r->trials[i].prompt_tokens;
    return bytes;
}

int html_trials(const struct record *r, const struct summary *s, struct buf *out, struct err *e) {
    (void)s;
    int64_t shown = r->trial_count < HTML_TRIALS_MOST ? r->trial_count : HTML_TRIALS_MOST;
    struct view view = {.record = r,
                        .whole_prompts = estimate_prompt_bytes(r, shown) <= HTML_PROMPT_BYTES_MOST,
                        .has_prompts = record_has_prompts(r)};
    buf_printf(out,
               "<h2>Trials</h2>\n<p class=\"soft\">Key: model / arm / length / placement / "
               "repeat / sample.%s%s",
               view.has_prompts ? " Constraints are marked in the prompt." : "",
               view.has_prompts && !view.whole_prompts
                   ? " Prompts are shown around their constraints; `lacuna prompt RUN KEY` prints "
                     "them whole."
                   : "");
    if (shown < r->trial_count)
        buf_printf(out, " The first %lld of %lld trials are shown; trials.jsonl has all.",
                   (long long)shown, (long long)r->trial_count);
    buf_add_c(out, "</p>\n");
    for (int64_t i = 0; i < shown; i++) TRY(add_trial(&view, i, out, e));
    return 0;
}
