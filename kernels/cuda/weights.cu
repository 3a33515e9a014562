// Weights: from the file to bf16 rows, and matrix products with them.
#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"

#define FLAG_BYTES 256 // at the start of the staging memory, and then rows
#define STAGING_BYTES ((size_t)16 << 20)
#define SLAB_BYTES ((size_t)64 << 20) // of a stored matrix, unpacked

// Both are taken while weights load, as large as these need them.
uint64_t weights_bytes(void) {
    return STAGING_BYTES + SLAB_BYTES;
}

static uint32_t rows_in(size_t bytes, size_t row_bytes, uint32_t rows) {
    size_t n = bytes / row_bytes;
    return n < rows ? (uint32_t)(n > 0 ? n : 1) : rows;
}

static struct stored_rows rows_at(const struct cuda_stored *s, uint32_t count, const void *data) {
    return {s->type, count, s->K, s->row_bytes, (const uint8_t *)data};
}

// Part by part through the staging memory: the stream keeps a copy from overtaking the kernel that
// reads the part before it.
bool weights_unpack(struct cuda_device *d, const struct cuda_stored *rows, void *to, uint32_t ld) {
    uint32_t part = rows_in(STAGING_BYTES - FLAG_BYTES, rows->row_bytes, rows->rows), bad = 0;
    uint32_t slab = rows_in(SLAB_BYTES, ld * sizeof(uint16_t), rows->rows);
    if (to == NULL && part > slab) part = slab;
    if (!area_reserve(d, &d->staging, FLAG_BYTES + part * rows->row_bytes) ||
        !area_reserve(d, &d->weights, to == NULL ? slab * ld * sizeof(uint16_t) : 0))
        return true;
    uint8_t *flag = (uint8_t *)d->staging.p, *staging = flag + FLAG_BYTES;
    device_check(d, cudaMemsetAsync(flag, 0, FLAG_BYTES, d->stream), "weights");
    for (uint32_t done = 0, n; done < rows->rows; done += n) {
        n = rows->rows - done < part ? rows->rows - done : part;
        const uint8_t *from = (const uint8_t *)rows->data + done * rows->row_bytes;
        struct stored_rows here = rows_at(rows, n, staging);
        void *rows_to = to != NULL ? (uint16_t *)to + (size_t)done * ld : d->weights.p;
        device_check(
            d,
            cudaMemcpyAsync(staging, from, n * rows->row_bytes, cudaMemcpyHostToDevice, d->stream),
            "weights");
        device_check(d, unpack_launch(d->stream, &here, rows_to, ld, (uint32_t *)flag), "weights");
    }
    device_download(d, &bad, flag, sizeof bad);
    return bad == 0;
}

void weights_matmul(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R, const void *w,
                    uint32_t ldw, uint32_t N, uint32_t K, const float *bias, bool add, float *y,
                    uint32_t ldy) {
    struct gemm_call call = {x, ldx, R, w, ldw, N, K, bias, add, y, ldy};
    device_check(d, products_launch(d, &call), "matrix product");
}

// Some outputs after the others: each has a chain of its own, so the bits are those of one product.
void weights_matmul_stored(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R,
                           const struct cuda_stored *w, const float *bias, bool add, float *y,
                           uint32_t ldy) {
    uint32_t ldw = (w->K + CUDA_ROW_ALIGNMENT - 1) / CUDA_ROW_ALIGNMENT * CUDA_ROW_ALIGNMENT;
    size_t row_bytes = (size_t)ldw * sizeof(uint16_t);
    uint32_t slab = rows_in(SLAB_BYTES, row_bytes, w->rows);
    if (!area_reserve(d, &d->staging, FLAG_BYTES) ||
        !area_reserve(d, &d->weights, slab * row_bytes))
        return;
    if (slab > 1) slab -= slab % 2; // y stays aligned to 8 bytes
    for (uint32_t done = 0, n; done < w->rows; done += n) {
        n = w->rows - done < slab ? w->rows - done : slab;
        struct stored_rows rows = rows_at(w, n, (const uint8_t *)w->data + done * w->row_bytes);
        device_check(d,
                     unpack_launch(d->stream, &rows, d->weights.p, ldw, (uint32_t *)d->staging.p),
                     "weights");
        weights_matmul(d, x, ldx, R, d->weights.p, ldw, n, w->K, bias != NULL ? bias + done : NULL,
                       add, y + done, ldy);
    }
}
