#include "engine/base/file.h"
#include "reports/record_inputs.h"
#include "reports/record_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FLUSH_BYTES ((size_t)1 << 20)
#define LEVEL 6

struct record_inputs_writer {
    struct arena *arena;           // hashes, for the two maps
    struct record_map *fillers;    // to the filler's bytes
    struct record_map *prompts;    // to 0
    struct file_log *pack, *index; // frames are synced before the plan is
    struct buf frames, lines;      // not yet written
    int64_t offset;                // where the next frame begins
    ZSTD_CCtx *zstd;
};

int record_inputs_writer_open(const char *folder, struct record_inputs_writer **out,
                              struct err *e) {
    struct record_inputs_writer *w = calloc(1, sizeof *w);
    if (w == NULL) mem_exhausted("the inputs of a record", sizeof *w);
    w->arena = arena_create("inputs");
    w->fillers = record_map_open();
    w->prompts = record_map_open();
    w->zstd = ZSTD_createCCtx();
    if (w->zstd == NULL) mem_exhausted("a zstd context", 0);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
    const char *inputs = path_join(w->arena, folder, "inputs");
    int result = file_make_directory(inputs, e);
    if (result == 0) result = file_log_open(path_join(w->arena, inputs, "pack.zst"), &w->pack, e);
    if (result == 0)
        result = file_log_open(path_join(w->arena, inputs, "index.jsonl"), &w->index, e);
    if (result == 0)
        *out = w;
    else
        record_inputs_writer_close(w);
    return result;
}

void record_inputs_writer_close(struct record_inputs_writer *w) {
    if (w == NULL) return;
    file_log_close(w->pack);
    file_log_close(w->index);
    record_map_close(w->fillers);
    record_map_close(w->prompts);
    ZSTD_freeCCtx(w->zstd);
    buf_free(&w->frames);
    buf_free(&w->lines);
    arena_destroy(w->arena);
    free(w);
}

static int flush(struct record_inputs_writer *w, bool sync, struct err *e) {
    if (w->frames.n > 0 || sync) TRY(file_log_append(w->pack, buf_str(&w->frames), sync, e));
    if (w->lines.n > 0 || sync) TRY(file_log_append(w->index, buf_str(&w->lines), sync, e));
    buf_clear(&w->frames);
    buf_clear(&w->lines);
    return 0;
}

int record_inputs_sync(struct record_inputs_writer *w, struct err *e) {
    return flush(w, true, e);
}

// Compresses one content into a frame of its own and notes it in the index.
static int add_frame(struct record_inputs_writer *w, const char *kind, const char *sha256,
                     struct str content, struct err *e) {
    if (content.n > RECORD_INPUT_BYTES_MOST)
        FAIL(e, ERR_CONFIG, "a %s has %zu bytes; the record holds at most %zu", kind, content.n,
             RECORD_INPUT_BYTES_MOST);
    size_t most = ZSTD_compressBound(content.n);
    buf_reserve(&w->frames, most);
    size_t n = ZSTD_compress2(w->zstd, w->frames.p + w->frames.n, most, content.p, content.n);
    if (ZSTD_isError(n))
        FAIL(e, ERR_IO, "a %s of %zu bytes cannot be compressed: %s", kind, content.n,
             ZSTD_getErrorName(n));
    w->frames.n += n;
    buf_printf(&w->lines,
               "{\"sha256\":\"%s\",\"kind\":\"%s\",\"offset\":%lld,\"bytes\":%zu,"
               "\"content_bytes\":%zu}\n",
               sha256, kind, (long long)w->offset, n, content.n);
    w->offset += (int64_t)n;
    return w->frames.n < FLUSH_BYTES ? 0 : flush(w, false, e);
}

int record_inputs_add_filler(struct record_inputs_writer *w, struct str text,
                             char sha256[HASH_HEX_SIZE], struct err *e) {
    hash_bytes(text.p, text.n, sha256);
    if (record_map_get(w->fillers, sha256) >= 0) return 0;
    record_map_put(w->fillers, arena_strdup(w->arena, sha256), (int64_t)text.n);
    return add_frame(w, "filler", sha256, text, e);
}

static int write_parts(struct record_inputs_writer *w, const struct record_part *parts,
                       size_t count, struct buf *out, struct err *e) {
    json_t *list = json_array();
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct record_part *p = &parts[i];
        json_t *o = json_object();
        if (p->control) json_put(o, "control", json_true());
        if (p->filler_sha256 == NULL) {
            json_put_bytes(o, "text", p->text);
        } else {
            int64_t bytes = record_map_get(w->fillers, p->filler_sha256);
            if (bytes < 0 || p->from > p->to || p->to > (size_t)bytes)
                result = ERR_SET(e, ERR_RECORD,
                                 "a prompt refers to bytes %zu to %zu of the filler %s, which "
                                 "the record does not hold",
                                 p->from, p->to, p->filler_sha256);
            json_put(o, "filler", json_text_c(p->filler_sha256));
            json_put(o, "from", json_integer((json_int_t)p->from));
            json_put(o, "to", json_integer((json_int_t)p->to));
        }
        json_array_append_new(list, o);
    }
    json_t *root = json_object();
    json_put(root, "parts", list);
    if (result == 0) json_compact(root, out);
    json_decref(root);
    return result;
}

int record_inputs_add_prompt(struct record_inputs_writer *w, const struct record_part *parts,
                             size_t count, char sha256[HASH_HEX_SIZE], struct err *e) {
    struct hash *h = hash_open();
    for (size_t i = 0; i < count; i++) hash_add(h, parts[i].text.p, parts[i].text.n);
    hash_close(h, sha256);
    if (record_map_get(w->prompts, sha256) >= 0) return 0;
    struct buf content = {0};
    int result = write_parts(w, parts, count, &content, e);
    if (result == 0) result = add_frame(w, "prompt", sha256, buf_str(&content), e);
    if (result == 0) record_map_put(w->prompts, arena_strdup(w->arena, sha256), 0);
    buf_free(&content);
    return result;
}
