// Prose: a small grammar of everyday English. The words are chosen to stay clear of what
// constraints are about: no digits or number words, no weekdays, months or names, no colours, no
// business words.
#include "prompts/filler_impl.h"

#include <ctype.h>
#include <string.h>

static const char *const who[] = {
    "the baker",
    "a neighbour",
    "the gardener",
    "the old sailor",
    "a shepherd",
    "the miller",
    "the librarian",
    "a young painter",
    "the ferryman",
    "the carpenter",
    "my aunt",
    "the schoolteacher",
    "a passing cyclist",
    "the beekeeper",
    "the watchmaker",
    "a quiet traveller",
    "the fisherman",
    "our landlady",
    "the choir master",
    "a tired student",
    "the potter",
    "the postman",
    "a local farmer",
    "the night nurse",
    "the bookbinder",
    "my grandmother",
    "the cook",
    "a travelling actor",
    "the lighthouse keeper",
    "the tailor",
    "the piano tuner",
    "an old friend",
    "the glassblower",
    "a kind stranger",
    "the woodcutter",
    "the shopkeeper",
    "the violin maker",
    "a retired captain",
    "the cheesemaker",
    "the stonemason",
};

static const char *const did[] = {
    "swept the steps",         "mended a basket",        "fed the hens",
    "read an old letter",      "watched the boats",      "boiled some water",
    "carried a ladder",        "folded the blankets",    "picked a few pears",
    "hummed a slow tune",      "polished the windows",   "drew a map of the valley",
    "looked for a lost glove", "sharpened the tools",    "stacked the firewood",
    "told a long story",       "listened to the rain",   "planted some onions",
    "washed the cups",         "closed the shutters",    "shared a loaf of bread",
    "fixed the garden gate",   "tuned an old radio",     "wrote in a diary",
    "hung up the washing",     "sorted the buttons",     "peeled a pile of apples",
    "painted the fence",       "walked the dog",         "stirred a pot of soup",
    "waited for the ferry",    "chatted with a friend",  "knitted a warm scarf",
    "lit a small fire",        "leaned on the railing",  "slept in a chair",
    "counted the sheep",       "gathered some herbs",    "laughed at a joke",
    "rolled out the dough",    "put away the dishes",    "repaired a clock",
    "tasted the jam",          "searched for mushrooms", "cleaned a pair of boots",
    "played the accordion",    "built a little shed",    "filled the kettle",
    "rowed across the bay",    "patched a torn sail",
};

static const char *const place[] = {
    "behind the mill",         "near the harbour",     "by the river",
    "in the orchard",          "under the old bridge", "in the kitchen",
    "on the hillside",         "beside the well",      "at the edge of the wood",
    "in the back garden",      "along the canal",      "outside the bakery",
    "in the village hall",     "on the top floor",     "next to the chapel",
    "at the end of the lane",  "in the reading room",  "on the wooden pier",
    "across the meadow",       "in the attic",         "beneath the chestnut trees",
    "by the kitchen stove",    "in a quiet corner",    "below the castle",
    "on the stone wall",       "between the barns",    "in the narrow street",
    "at the foot of the hill", "over by the pond",     "in the workshop",
    "near the old quarry",     "on the veranda",       "around the fountain",
    "in the greenhouse",       "behind the theatre",   "at the crossroads",
};

static const char *const when[] = {
    "in the morning",
    "after lunch",
    "before the rain came",
    "late in the evening",
    "at dawn",
    "toward sunset",
    "during the storm",
    "as usual",
    "for a while",
    "after the concert",
    "before breakfast",
    "in early spring",
    "when the wind dropped",
    "once the fog lifted",
    "all through the winter",
    "after a long walk",
    "while the tea cooled",
    "in the last light",
    "around noon",
    "on the way home",
    "soon after supper",
    "at harvest time",
    "most evenings",
    "from time to time",
    "in the warm season",
    "as the bells rang",
    "until it grew dark",
    "before the guests came",
    "after a short rest",
    "in the cool shade",
};

static const char *const quality[] = {
    "narrow", "dusty",  "wooden", "heavy",   "small",    "quiet",   "crooked", "shiny",
    "warm",   "damp",   "simple", "broken",  "handsome", "curious", "smooth",  "rough",
    "worn",   "tidy",   "gentle", "painted", "pleasant", "rusty",   "hollow",  "soft",
    "bright", "sturdy", "faded",  "strange", "lovely",   "modest",  "cold",    "plain",
};

static const char *const thing[] = {
    "table",       "lantern", "bench",  "kettle", "umbrella", "blanket",  "boat",     "ladder",
    "basket",      "drum",    "mirror", "barrel", "carpet",   "cupboard", "crate",    "compass",
    "cart",        "teapot",  "bucket", "jug",    "hammock",  "piano",    "saddle",   "curtain",
    "wheel",       "bell",    "chair",  "shelf",  "trunk",    "pillow",   "violin",   "suitcase",
    "wheelbarrow", "stove",   "stool",  "drawer", "bowl",     "hat",      "carriage", "broom",
};

static const char *const things[] = {
    "apples",  "candles", "blankets", "pebbles",  "baskets", "feathers", "windows", "roses",
    "ribbons", "bottles", "pears",    "cushions", "shells",  "carrots",  "ropes",   "spoons",
    "chairs",  "barrels", "gloves",   "walnuts",  "tiles",   "lanterns", "plates",  "swallows",
    "puddles", "bricks",  "cherries", "boots",    "ducks",   "clouds",   "leaves",  "tools",
};

static const char *const scene[] = {
    "a soft wind moved the grass",    "the fog stayed low over the fields",
    "the clouds drifted east",        "a thin mist lay on the water",
    "the air smelled of hay",         "the river ran high and brown",
    "the sun warmed the stones",      "snow covered the rooftops",
    "the leaves had begun to turn",   "a light rain tapped on the glass",
    "the swallows flew low",          "the stars came out slowly",
    "smoke rose from the chimneys",   "the frost made the lane slippery",
    "the tide went out early",        "thunder rolled behind the hills",
    "the crickets sang in the hedge", "a dog barked far away",
    "the church clock struck",        "the shadows grew long",
};

// W who, w who else, D did, d did too, P place, T when, A quality, a another, N thing, n another
// thing, S things, s other things, V scene. All other characters stand for themselves.
static const char *const patterns[] = {
    "W D P.",
    "W D P, and w d.",
    "W D T.",
    "W D while w d.",
    "W D, then d.",
    "W D because the N was A.",
    "W D and thought about the A N.",
    "W often sat on the A N P.",
    "W had left the A N P.",
    "W found some A S P.",
    "W kept the S in a A N.",
    "W liked the A N, though w did not.",
    "W said that the N looked A.",
    "W asked whether the S were still A.",
    "W had never seen such A S.",
    "W bought a A N and a few S.",
    "W moved the A N, so w d.",
    "W came back with S and a A N.",
    "T, W D.",
    "T, V.",
    "T, the N P seemed A.",
    "T, the S P looked A.",
    "P, W D.",
    "P, V.",
    "P stood a A N with A S.",
    "V, and W D.",
    "V while W D.",
    "V, but the N stayed A.",
    "The N P was A and rather a.",
    "The A N stood P.",
    "The A N belonged to W.",
    "The A S lay beside the n.",
    "The S were A, and the s were a.",
    "There was a A N P.",
    "There were A S P, and W D.",
    "It was A P, and W D.",
    "Nobody minded that the N was A.",
    "Somebody had put A S on the N.",
    "Everyone agreed that the A N was worth keeping.",
    "Most of the S were A, so W D.",
    "Perhaps the A N had once belonged to W.",
    "Beyond the A N there were only S and s.",
    "Nothing was heard P but the A N.",
    "Although the N was A, W D.",
    "As soon as V, W D.",
    "Whenever W D, w d.",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *word_draw(struct rng *r, const char *const *words, size_t count) {
    return words[rng_below(r, count)];
}

// A word of the list other than `first` (which may be NULL).
static const char *word_other(struct rng *r, const char *const *words, size_t count,
                              const char *first) {
    const char *w = word_draw(r, words, count);
    while (w == first) w = word_draw(r, words, count);
    return w;
}

// The words of the sentence being drawn, so that the second of a sort differs from the first.
struct drawn {
    const char *who, *did, *quality, *thing, *things;
};

#define DRAW(field) (d->field = word_other(r, field, COUNT(field), d->field))

static const char *slot_draw(struct rng *r, char slot, struct drawn *d) {
    switch (slot) {
    case 'W':
    case 'w': return DRAW(who);
    case 'D':
    case 'd': return DRAW(did);
    case 'A':
    case 'a': return DRAW(quality);
    case 'N':
    case 'n': return DRAW(thing);
    case 'S':
    case 's': return DRAW(things);
    case 'P': return word_draw(r, place, COUNT(place));
    case 'T': return word_draw(r, when, COUNT(when));
    case 'V': return word_draw(r, scene, COUNT(scene));
    default: return NULL;
    }
}

static void sentence_draw(struct rng *r, struct buf *out) {
    const char *pattern = word_draw(r, patterns, COUNT(patterns));
    struct drawn d = {0};
    buf_clear(out);
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        // A letter is a slot when no letter is beside it; the article is written "a " before a
        // slot.
        bool alone = (i == 0 || !isalpha((unsigned char)pattern[i - 1])) &&
                     !isalpha((unsigned char)pattern[i + 1]);
        bool article = pattern[i] == 'a' && pattern[i + 1] == ' ';
        const char *word = alone && !article ? slot_draw(r, pattern[i], &d) : NULL;
        if (word != NULL)
            buf_add_c(out, word);
        else
            buf_add_char(out, pattern[i]);
    }
    out->p[0] = (char)toupper((unsigned char)out->p[0]);
}

static int prose_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)end;
    (void)e;
    struct seen *seen = f->state;
    struct buf sentence = {0};
    struct str s;
    do {
        sentence_draw(&f->rng, &sentence);
        s = buf_str(&sentence);
    } while (s.n + f->lead.n > FILLER_PROSE_UNIT_BYTES || !seen_add(seen, s, f->arena));
    out->text = str_copy(f->arena, s);
    buf_free(&sentence);
    return 0;
}

struct filler *filler_prose_open(struct rng rng, struct arena *a) {
    struct filler *f = filler_create(rng, a, arena_alloc(a, sizeof(struct seen)), prose_next);
    f->lead = STR(" ");
    return f;
}
