#include "evals/words.h"

#include <string.h>

static const char *const adjectives[] = {
    "agile",   "amber",    "ancient",  "arctic",  "atomic",   "basic",     "blank",    "blithe",
    "bold",    "bony",     "breezy",   "careful", "central",  "chilly",    "classic",  "cobalt",
    "compact", "cosmic",   "creamy",   "curly",   "dainty",   "dapper",    "decent",   "digital",
    "dizzy",   "drowsy",   "elastic",  "elegant", "fabled",   "feral",     "festive",  "fluent",
    "frosty",  "fuzzy",    "gaudy",    "gentle",  "glassy",   "gleaming",  "graceful", "grainy",
    "grumpy",  "handy",    "hasty",    "hearty",  "icy",      "inland",    "jagged",   "jolly",
    "jovial",  "knotty",   "lanky",    "lavish",  "level",    "limber",    "lofty",    "loyal",
    "lucid",   "lunar",    "magnetic", "modern",  "muted",    "mystic",    "nimble",   "nomadic",
    "oblong",  "orderly",  "ornate",   "pastel",  "peppery",  "placid",    "plucky",   "polar",
    "prickly", "primal",   "rustic",   "satin",   "scenic",   "shaggy",    "sleek",    "snowy",
    "sober",   "spicy",    "stately",  "stellar", "stubborn", "supple",    "tangy",    "tender",
    "tidal",   "tranquil", "tropical", "velvety", "vivid",    "wandering", "wiry",     "zesty",
};

static const char *const nouns[] = {
    "almond",  "antler",  "apron",    "atlas",    "balcony", "balloon", "beaver",   "berry",
    "biscuit", "blender", "bobbin",   "boulder",  "bramble", "bugle",   "cactus",   "camera",
    "canoe",   "caravan", "cashew",   "castle",   "chisel",  "cinder",  "comet",    "cricket",
    "cushion", "dagger",  "daisy",    "dinghy",   "donkey",  "dragon",  "easel",    "engine",
    "fern",    "ferret",  "fountain", "freckle",  "gadget",  "galaxy",  "garden",   "geyser",
    "ginger",  "glacier", "goose",    "granite",  "guitar",  "hatchet", "hedgehog", "helmet",
    "iguana",  "insect",  "jigsaw",   "jungle",   "kayak",   "kiosk",   "kitten",   "lantern",
    "lattice", "lobster", "locket",   "mammoth",  "mantle",  "mirror",  "monsoon",  "mosaic",
    "muffin",  "napkin",  "nickel",   "nozzle",   "oasis",   "olive",   "orchid",   "otter",
    "paddle",  "panther", "papaya",   "pebble",   "pepper",  "pilot",   "pirate",   "planet",
    "pretzel", "pulley",  "puzzle",   "rocket",   "rudder",  "sapling", "satchel",  "scarab",
    "shovel",  "sickle",  "socket",   "sparkler", "tadpole", "teacup",  "thimble",  "trumpet",
    "tulip",   "turtle",  "vessel",   "volcano",  "wagon",   "whistle", "yogurt",   "zipper",
};

static const char *const *list_of(enum words_part part, size_t *count) {
    *count = part == WORDS_ADJECTIVE ? sizeof adjectives / sizeof *adjectives
                                     : sizeof nouns / sizeof *nouns;
    return part == WORDS_ADJECTIVE ? adjectives : nouns;
}

const char *words_draw(enum words_part part, struct rng *r) {
    size_t count;
    const char *const *list = list_of(part, &count);
    return list[rng_below(r, count)];
}

size_t words_prefix(enum words_part part, const uint32_t *points, size_t count) {
    size_t words, longest = 0;
    const char *const *list = list_of(part, &words);
    for (size_t i = 0; i < words; i++) {
        size_t n = strlen(list[i]), k = 0;
        while (k < n && k < count && points[k] == (unsigned char)list[i][k]) k++;
        if (k == n && n > longest) longest = n;
    }
    return longest;
}
