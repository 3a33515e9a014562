// The prompts of one repeat, for all models, lengths and placements, as drafts of trials.
#include "evals/plan_internal.h"
#include "prompts/conversation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS_A_CHECK_SET 256 // checks with a repeat's values are dropped after so many
#define DEPTH_FAR 5000          // a real depth this far from the asked one (5 %) is worth a warning

int planner_open(const struct experiment *x, struct provider *const *providers, struct arena *a,
                 struct planner *out, struct err *e) {
    const struct experiment_filler *f = &x->filler;
    *out = (struct planner){.x = x, .providers = providers, .a = a};
    out->repeat = arena_create("repeat");
    out->builders = arena_array(a, (size_t)x->model_count + 1, sizeof out->builders[0]);
    for (int m = 0; m < x->model_count; m++) out->builders[m] = prompt_builder_open(providers[m]);
    TRY(closing_find(f->language, &out->closing, e));
    if (x->cases_path != NULL) {
        TRY(cases_load(x->cases_path, x->cases_id, a, &out->cases, e));
        if (x->repeats > out->cases.row_count)
            FAIL(e, ERR_CONFIG,
                 "repeats: %d, but %s has %d cases; repeat r takes case r, so give at most %d",
                 x->repeats, x->cases_path, out->cases.row_count, out->cases.row_count);
    }
    if (f->kind == FILLER_FILES)
        TRY(filler_texts_load(f->paths, (size_t)f->path_count,
                              f->unit == FILLER_SENTENCE    ? FILLER_SPLIT_SENTENCE
                              : f->unit == FILLER_PARAGRAPH ? FILLER_SPLIT_PARAGRAPH
                                                            : FILLER_SPLIT_DOCUMENT,
                              f->wrapper, a, &out->texts, e));
    if (f->kind == FILLER_CHAT)
        TRY(exchanges_load(f->paths, (size_t)f->path_count, a, &out->exchanges,
                           &out->exchange_count, e));
    return 0;
}

void planner_close(struct planner *p) {
    for (int m = 0; p->builders != NULL && m < p->x->model_count; m++)
        prompt_builder_close(p->builders[m]);
    check_set_close(p->checks);
    arena_destroy(p->repeat);
}

void planner_warn(struct planner *p, const char *text) {
    p->warnings =
        arena_more(p->a, (void *)p->warnings, (size_t)p->warning_count, sizeof *p->warnings);
    p->warnings[p->warning_count++] = text;
}

static struct draft *draft_add(struct planner *p) {
    p->drafts = arena_more(p->a, p->drafts, (size_t)p->count, sizeof *p->drafts);
    return p->drafts[p->count++] = arena_alloc(p->a, sizeof(struct draft));
}

// ---- one repeat ----

struct work {
    struct planner *p;
    struct repeat_draw d;
    struct filler *filler;
    struct units **units;     // [model]
    struct chat_units **chat; // [model], of kind chat instead
    struct stored_filler *stored;
    size_t filler_bytes; // the most that a prompt uses
    struct str *closings;
    size_t closing_count;
    struct prompt_insert *inserts;
    int *constraints;
    // With lengths.measured_by: what that model laid out for each cell, in the order of a model's
    // cells; NULL: not yet built.
    const struct layout **layouts;
    size_t layout_count;
    int cell_model;           // whose cells are counted,
    size_t cell;              // up to this one
    struct provider_ids base; // whole ids of a prompt of this model and length
    int base_model, base_length;
};

static struct filler *filler_open(struct planner *p, const struct repeat_draw *d) {
    const struct experiment_filler *f = &p->x->filler;
    struct rng rng = repeat_stream(p->x, d, "filler");
    bool spaced = filler_language_spaced(f->language);
    switch (f->kind) {
    case FILLER_PROSE: return filler_prose_open(f->language, rng, p->repeat);
    case FILLER_NOISE:
        return filler_noise_open(f->sentences, (size_t)f->sentence_count, f->language, rng,
                                 p->repeat);
    case FILLER_FILES: return filler_files_open(p->texts, f->shuffle, spaced, rng, p->repeat);
    case FILLER_CHAT:
        return filler_chat_open(p->exchanges, p->exchange_count, f->shuffle, rng, p->repeat);
    case FILLER_PAIRS: return filler_pairs_open(rng, p->repeat);
    case FILLER_JSON_PAIRS: return filler_json_open(rng, p->repeat);
    case FILLER_COMMON_WORDS:
    case FILLER_FREQUENT_WORDS: return filler_words_open(words_of(p->x), rng, p->repeat);
    }
    assert(false);
    return NULL;
}

static void stream_seed(const struct experiment *x, struct record_trial *t) {
    struct rng r = plan_sampling_stream(x, t);
    snprintf(t->seed, sizeof t->seed, "%08x%08x%08x%08x", r.key[0], r.key[1], r.stream[0],
             r.stream[1]);
}

static void depth_text(char *out, size_t size, int32_t depth) {
    if (depth == PROMPT_DEPTH_NONE)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%d.%03d", depth / 1000, depth % 1000);
}

static const char *asked_text(const struct cell *c, struct arena *a) {
    char text[PLACE_TEXT_SIZE];
    if (c->placement < 0) return NULL;
    if (place_is_depth(c->place))
        depth_text(text, sizeof text, c->place.depth);
    else
        place_text(c->place, text);
    return arena_strdup(a, text);
}

// Where a span was asked to stand. Few spellings, many spans: depths are copied, names are not.
static const char *spot_text(const struct prompt_insert *insert, struct arena *a) {
    switch (insert->anchor) {
    case PROMPT_IN_SYSTEM: return "in_system";
    case PROMPT_BEFORE_FILLER: return "before_filler";
    case PROMPT_AFTER_FILLER: return "after_filler";
    case PROMPT_FIRST_USER: return "first_user";
    case PROMPT_LAST_USER: return "last_user";
    case PROMPT_IN_PLACE: return "in_place";
    case PROMPT_TURN_BEGIN:
    case PROMPT_TURN_END:
    case PROMPT_AT_DEPTH: break;
    }
    char text[PLACE_TEXT_SIZE];
    place_text(place_at(insert->depth), text);
    return arena_strdup(a, text);
}

// Parts for the record: literal text is copied, filler refers to what is stored once.
static void draft_parts(struct planner *p, const struct prompt *prompt, struct draft *out) {
    out->part_count = prompt->part_count;
    out->parts = arena_array(p->a, prompt->part_count + 1, sizeof *out->parts);
    for (size_t i = 0; i < prompt->part_count; i++) {
        const struct prompt_part *from = &prompt->parts[i];
        struct record_part *to = &out->parts[i];
        *to = (struct record_part){.control = from->control};
        if (from->stored) {
            to->from = from->from;
            to->to = from->to;
            to->filler_sha256 = out->filler->sha256;
        } else {
            to->text = str_copy(p->a, from->text);
        }
    }
}

static void draft_spans(struct planner *p, const struct work *w, const struct cell *c,
                        const struct prompt *prompt, struct draft *out) {
    struct record_trial *t = &out->t;
    t->span_count = (int)prompt->span_count;
    t->spans = arena_array(p->a, prompt->span_count + 1, sizeof *t->spans);
    for (size_t i = 0; i < prompt->span_count; i++) {
        const struct prompt_span *s = &prompt->spans[i];
        const struct prompt_insert *insert = &w->inserts[s->insert];
        struct record_span *to = &t->spans[i];
        *to = (struct record_span){.constraint = insert->id,
                                   .first_token = s->first_token,
                                   .tokens = s->tokens,
                                   .first_byte = s->first_byte,
                                   .bytes = s->bytes,
                                   .place = spot_text(insert, p->a)};
        depth_text(to->depth, sizeof to->depth, s->depth);
        bool far = s->depth != PROMPT_DEPTH_NONE && abs(s->depth - insert->depth) > DEPTH_FAR;
        if (far && c->arm == ARM_PLACED && p->off_depth++ == 0)
            p->off_depth_first =
                arena_printf(p->a, "%s: %s stands at %s%% instead of %d.%03d%%",
                             cell_words(p->x, c, &w->d, p->a), insert->id, to->depth,
                             insert->depth / 1000, insert->depth % 1000);
        if (s->shares && p->shared_tokens++ == 0)
            p->shared_first =
                arena_printf(p->a, "%s: %s", cell_words(p->x, c, &w->d, p->a), insert->id);
    }
}

// The wordings that this prompt has, of constraints that have several.
static void draft_variants(struct planner *p, const struct work *w, const struct cell *c,
                           size_t insert_count, struct record_trial *t) {
    const struct experiment *x = p->x;
    for (int i = 0; i < x->constraint_count; i++) {
        bool stands = false;
        for (size_t k = 0; k < insert_count && !stands; k++) stands = w->constraints[k] == i;
        if (!stands || x->constraints[i].variant_count < 2) continue;
        t->variants = arena_more(p->a, t->variants, (size_t)t->variant_count, sizeof *t->variants);
        t->variants[t->variant_count++] =
            (struct record_variant){x->constraints[i].id, cell_variant(x, c, &w->d, i) + 1};
    }
}

// The ids that this cell's are held against: of the first prompt of its model and length.
static struct provider_ids *base_ids(struct work *w, const struct cell *c) {
    if (w->base_model != c->model || w->base_length != c->length)
        w->base = (struct provider_ids){0};
    w->base_model = c->model;
    w->base_length = c->length;
    return &w->base;
}

static bool opens_reasoning(const struct experiment *x, const struct cell *c,
                            const struct prompt *prompt) {
    const struct reasoning_tags *tags = &x->models[c->model].reasoning;
    return tags->opened || reasoning_opened_by(tags, prompt->text);
}

// One trial per selected sample; all of them share ids, parts and spans.
static void drafts_make(struct work *w, const struct cell *c, const struct prompt *prompt,
                        size_t insert_count) {
    struct planner *p = w->p;
    const struct experiment *x = p->x;
    struct draft *first = NULL;
    for (int sample = 0; sample < x->generation.samples; sample++) {
        if (!cell_selected(x, c, &w->d, sample)) continue;
        struct draft *out = draft_add(p);
        struct record_trial *t = &out->t;
        if (first != NULL) {
            *out = *first;
        } else {
            out->cell = *c;
            out->filler = w->stored;
            *t = (struct record_trial){.model = x->models[c->model].id,
                                       .arm = arm_name(c->arm),
                                       .length = c->length,
                                       .depth = asked_text(c, p->a),
                                       .repeat = w->d.index,
                                       .case_id = w->d.case_id,
                                       .prompt_tokens = prompt->tokens,
                                       .template_tokens = prompt->template_tokens,
                                       .reply_tokens_max = experiment_reply_tokens(x, c->model),
                                       .reasoning_opened = opens_reasoning(x, c, prompt),
                                       .vars = w->d.vars,
                                       .var_count = w->d.var_count};
            if (c->placement >= 0) t->placement = x->placements[c->placement].id;
            hash_bytes(prompt->text.p, prompt->text.n, t->prompt_sha256);
            memcpy(t->text_sha256, prompt->text_sha256, sizeof t->text_sha256);
            if (prompt->ids.count > 0) hash_ids(prompt->ids.ids, prompt->ids.count, t->ids_sha256);
            draft_parts(p, prompt, out);
            draft_spans(p, w, c, prompt, out);
            draft_variants(p, w, c, insert_count, t);
            out->ids = plan_ids_hold(&prompt->ids, base_ids(w, c), p->a);
            out->filler_bytes = prompt->filler_bytes;
            first = out;
        }
        t->sample = sample;
        t->key = cell_key(x, c, &w->d, sample, p->a);
        stream_seed(x, t);
    }
}

static uint32_t context_of(const struct planner *p, int model) {
    uint32_t asked = p->x->models[model].context_tokens;
    uint32_t can = p->providers[model]->can.context_tokens;
    if (asked == 0 || (can > 0 && can < asked)) return can;
    return asked;
}

// Nothing is ever cut: prompt and reply fit into the context together, or there is no plan.
static int context_check(struct work *w, const struct cell *c, uint32_t tokens, struct err *e) {
    uint32_t context = context_of(w->p, c->model);
    int most = experiment_reply_tokens(w->p->x, c->model);
    if (context == 0 || (uint64_t)tokens + (uint64_t)most <= context) return 0;
    FAIL(
        e, ERR_CONFIG,
        "%s: prompt %u tokens + max_tokens %d (answer and reasoning) = %llu, more than the context "
        "of %u; make lengths or max_tokens smaller, or models[].context_tokens greater",
        cell_words(w->p->x, c, &w->d, w->p->repeat), tokens, most,
        (unsigned long long)tokens + (unsigned long long)most, context);
}

static void closing_keep(struct work *w, struct str closing) {
    w->closings = arena_more(w->p->repeat, w->closings, w->closing_count, sizeof *w->closings);
    w->closings[w->closing_count++] = closing;
}

// The model whose tokens a cell's length is in.
static int measuring_model(const struct experiment *x, int model) {
    return x->measured_by != NULL ? experiment_model_index(x, x->measured_by) : model;
}

// Where the layout of this cell is kept; all models have the same cells in the same order.
static const struct layout **layout_slot(struct work *w, const struct cell *c) {
    w->cell = w->layout_count == 0 || w->cell_model != c->model ? 0 : w->cell + 1;
    w->cell_model = c->model;
    if (w->cell == w->layout_count) {
        w->layouts =
            arena_more(w->p->repeat, (void *)w->layouts, w->layout_count, sizeof *w->layouts);
        w->layouts[w->layout_count++] = NULL;
    }
    return &w->layouts[w->cell];
}

// The repeat's filler as a model counts it.
static void units_count(struct work *w, int model) {
    struct planner *p = w->p;
    if (w->units[model] != NULL || w->chat[model] != NULL) return;
    if (p->x->filler.kind == FILLER_CHAT)
        w->chat[model] = chat_units_open(p->providers[model], w->filler, p->repeat);
    else
        w->units[model] =
            units_open(prompt_builder_counter(p->builders[model]), w->filler, p->repeat);
}

// The prompt in the cell's model, with the texts that the measuring model gave it.
static int prompt_make(struct work *w, const struct cell *c, struct prompt_request *r,
                       const struct layout **slot, struct prompt *out, struct err *e) {
    struct planner *p = w->p;
    const int by = measuring_model(p->x, c->model);
    units_count(w, by);
    r->units = w->units[by];
    r->chat = w->chat[by];
    r->keep_layout = p->x->measured_by != NULL;
    if (by != c->model && *slot == NULL) {
        TRY(prompt_build(p->builders[by], r, p->repeat, out, e));
        *slot = out->layout;
    }
    if (by != c->model) r->like = *slot;
    TRY(prompt_build(p->builders[c->model], r, p->repeat, out, e));
    if (by == c->model) *slot = out->layout;
    return 0;
}

static int cell_build(void *context, const struct cell *c, struct err *e) {
    struct work *w = context;
    struct planner *p = w->p;
    const struct experiment *x = p->x;
    const struct layout **slot = layout_slot(w, c);
    if (!cell_in_repeat(x, c, &w->d) || !cell_selected(x, c, &w->d, -1)) return 0;
    if (c->length >= 0 && measuring_model(x, c->model) == c->model)
        TRY(context_check(w, c, (uint32_t)c->length, e));
    struct prompt_request r = {
        .message_count = (size_t)x->message_count,
        .closing = p->closing,
        // Not the repeat's: closing words alone must not make repeats look different.
        .closing_rng = rng_open(x->seed, "experiment", "closing"),
        .spaced = filler_language_spaced(x->filler.language),
        .inserts = w->inserts,
        .length = c->length,
        .filler_tokens = x->short_tokens,
        .tolerance_ppm = x->length_tolerance_ppm,
    };
    cell_inserts(x, c, &w->d, w->inserts, w->constraints, &r.insert_count);
    r.messages = cell_messages(x, &w->d, w->inserts, w->constraints, r.insert_count, p->repeat);
    struct prompt prompt;
    if (prompt_make(w, c, &r, slot, &prompt, e) != 0)
        return err_prefix(e, "%s", cell_words(x, c, &w->d, p->repeat));
    TRY(context_check(w, c, prompt.tokens, e));
    if (prompt.filler_bytes > w->filler_bytes) w->filler_bytes = prompt.filler_bytes;
    closing_keep(w, prompt.closing);
    if (prompt.spelled.n > 0 && p->spelled == NULL) p->spelled = str_to_c(p->a, prompt.spelled);
    const char *length = provider_length_word(p->providers[c->model]);
    p->estimated = p->estimated || strcmp(length, "estimated") == 0;
    p->counted = p->counted || strcmp(length, "counted") == 0;
    drafts_make(w, c, &prompt, r.insert_count);
    return 0;
}

// ---- checks against the filler ----

// Whether the user may allow the filler to match: the texts are the user's, or a list of words that
// holds the answers.
static bool may_ask(const struct experiment *x) {
    switch (x->filler.kind) {
    case FILLER_FILES:
    case FILLER_CHAT:
    case FILLER_COMMON_WORDS:
    case FILLER_FREQUENT_WORDS: return true;
    default: return false;
    }
}

static int filler_fails(const struct work *w, const struct experiment_constraint *c,
                        struct str text, const size_t match[2], const char *by, struct err *e) {
    FAIL(e, ERR_CONFIG,
         "constraint '%s': its `%s` matches the filler of %s: \"" STR_FMT
         "\"; the model could say it "
         "without having read the constraint. Change the check or the filler%s",
         c->id, by, w->d.scope, STR_ARG(str_slice(text, match[0], match[1])),
         may_ask(w->p->x) ? ", or say prompt.filler.may_match: true" : "");
}

static int filler_check(struct work *w, struct str stored, struct err *e) {
    struct planner *p = w->p;
    const struct experiment *x = p->x;
    bool may = may_ask(x) && x->filler.may_match;
    struct str distractors = STR(""), masked = stored;
    if (x->distractor_count > 0) {
        TRY(distractors_part(w->filler, stored.n, true, p->repeat, &distractors, e));
        TRY(distractors_part(w->filler, stored.n, false, p->repeat, &masked, e));
    }
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        const struct check *check;
        TRY(check_prepare(p->checks, c, w->d.known[i], w->d.known_count[i], &check, e));
        if (!p->proven) TRY(check_prove(check, c, w->d.known[i], w->d.known_count[i], e));
        for (size_t k = 0; k <= w->closing_count && !may; k++) {
            struct str text = k == 0 ? masked : w->closings[k - 1];
            size_t match[2];
            const char *by;
            bool matches;
            TRY(check_filler(check, text, &matches, match, &by, e));
            if (matches) return filler_fails(w, c, text, match, by, e);
        }
        if (distractors.n > 0) TRY(distractors_check(check, c, &w->d, distractors, e));
    }
    p->proven = true;
    return 0;
}

// The longest filler of the repeat is kept once; its drafts' parts point into it.
static int filler_keep(struct work *w, int64_t first, struct err *e) {
    struct planner *p = w->p;
    w->stored->text = str_copy(p->a, str_slice(filler_text(w->filler), 0, w->filler_bytes));
    hash_bytes(w->stored->text.p, w->stored->text.n, w->stored->sha256);
    const struct surroundings *around =
        surroundings_find(p->x, &w->d, w->stored->text, p->a, p->repeat);
    for (int64_t i = first; i < p->count; i++) {
        TRY(draft_surroundings(around, w->filler, p->drafts[i], e));
        for (size_t k = 0; k < p->drafts[i]->part_count; k++) {
            struct record_part *part = &p->drafts[i]->parts[k];
            if (part->filler_sha256 != NULL)
                part->text = str_slice(w->stored->text, part->from, part->to);
        }
    }
    return filler_check(w, w->stored->text, e);
}

int planner_repeat(struct planner *p, int index, struct err *e) {
    const struct experiment *x = p->x;
    arena_reset(p->repeat);
    if (index % REPEATS_A_CHECK_SET == 0) {
        check_set_close(p->checks);
        p->checks = check_set_open();
    }
    struct work w = {.p = p};
    int64_t first = p->count;
    TRY(repeat_draw(x, &p->cases, index, p->a, p->repeat, &w.d, e));
    w.filler = repeat_distract(x, &w.d, filler_open(p, &w.d), p->a, p->repeat);
    w.stored = arena_alloc(p->a, sizeof *w.stored);
    w.units = arena_array(p->repeat, (size_t)x->model_count + 1, sizeof *w.units);
    w.chat = arena_array(p->repeat, (size_t)x->model_count + 1, sizeof *w.chat);
    const size_t most = (size_t)x->constraint_count * PLACE_SPOTS_MOST + 1;
    w.inserts = arena_array(p->repeat, most, sizeof *w.inserts);
    w.constraints = arena_array(p->repeat, most, sizeof(int));
    TRY(cells_each(x, cell_build, &w, e));
    return p->count > first ? filler_keep(&w, first, e) : 0;
}
