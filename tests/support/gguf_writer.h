// Writes small GGUF files for tests: well-formed ones by these functions, damaged ones by changing
// the bytes afterwards. And whole tiny Llama models with seeded random weights.
#ifndef LACUNA_TESTS_GGUF_WRITER_H
#define LACUNA_TESTS_GGUF_WRITER_H

#include "engine/base/str.h"
#include "engine/gguf.h"

struct gguf_writer {
    uint32_t version, alignment; // 3 and 32 unless changed before the first tensor
    struct buf keys, records, data;
    uint64_t key_count, tensor_count;
};

struct gguf_writer gguf_writer_open(void);
void gguf_writer_free(struct gguf_writer *w);

// Little-endian primitives, for hand-made damage.
void put_number(struct buf *b, uint64_t value, size_t bytes);
void put_string(struct buf *b, struct str s);

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_f32(struct gguf_writer *w, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_string(struct gguf_writer *w, const char *key, struct str value);
void gguf_writer_strings(struct gguf_writer *w, const char *key, const struct str *s, size_t count);
void gguf_writer_i32s(struct gguf_writer *w, const char *key, const int32_t *values, size_t count);
// Any type and any bytes behind it.
void gguf_writer_raw(struct gguf_writer *w, const char *key, uint32_t type, struct str value);

// A tensor of `dims` dimensions in the given format, quantized from fp32 by simple rounding.
void gguf_writer_tensor(struct gguf_writer *w, const char *name, enum tensor_type type,
                        uint32_t dims, const uint64_t *dim, const float *values);
// A tensor record as told, true or not, with these bytes as its data.
void gguf_writer_tensor_raw(struct gguf_writer *w, const char *name, uint32_t type, uint32_t dims,
                            const uint64_t *dim, struct str data);

void gguf_writer_bytes(const struct gguf_writer *w, struct buf *out); // the whole file
void gguf_writer_save(const struct gguf_writer *w, const char *path); // fails the test on error
void test_write_file(const char *path, struct str bytes);             // likewise

// n values (a multiple of the block) in the given format: tensor_dequantize's inverse up to
// rounding.
void tensor_quantize(enum tensor_type type, const float *src, size_t n, struct buf *out);

// Fields that are 0 take the default in brackets. Weights are random, never zero, of a size that
// keeps activations near 1. Tokens: 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (control), 3..258
// the bytes, then merges. The template is plain ChatML. `type` applies to the matrices and the
// embedding; norms and biases are F32. Block formats need D, F and H x E to be multiples of the
// block.
struct tiny_model_options {
    uint32_t L, D, H, G, E, F, V; // [2, 64, 4, 2, D/H, 128, 320]; V >= 259
    uint32_t context;             // [4096]
    uint64_t seed;                // [1]
    enum tensor_type type;        // [F32]
    enum tensor_type head_type;   // of an own head [F32]
    bool own_head;                // false: tied
    bool biases;                  // on q, k and v
    bool llama3_scaling;          // rope_freqs.weight as Llama 3.1 has it
    float rope_base;              // [10000]
    uint32_t window;              // [0]
    bool adds_bos;                // the file asks for a start token
    const char *name;             // ["tiny"]
    const char *pre;              // ["smollm"]
    const char *chat_template;    // [ChatML]; "" leaves the key out
};
void tiny_model_write(const char *path, const struct tiny_model_options *o);
// The keys of a tiny model's tokenizer alone, V tokens.
void tiny_tokenizer_write(struct gguf_writer *w, const struct tiny_model_options *o);
// Overwrites one element of an F32 tensor in the file.
void tiny_model_patch(const char *path, const char *tensor, uint64_t element, float value);
// Everything of a tiny model, to be changed before it is saved.
struct gguf_writer tiny_model_open(const struct tiny_model_options *o);

#endif
