#include "reports/record_inputs.h"

#include "engine/base/file.h"
#include "reports/record_line.h"
#include "reports/record_map.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

// ---- writing -----------------------------------------------------------------------------------

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

static int flush_frames(struct record_inputs_writer *w, bool sync, struct err *e) {
    if (w->frames.n > 0 || sync) TRY(file_log_append(w->pack, buf_str(&w->frames), sync, e));
    if (w->lines.n > 0 || sync) TRY(file_log_append(w->index, buf_str(&w->lines), sync, e));
    buf_clear(&w->frames);
    buf_clear(&w->lines);
    return 0;
}

int record_inputs_sync(struct record_inputs_writer *w, struct err *e) {
    return flush_frames(w, true, e);
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
    return w->frames.n < FLUSH_BYTES ? 0 : flush_frames(w, false, e);
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

// ---- reading: the index ------------------------------------------------------------------------

struct frame {
    char sha256[HASH_HEX_SIZE];
    size_t offset, bytes, content_bytes;
};

#define CACHED 4 // neighbours in plan order use the same few fillers
struct cached {
    size_t frame; // index + 1; 0: free
    uint64_t used;
    struct buf text;
};

struct record_inputs {
    struct arena *arena;
    char *pack_path, *index_path;
    struct file_map pack, index;
    struct frame *frames;
    size_t frame_count;
    size_t *fillers; // frame numbers of fillers, in the order they were stored
    size_t filler_count;
    struct record_map *filler_frames, *prompt_frames;
    struct cached cache[CACHED];
    uint64_t clock;
    ZSTD_DCtx *zstd;
};

static int read_index_line(struct record_inputs *in, struct str line, const char *where,
                           struct frame *out, bool *filler, struct err *e) {
    json_t *o;
    TRY(json_parse(line, where, &o, e));
    const char *kind;
    int64_t offset, bytes, content_bytes;
    int64_t pack_bytes = (int64_t)in->pack.bytes;
    int result = record_need_hash(o, "sha256", where, out->sha256, e);
    if (result == 0) result = json_need_string(o, "kind", where, &kind, e);
    if (result == 0) result = record_need_range(o, "offset", where, 0, pack_bytes, &offset, e);
    if (result == 0)
        result = record_need_range(o, "bytes", where, 1, pack_bytes - offset, &bytes, e);
    if (result == 0)
        result = record_need_range(o, "content_bytes", where, 0, (int64_t)RECORD_INPUT_BYTES_MOST,
                                   &content_bytes, e);
    if (result == 0) {
        *filler = strcmp(kind, "filler") == 0;
        if (!*filler && strcmp(kind, "prompt") != 0)
            result = ERR_SET(e, ERR_INPUT, "%s: \"kind\" is neither filler nor prompt", where);
        out->offset = (size_t)offset;
        out->bytes = (size_t)bytes;
        out->content_bytes = (size_t)content_bytes;
    }
    json_decref(o);
    return result;
}

static int read_index(struct record_inputs *in, struct err *e) {
    struct str text = {(const char *)in->index.p, in->index.bytes};
    size_t lines = text.n == 0 ? 0 : str_count(text, STR("\n"));
    in->frames = arena_array(in->arena, lines, sizeof *in->frames);
    in->fillers = arena_array(in->arena, lines, sizeof *in->fillers);
    for (size_t at = 0; at < text.n;) {
        char where[512];
        snprintf(where, sizeof where, "%s:%zu", in->index_path, in->frame_count + 1);
        size_t end = str_find(text, STR("\n"), at);
        if (end == STR_NONE) FAIL(e, ERR_RECORD, "%s: the line has no end", where);
        struct frame *f = &in->frames[in->frame_count];
        bool filler = false;
        if (read_index_line(in, str_slice(text, at, end), where, f, &filler, e) != 0) {
            if (e != NULL) e->code = ERR_RECORD;
            return -1;
        }
        if (filler) in->fillers[in->filler_count++] = in->frame_count;
        record_map_put(filler ? in->filler_frames : in->prompt_frames, f->sha256,
                       (int64_t)in->frame_count);
        in->frame_count++;
        at = end + 1;
    }
    return 0;
}

int record_inputs_open(const char *folder, struct record_inputs **out, struct err *e) {
    struct record_inputs *in = calloc(1, sizeof *in);
    if (in == NULL) mem_exhausted("the inputs of a record", sizeof *in);
    in->arena = arena_create("inputs");
    in->pack_path = path_join(in->arena, folder, "inputs/pack.zst");
    in->index_path = path_join(in->arena, folder, "inputs/index.jsonl");
    in->filler_frames = record_map_open();
    in->prompt_frames = record_map_open();
    in->zstd = ZSTD_createDCtx();
    if (in->zstd == NULL) mem_exhausted("a zstd context", 0);
    int result = file_map_open(in->pack_path, &in->pack, e);
    if (result == 0) result = file_map_open(in->index_path, &in->index, e);
    if (result == 0) result = read_index(in, e);
    if (result == 0)
        *out = in;
    else
        record_inputs_close(in);
    return result;
}

void record_inputs_close(struct record_inputs *in) {
    if (in == NULL) return;
    file_map_close(&in->pack);
    file_map_close(&in->index);
    record_map_close(in->filler_frames);
    record_map_close(in->prompt_frames);
    for (int i = 0; i < CACHED; i++) buf_free(&in->cache[i].text);
    ZSTD_freeDCtx(in->zstd);
    arena_destroy(in->arena);
    free(in);
}

const char *record_inputs_filler_at(const struct record_inputs *in, size_t index) {
    return index < in->filler_count ? in->frames[in->fillers[index]].sha256 : NULL;
}

// ---- reading: contents -------------------------------------------------------------------------

// The frame says how long its content is; a frame that says something else than the index is
// damaged.
static int decompress(struct record_inputs *in, const struct frame *f, struct buf *out,
                      struct err *e) {
    const uint8_t *p = in->pack.p + f->offset;
    unsigned long long said = ZSTD_getFrameContentSize(p, f->bytes);
    if (said != f->content_bytes)
        FAIL(e, ERR_RECORD, "%s: the frame at offset %zu is damaged: its content is not %zu bytes",
             in->pack_path, f->offset, f->content_bytes);
    buf_clear(out);
    buf_reserve(out, f->content_bytes);
    size_t n = ZSTD_decompressDCtx(in->zstd, out->p, f->content_bytes, p, f->bytes);
    if (ZSTD_isError(n) || n != f->content_bytes)
        FAIL(e, ERR_RECORD, "%s: the frame at offset %zu is damaged: %s", in->pack_path, f->offset,
             ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is too short");
    out->n = n;
    out->p[n] = '\0';
    return 0;
}

static int check_hash(struct record_inputs *in, const struct frame *f, struct str text,
                      struct err *e) {
    char hex[HASH_HEX_SIZE];
    hash_bytes(text.p, text.n, hex);
    if (strcmp(hex, f->sha256) != 0)
        FAIL(e, ERR_RECORD, "%s: what is stored at offset %zu as %s hashes to %s", in->pack_path,
             f->offset, f->sha256, hex);
    return 0;
}

int record_inputs_filler(struct record_inputs *in, const char *sha256, struct str *text,
                         struct err *e) {
    int64_t number = record_map_get(in->filler_frames, sha256);
    if (number < 0) FAIL(e, ERR_RECORD, "%s: the filler %s is not stored", in->index_path, sha256);
    struct cached *c = &in->cache[0];
    for (int i = 0; i < CACHED; i++) {
        if (in->cache[i].frame == (size_t)number + 1) {
            in->cache[i].used = ++in->clock;
            *text = buf_str(&in->cache[i].text);
            return 0;
        }
        if (in->cache[i].used < c->used) c = &in->cache[i];
    }
    const struct frame *f = &in->frames[number];
    c->frame = 0;
    TRY(decompress(in, f, &c->text, e));
    TRY(check_hash(in, f, buf_str(&c->text), e));
    c->frame = (size_t)number + 1;
    c->used = ++in->clock;
    *text = buf_str(&c->text);
    return 0;
}

// Appends the part's bytes to `text`; the part's own text is set when the whole is known.
static int read_part(struct record_inputs *in, const json_t *o, const char *where, struct arena *a,
                     struct buf *text, struct record_part *out, struct err *e) {
    const json_t *control = json_object_get(o, "control");
    out->control = json_is_true(control);
    if (json_object_get(o, "filler") == NULL) {
        struct str literal;
        TRY(json_get_bytes(o, "text", where, a, &literal, e));
        buf_add_str(text, literal);
        return 0;
    }
    char sha256[HASH_HEX_SIZE];
    struct str filler;
    int64_t from, to;
    TRY(record_need_hash(o, "filler", where, sha256, e));
    TRY(record_inputs_filler(in, sha256, &filler, e));
    TRY(record_need_range(o, "from", where, 0, (int64_t)filler.n, &from, e));
    TRY(record_need_range(o, "to", where, from, (int64_t)filler.n, &to, e));
    if (text->n + (size_t)(to - from) > RECORD_INPUT_BYTES_MOST)
        FAIL(e, ERR_INPUT, "%s: the prompt has more than %zu bytes", where,
             RECORD_INPUT_BYTES_MOST);
    out->filler_sha256 = arena_strdup(a, sha256);
    out->from = (size_t)from;
    out->to = (size_t)to;
    buf_add_str(text, str_slice(filler, out->from, out->to));
    return 0;
}

static int read_parts(struct record_inputs *in, const struct frame *f, const json_t *root,
                      struct arena *a, struct record_part **parts, size_t *count, struct str *text,
                      struct err *e) {
    char where[512];
    snprintf(where, sizeof where, "%s: the prompt %.12s", in->pack_path, f->sha256);
    json_t *list;
    TRY(json_need_array(root, "parts", where, &list, e));
    *count = json_array_size(list);
    *parts = arena_array(a, *count, sizeof **parts);
    size_t *ends = arena_array(a, *count, sizeof *ends);
    struct buf whole = {0};
    int result = 0;
    for (size_t i = 0; i < *count && result == 0; i++) {
        result = read_part(in, json_array_get(list, i), where, a, &whole, &(*parts)[i], e);
        ends[i] = whole.n;
    }
    if (result == 0) result = check_hash(in, f, buf_str(&whole), e);
    if (result == 0) {
        *text = str_copy(a, buf_str(&whole));
        for (size_t i = 0; i < *count; i++)
            (*parts)[i].text = str_slice(*text, i == 0 ? 0 : ends[i - 1], ends[i]);
    }
    buf_free(&whole);
    return result;
}

int record_inputs_prompt(struct record_inputs *in, const char *sha256, struct arena *a,
                         struct record_part **parts, size_t *count, struct str *text,
                         struct err *e) {
    int64_t number = record_map_get(in->prompt_frames, sha256);
    if (number < 0) FAIL(e, ERR_RECORD, "%s: the prompt %s is not stored", in->index_path, sha256);
    const struct frame *f = &in->frames[number];
    struct buf content = {0};
    json_t *root = NULL;
    int result = decompress(in, f, &content, e);
    if (result == 0) result = json_parse(buf_str(&content), in->pack_path, &root, e);
    if (result == 0) result = read_parts(in, f, root, a, parts, count, text, e);
    if (result != 0 && e != NULL) e->code = ERR_RECORD;
    json_decref(root);
    buf_free(&content);
    return result;
}
