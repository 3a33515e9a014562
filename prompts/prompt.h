// One prompt: messages, filler and constraints put together for one model, at an exact length.
//
// How the filler's slot is found: the messages are rendered once with a marker that occurs nowhere
// in them in place of {{filler}} (and others where constraints stand in the messages themselves).
// Where the markers land in the rendered pieces, text is put in. The finished messages are then
// rendered again, and the result must equal what was put together, byte for byte and control flag
// for control flag. A template that does more with a text than carry it through (or trim it at its
// ends) is thus noticed.
//
// How the length becomes exact: template, messages, constraints and units are counted one by one
// (units once per stream), which leaves room for whole units and a closing unit of what remains.
// Then the whole prompt is tokenized and has to have that many ids; where a join made a difference,
// the room is corrected by it and the closing unit built anew. Nothing is ever cut.
#ifndef LACUNA_PROMPTS_PROMPT_H
#define LACUNA_PROMPTS_PROMPT_H

#include "prompts/closing.h"

#define PROMPT_SLOT "{{filler}}"
#define PROMPT_CHAT_ROLE "chat"  // of the message that exchanges take the place of
#define PROMPT_DEPTH_MOST 100000 // depths are thousandths of a per cent of the filler's tokens
#define PROMPT_DEPTH_NONE (-1)

enum prompt_anchor {
    PROMPT_AT_DEPTH,      // at the unit boundary nearest to `depth`
    PROMPT_BEFORE_FILLER, // a paragraph of its own before the filler
    PROMPT_AFTER_FILLER,  // a paragraph of its own behind the filler
    PROMPT_IN_SYSTEM,     // at the end of the first system message
    PROMPT_FIRST_USER,    // a paragraph of its own at the beginning of the first user message
    PROMPT_LAST_USER,     // a paragraph of its own at the end of the last user message
    PROMPT_TURN_BEGIN,    // a paragraph of its own at the beginning of messages[message]
    PROMPT_TURN_END,      // likewise at its end
    PROMPT_IN_PLACE,      // where messages[message] holds it already, at byte `at`
};

// Whether constraints at this anchor stand in the messages, outside the slot.
static inline bool prompt_in_message(enum prompt_anchor anchor) {
    return anchor >= PROMPT_IN_SYSTEM;
}

struct chat_units; // prompts/conversation.h

// A constraint's text and where it goes. Equal places keep the order of the array.
struct prompt_insert {
    const char *id;
    struct str text;
    enum prompt_anchor anchor;
    int32_t depth;      // PROMPT_AT_DEPTH: as asked
    size_t message, at; // PROMPT_IN_PLACE; `message` of PROMPT_TURN_*, whose depth is the real one
};

struct prompt_request {
    const struct provider_message *messages; // the text of exactly one holds {{filler}} once
    size_t message_count;
    struct units *units; // the repeat's filler as this model counts it
    // Instead of units: exchanges, which take the place of the message with the role "chat".
    struct chat_units *chat;
    bool whole; // there is no filler and no slot: the messages hold all
    const struct closing_words *closing;
    struct rng closing_rng;
    bool spaced; // the language puts spaces between sentences
    const struct prompt_insert *inserts;
    size_t insert_count;
    int length;            // ids of the whole prompt; -1: whatever `filler_tokens` gives
    int filler_tokens;     // with length -1: tokens of filler, closing unit included
    int32_t tolerance_ppm; // how far below `length` a prompt may stay when units are long
    // The texts of a prompt that was built for another model from equal messages, filler and
    // inserts: units and closing unit are taken from there, and no length is met. NULL: by length.
    const struct layout *like;
    bool keep_layout; // for such a prompt
};

// A run of the prompt's text. `stored`: bytes [from, to) of filler_text().
struct prompt_part {
    bool control; // written by the chat template
    struct str text;
    bool stored;
    size_t from, to;
};

struct prompt_span {
    size_t insert;                // index into the request's inserts
    uint32_t first_token, tokens; // all tokens that hold a byte of it
    size_t first_byte, bytes;     // in the rendered text, join left out
    int32_t depth;                // real depth; PROMPT_DEPTH_NONE for an anchor
    bool shares; // its first or last token also holds text around it (no clean join there)
};

struct prompt {
    struct prompt_part *parts;
    size_t part_count;
    struct str text;           // all parts joined
    struct provider_ids ids;   // count 0 without exact ids
    uint32_t tokens;           // of the whole prompt: ids.count, or an estimate
    uint32_t template_tokens;  // those that begin in text the template wrote
    uint32_t filler_tokens;    // units and closing unit
    struct prompt_span *spans; // by position
    size_t span_count;
    struct str closing;
    const struct layout *layout;     // with keep_layout; in the arena
    char text_sha256[HASH_HEX_SIZE]; // of the messages before the template: role, text, and name
                                     // and arguments of calls, a zero byte behind each
    struct str
        spelled; // a control token of the template that a text spells (it stays text), or empty
    size_t filler_bytes; // of filler_text() that the prompt uses
};

struct layout;
struct prompt_builder;
struct prompt_builder *prompt_builder_open(struct provider *p); // borrowed
void prompt_builder_close(struct prompt_builder *b);            // NULL is allowed
struct counter *prompt_builder_counter(struct prompt_builder *b);

// Everything in *out lives in `a`, in the filler's arena, or is borrowed from the request. Errors
// are ERR_CONFIG: what does not fit, cannot be hit, or cannot be found again, with counts and
// remedy.
int prompt_build(struct prompt_builder *b, const struct prompt_request *r, struct arena *a,
                 struct prompt *out, struct err *e);

#endif
