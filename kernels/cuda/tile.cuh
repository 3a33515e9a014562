// Tiles of bf16 operands in shared memory, and the fragments of the tensor-core product in them.
//
// A tile has rows of CHUNKS chunks of 16 bytes. ldmatrix reads one chunk of eight consecutive rows
// at a time: chunks are placed so that these lie in different banks, by exchanging chunks within a
// row where their number is a power of two, else by a chunk of padding at the end of each row.
#ifndef LACUNA_KERNELS_CUDA_TILE_CUH
#define LACUNA_KERNELS_CUDA_TILE_CUH

#include "kernels/cuda/gpu.h"

#define TILE_CHUNK 8 // elements of 16 bytes

template <int CHUNKS> struct tile_shape {
    static constexpr bool exchanged = (CHUNKS & (CHUNKS - 1)) == 0;
    static constexpr int stride = (exchanged ? CHUNKS : CHUNKS + 1) * TILE_CHUNK; // elements
};

template <int CHUNKS> static __device__ __forceinline__ uint32_t tile_offset(int row, int chunk) {
    static_assert(CHUNKS >= 4 && CHUNKS % 2 == 0, "four rows or fewer share a line of banks");
    if (tile_shape<CHUNKS>::exchanged) chunk ^= CHUNKS == 4 ? (row >> 1) & 3 : row & 7;
    return row * tile_shape<CHUNKS>::stride + chunk * TILE_CHUNK;
}

template <int CHUNKS>
static __device__ __forceinline__ uint16_t *tile_at(uint16_t *tile, int row, int chunk) {
    return tile + tile_offset<CHUNKS>(row, chunk);
}

// The chunk that is `row` rows, a multiple of 8, and `chunk` chunks, an even number, away from one
// whose own number is 0 or 1.
template <int CHUNKS>
static __device__ __forceinline__ uint16_t *tile_moved(uint16_t *tile, uint32_t offset, int row,
                                                       int chunk) {
    const uint32_t moved = chunk * TILE_CHUNK;
    return tile + row * tile_shape<CHUNKS>::stride +
           (tile_shape<CHUNKS>::exchanged ? offset ^ moved : offset + moved);
}

// The a operand: 16 rows from `row`, two chunks (k 16) from `chunk`.
template <int CHUNKS>
static __device__ __forceinline__ void tile_load_a(uint32_t (&a)[4], uint16_t *tile, int row,
                                                   int chunk, int lane) {
    ldmatrix_x4(a, tile_moved<CHUNKS>(tile, tile_offset<CHUNKS>(lane & 15, lane >> 4), row, chunk));
}

// Two b operands of 8 columns each, as 16 rows of the tile (column n of b is a row), two chunks
// (k 16) from `chunk`: b[0], b[1] are of the first eight rows, b[2], b[3] of the others.
template <int CHUNKS>
static __device__ __forceinline__ void tile_load_b(uint32_t (&b)[4], uint16_t *tile, int row,
                                                   int chunk, int lane) {
    const uint32_t own = tile_offset<CHUNKS>((lane & 7) + (lane >> 4) * 8, (lane >> 3) & 1);
    ldmatrix_x4(b, tile_moved<CHUNKS>(tile, own, row, chunk));
}

// The same where a row of the tile is a row of b: 16 rows (k 16) from `row`, two chunks of columns
// from `chunk`.
template <int CHUNKS>
static __device__ __forceinline__ void tile_load_b_rows(uint32_t (&b)[4], uint16_t *tile, int row,
                                                        int chunk, int lane) {
    ldmatrix_x4_trans(
        b, tile_moved<CHUNKS>(tile, tile_offset<CHUNKS>(lane & 15, lane >> 4), row, chunk));
}

// c[0], c[1] += a times the two b operands.
static __device__ __forceinline__ void
tile_multiply(float (&c0)[4], float (&c1)[4], const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
    mma_bf16_16816(c0, a, first);
    mma_bf16_16816(c1, a, second);
}

#endif
