#include "prompts/closing.h"

#include <string.h>
#include <utf8proc.h>

#define WORDS_MOST 26
#define DRAWS_MOST 24

struct closing_words {
    const char *language;
    const char *between, *end; // what stands between words, and the full stop
    const char *words[WORDS_MOST];
};

static const struct closing_words lists[] = {
    {"en", " ", ".", {"again",     "slowly", "somewhere", "along",    "quietly",    "still",
                      "perhaps",   "gently", "meanwhile", "onward",   "around",     "besides",
                      "anyway",    "rather", "indeed",    "likewise", "afterwards", "nearby",
                      "alongside", "simply", "softly",    "often",    "sometimes",  "together",
                      "elsewhere", "thus"}},
    {"de", " ", ".", {"wieder",     "langsam",  "irgendwo",   "dort",     "leise",   "noch",
                      "vielleicht", "sanft",    "inzwischen", "weiter",   "ringsum", "ohnehin",
                      "eher",       "durchaus", "ebenso",     "danach",   "daneben", "einfach",
                      "oft",        "manchmal", "zusammen",   "anderswo", "so",      "da",
                      "auch",       "eben"}},
    {"fr", " ", ".", {"encore",   "lentement", "ailleurs", "doucement", "toujours",   "parfois",
                      "ensemble", "souvent",   "ensuite",  "aussi",     "ainsi",      "autour",
                      "alors",    "presque",   "plus",     "loin",      "simplement", "vraiment",
                      "enfin",    "là",        "ici",      "bien",      "puis",       "surtout",
                      "partout",  "certes"}},
    {"es", " ", ".", {"otra",     "vez",     "despacio",    "todavía",    "siempre",  "juntos",
                      "luego",    "también", "así",         "alrededor",  "entonces", "casi",
                      "lejos",    "quizás",  "simplemente", "suavemente", "mientras", "además",
                      "adelante", "cerca",   "allí",        "aquí",       "bien",     "pronto",
                      "apenas",   "a veces"}},
    {"it", " ", ".", {"ancora",  "piano",   "altrove",       "sempre",  "insieme", "spesso",
                      "poi",     "anche",   "così",          "intorno", "allora",  "quasi",
                      "lontano", "forse",   "semplicemente", "intanto", "inoltre", "avanti",
                      "vicino",  "là",      "qui",           "bene",    "presto",  "appena",
                      "pure",    "talvolta"}},
    {"pt", " ", ".", {"ainda",      "devagar",  "algures", "sempre",     "juntos", "depois",
                      "assim",      "em volta", "quase",   "longe",      "talvez", "simplesmente",
                      "suavemente", "enquanto", "adiante", "perto",      "ali",    "aqui",
                      "bem",        "logo",     "apenas",  "porventura", "mais",   "agora",
                      "outrora",    "tarde"}},
    {"nl", " ", ".", {"weer",     "langzaam", "ergens", "zacht", "nog",    "misschien",
                      "intussen", "verder",   "rondom", "toch",  "eerder", "inderdaad",
                      "daarna",   "ernaast",  "gewoon", "vaak",  "soms",   "samen",
                      "elders",   "zo",       "daar",   "ook",   "stil",   "dan",
                      "wel",      "even"}},
    {"tr", " ", ".", {"yine",        "yavaşça", "bir yerde", "sessizce", "hâlâ",    "belki",
                      "bu arada",    "ileri",   "çevrede",   "zaten",    "oldukça", "gerçekten",
                      "sonra",       "yakında", "sadece",    "sık sık",  "bazen",   "birlikte",
                      "başka yerde", "böyle",   "orada",     "da",       "burada",  "usulca",
                      "hemen",       "gene"}},
    {"ru", " ", ".", {"снова",     "медленно", "где-то", "тихо",    "ещё",    "пожалуй",
                      "между тем", "дальше",   "вокруг", "впрочем", "скорее", "действительно",
                      "потом",     "рядом",    "просто", "часто",   "иногда", "вместе",
                      "так",       "там",      "тоже",   "мягко",   "тут",    "уже",
                      "и",         "вот"}},
    {"ar", " ", ".", {"مرة",   "أخرى",   "ببطء",  "هناك", "بهدوء", "ربما",  "أيضا", "حول",  "ثم",
                      "معا",   "أحيانا", "غالبا", "هنا",  "بعيدا", "قريبا", "هكذا", "كذلك", "دائما",
                      "لاحقا", "برفق",   "في",    "ما",   "قد",    "إذن",   "حينا", "كما"}},
    {"hi", " ", "।", {"फिर", "धीरे", "कहीं",  "चुपचाप", "अभी", "शायद", "आगे", "आसपास", "वैसे",
                      "भी",  "साथ", "अक्सर", "कभी",   "यहाँ", "वहाँ",  "दूर", "पास",   "ऐसे",
                      "बस",  "तब",  "और",   "बाद",   "सदा", "तो",   "ही", "यों"}},
    {"ko", " ", ".", {"다시",   "천천히", "어딘가", "조용히", "아직",   "아마",   "한편",
                      "앞으로", "둘레",   "어쨌든", "정말",   "나중에", "가까이", "그저",
                      "자주",   "가끔",   "함께",   "또",     "거기",   "여기",   "멀리",
                      "살며시", "늘",     "그냥",   "곧",     "더"}},
    {"zh", "，", "。", {"然后", "慢慢", "继续", "安静", "仍然", "也许", "同时", "附近", "常常",
                        "一起", "这样", "那里", "这里", "远处", "轻轻", "再",   "又",   "还",
                        "依旧", "随后", "接着", "其实", "如此", "渐渐", "好像", "总是"}},
    {"ja", "、", "。", {"また",   "ゆっくり", "どこか", "静かに",   "まだ",   "たぶん", "その間",
                        "近く",   "しばしば", "一緒に", "こうして", "そこ",   "ここ",   "遠く",
                        "そっと", "やがて",   "さらに", "なお",     "やはり", "次に",   "もう",
                        "ただ",   "いつも",   "時々",   "そう",     "まず"}},
};

#define LIST_COUNT (sizeof lists / sizeof lists[0])

int closing_find(const char *language, const struct closing_words **out, struct err *e) {
    size_t n = strcspn(language, "-_");
    struct buf known = {0};
    for (size_t i = 0; i < LIST_COUNT; i++) {
        if (strlen(lists[i].language) == n && strncmp(lists[i].language, language, n) == 0) {
            *out = &lists[i];
            buf_free(&known);
            return 0;
        }
        buf_printf(&known, "%s%s", i > 0 ? ", " : "", lists[i].language);
    }
    ERR_SET(e, ERR_CONFIG,
            "prompt.filler.language: there are no closing words for '%s'; known languages: %s",
            language, known.p);
    buf_free(&known);
    return -1;
}

static void add_capital(struct buf *b, const char *word) {
    struct str s = str_from(word);
    uint32_t c;
    size_t n = utf8_decode(s, 0, &c);
    char upper[4];
    size_t bytes = utf8_encode((uint32_t)utf8proc_toupper((utf8proc_int32_t)c), upper);
    buf_add(b, upper, bytes);
    buf_add_str(b, str_slice(s, n, s.n));
}

// What a closing unit is built for.
struct place {
    struct counter *c;
    const struct closing_words *words;
    struct str before, lead, tail; // with what stands around the words
    bool joined;                   // nothing parts the words from the text before
    uint32_t tokens;
};

static struct str joined(struct arena *a, struct str x, struct str y) {
    if (x.n == 0) return y;
    return y.n == 0 ? x : str_from(arena_printf(a, STR_FMT STR_FMT, STR_ARG(x), STR_ARG(y)));
}

// What one closing unit is built from: the costs of the words at each position, and which sums
// words in the middle can make.
struct costs {
    uint32_t first[WORDS_MOST], middle[WORDS_MOST];
    int32_t end;
    bool reach[CLOSING_TOKENS_MOST + 1];
};

static int costs_measure(const struct place *at, struct costs *out, struct err *e) {
    const struct closing_words *w = at->words;
    struct str between = str_from(w->between), none = STR("");
    struct buf b = {0};
    int result = -1;
    for (int i = 0; i < WORDS_MOST; i++) {
        buf_clear(&b);
        add_capital(&b, w->words[i]);
        if (counter_segment(at->c, at->lead, buf_str(&b), none, &out->first[i], e) != 0) goto done;
        if (counter_segment(at->c, between, str_from(w->words[i]), none, &out->middle[i], e) != 0)
            goto done;
    }
    // The full stop's cost (with what follows it) is what it adds to a word.
    buf_clear(&b);
    buf_printf(&b, "%s%s", w->words[0], w->end);
    uint32_t with;
    if (counter_segment(at->c, between, buf_str(&b), at->tail, &with, e) != 0) goto done;
    out->end = (int32_t)with - (int32_t)out->middle[0];
    memset(out->reach, 0, sizeof out->reach);
    out->reach[0] = true;
    for (uint32_t t = 1; t <= CLOSING_TOKENS_MOST; t++)
        for (int i = 0; i < WORDS_MOST && !out->reach[t]; i++)
            out->reach[t] =
                out->middle[i] > 0 && out->middle[i] <= t && out->reach[t - out->middle[i]];
    result = 0;
done:
    buf_free(&b);
    return result;
}

static bool reachable(const struct costs *k, int64_t rest) {
    return rest >= 0 && rest <= CLOSING_TOKENS_MOST && k->reach[rest];
}

// A word among those with `fits`, uniformly; `avoid` only when it is the only one. -1: none.
static int word_pick(struct rng *r, const bool fits[WORDS_MOST], int avoid) {
    int list[WORDS_MOST], count = 0;
    for (int i = 0; i < WORDS_MOST; i++)
        if (fits[i] && i != avoid) list[count++] = i;
    if (count == 0) return avoid >= 0 && fits[avoid] ? avoid : -1;
    return list[rng_below(r, (uint64_t)count)];
}

// A sentence whose costs add up to `tokens`; false when no choice of words does.
static bool sentence_draw(const struct closing_words *w, const struct costs *k, struct rng *r,
                          int64_t tokens, struct buf *out) {
    bool fits[WORDS_MOST];
    for (int i = 0; i < WORDS_MOST; i++) fits[i] = reachable(k, tokens - k->end - k->first[i]);
    int word = word_pick(r, fits, -1);
    if (word < 0) return false;
    buf_clear(out);
    add_capital(out, w->words[word]);
    for (int64_t rest = tokens - k->end - k->first[word]; rest > 0; rest -= k->middle[word]) {
        for (int i = 0; i < WORDS_MOST; i++)
            fits[i] = k->middle[i] > 0 && reachable(k, rest - k->middle[i]);
        word = word_pick(r, fits, word);
        buf_add_c(out, w->between);
        buf_add_c(out, w->words[word]);
    }
    buf_add_c(out, w->end);
    return true;
}

// The count of lead + text + tail, and whether it is the one wanted with a clean join to what
// stands before.
static int try_text(const struct place *at, struct str text, uint32_t *count, bool *found,
                    struct err *e) {
    TRY(counter_segment(at->c, at->lead, text, at->tail, count, e));
    *found = *count == at->tokens;
    if (*found && at->joined) TRY(counter_clean(at->c, at->before, text, found, e));
    return 0;
}

// Sentences are drawn until one really has the count: costs need not add up at every join.
static int sentence_build(const struct place *at, struct rng *r, struct buf *text, bool *found,
                          struct err *e) {
    struct costs k;
    TRY(costs_measure(at, &k, e));
    int64_t aim = at->tokens;
    for (int draw = 0; draw < DRAWS_MOST && !*found; draw++) {
        if (!sentence_draw(at->words, &k, r, aim, text)) {
            if (aim == at->tokens) return 0;
            aim = at->tokens;
            continue;
        }
        uint32_t count;
        TRY(try_text(at, buf_str(text), &count, found, e));
        aim += (int64_t)at->tokens - count;
    }
    return 0;
}

// A bare word, with or without capital and full stop.
static int word_build(const struct place *at, struct buf *text, bool *found, struct err *e) {
    for (int form = 0; form < 4; form++)
        for (int i = 0; i < WORDS_MOST; i++) {
            uint32_t count;
            buf_clear(text);
            if (form % 2 == 0)
                add_capital(text, at->words->words[i]);
            else
                buf_add_c(text, at->words->words[i]);
            if (form < 2) buf_add_c(text, at->words->end);
            TRY(try_text(at, buf_str(text), &count, found, e));
            if (*found) return 0;
        }
    return 0;
}

// Marks in a row, as a break between two parts of a text is often set.
static int marks_build(const struct place *at, struct buf *text, bool *found, struct err *e) {
    static const char *const marks[] = {"*", "-", "~", "…", "."};
    for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++)
        for (int spaced = 1; spaced >= 0; spaced--) {
            buf_clear(text);
            for (uint32_t i = 0; i < at->tokens; i++) {
                uint32_t count;
                if (i > 0 && spaced) buf_add_char(text, ' ');
                buf_add_c(text, marks[m]);
                TRY(try_text(at, buf_str(text), &count, found, e));
                if (*found) return 0;
            }
        }
    return 0;
}

int closing_build(struct counter *c, const struct closing_words *words, struct rng rng,
                  struct str before, struct str lead, struct str tail, uint32_t tokens,
                  struct filler_frame frame, struct arena *a, struct str *out, struct err *e) {
    const struct place at = {.c = c,
                             .words = words,
                             .before = before,
                             .lead = joined(a, lead, frame.open),
                             .tail = joined(a, frame.close, tail),
                             .joined = lead.n + frame.open.n == 0,
                             .tokens = tokens};
    struct buf text = {0};
    bool found = false;
    int result = -1;
    *out = STR("");
    if (sentence_build(&at, &rng, &text, &found, e) != 0) goto done;
    if (!found && word_build(&at, &text, &found, e) != 0) goto done;
    if (!found && marks_build(&at, &text, &found, e) != 0) goto done;
    if (found) *out = joined(a, frame.open, joined(a, str_copy(a, buf_str(&text)), frame.close));
    result = 0;
done:
    buf_free(&text);
    return result;
}
