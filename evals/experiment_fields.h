// The one table of what an experiment file may hold. It drives validation, resolved.json, the JSON
// schema and `lacuna new`; a field that is not here does not exist.
#ifndef LACUNA_EVALS_EXPERIMENT_FIELDS_H
#define LACUNA_EVALS_EXPERIMENT_FIELDS_H

#include "evals/experiment_node.h"

enum field_type {
    FIELD_INTEGER,
    FIELD_DECIMAL, // up to six decimals; a string in resolved.json ("0.7")
    FIELD_SHARE,   // "2.5%" (or 0.025); a string in per cent in resolved.json
    FIELD_PLACE,   // a depth or an anchor, or several at once
    FIELD_BOOLEAN,
    FIELD_NAME,      // an id: a letter or digit, then letters, digits, '.', '_', '-', ':'
    FIELD_WORD,      // one of `words`
    FIELD_TEXT,      // goes to the model or comes from it, byte for byte
    FIELD_TEXT_FILE, // a file whose bytes stand for the text of the field before it
    FIELD_STRING,    // a text that no model sees: a name, an address; never empty
    FIELD_PATTERN,   // a PCRE2 pattern
    FIELD_PATH,      // relative to the experiment file
    FIELD_OBJECT,    // a mapping with `fields`
    FIELD_JSON,      // a mapping of any JSON values; its JSON text in resolved.json
};
enum field_shape {
    SHAPE_ONE,
    SHAPE_LIST, // at least `items_least` items
    SHAPE_MAP,  // names of the user's choice to values
};

#define FIELD_REQUIRED 1u
#define FIELD_OPTIONAL 2u // an object that is left out when it is not given, instead of filled in
#define FIELD_STORED 4u   // in resolved.json only: comes from the command line
#define FIELD_DEPTH 16u   // FIELD_PLACE: depths only
#define FIELD_ANCHOR 32u  // FIELD_PLACE: anchors only
#define FIELD_ABSENT 64u  // FIELD_PLACE: or absent
#define FIELD_ORDER 128u  // FIELD_PLACE: or order-N of a scattered row
#define FIELD_AGAIN 256u  // FIELD_OBJECT: a table that this field is below of already
#define FIELD_NAME_MOST 64
#define FIELD_OBJECTS_MOST 256 // items of a list of mappings
#define FIELD_ITEMS_MOST 4096  // items of any other list

struct field {
    const char *key; // NULL ends a table
    enum field_type type;
    enum field_shape shape;
    unsigned flags;
    const char
        *fallback; // the default in words; of a list: words parted by spaces, "" an empty list
    int64_t least, most;        // FIELD_INTEGER; FIELD_DECIMAL in millionths
    int items_least;            // SHAPE_LIST
    const char *const *instead; // keys of which one may stand for a required one; NULL ends
    const char *with;           // only beside this key, and only then filled in; NULL: always
    const char *const *words;   // FIELD_WORD; NULL ends
    const struct field *fields;
    const char *shared;  // a table that stands in several places: its name in the schema
    const char *help;    // one line for people: comment in `lacuna new`, description in the schema
    const char *example; // YAML that `lacuna new` writes; NULL: the default, commented out
};

extern const struct field experiment_fields[]; // the top level
// Its parts, one file a topic (experiment_fields_*.c).
extern const struct field model_fields[], generation_fields[];
extern const struct field prompt_fields[], cases_fields[];
extern const struct field variable_fields[], constraint_fields[];
extern const struct field check_fields[];
extern const struct field placement_fields[], length_fields[];
extern const struct field tolerate_fields[], primary_fields[], gate_fields[];

// Checks the tree against the table and gives the same with every default filled in, keys in table
// order. Complaints go to `d`; what is wrong or missing is absent (null inside a list). Texts that
// stand in files are read from `folder`. `stored`: the tree comes from resolved.json. The caller
// owns the result.
json_t *fields_resolve(const struct node *root, const char *folder, bool stored,
                       struct diagnostics *d);

#endif
