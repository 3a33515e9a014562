// Stored prompts and fillers: one pack of zstd frames (inputs/pack.zst) and an index with one line
// a frame (inputs/index.jsonl: sha256, kind, offset, bytes, content_bytes). A filler's content is
// its text. A prompt's content is a JSON list of parts, literal text or a range of a filler, while
// its hash is that of the whole text. The pack is a plain concatenation of frames, so `zstd -dc`
// reads it too.
#ifndef LACUNA_REPORTS_RECORD_INPUTS_H
#define LACUNA_REPORTS_RECORD_INPUTS_H

#include "reports/record.h"

#define RECORD_INPUT_BYTES_MOST ((size_t)1 << 30) // of one filler or prompt

struct record_inputs_writer;
int record_inputs_writer_open(const char *folder, struct record_inputs_writer **out, struct err *e);
void record_inputs_writer_close(struct record_inputs_writer *w); // NULL is allowed
int record_inputs_add_filler(struct record_inputs_writer *w, struct str text,
                             char sha256[HASH_HEX_SIZE], struct err *e);
int record_inputs_add_prompt(struct record_inputs_writer *w, const struct record_part *parts,
                             size_t count, char sha256[HASH_HEX_SIZE], struct err *e);
int record_inputs_sync(struct record_inputs_writer *w, struct err *e);

struct record_inputs;
int record_inputs_open(const char *folder, struct record_inputs **out, struct err *e);
void record_inputs_close(struct record_inputs *in); // NULL is allowed
// The filler's text is borrowed until the next call or close.
int record_inputs_filler(struct record_inputs *in, const char *sha256, struct str *text,
                         struct err *e);
int record_inputs_prompt(struct record_inputs *in, const char *sha256, struct arena *a,
                         struct record_part **parts, size_t *count, struct str *text,
                         struct err *e);
// Fillers in the order they were stored; NULL past the end.
const char *record_inputs_filler_at(const struct record_inputs *in, size_t index);

#endif
