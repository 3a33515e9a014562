// What orders memory between threads, told to the thread sanitizer: launches, barriers, __syncwarp.
// Shuffles and mma order nothing, as in CUDA. Without that sanitizer all of this is nothing.
#ifndef LACUNA_KERNELS_SIMT_RACES_H
#define LACUNA_KERNELS_SIMT_RACES_H

namespace simt {

enum sync_kind { SYNC_BLOCK_START, SYNC_BLOCK_END, SYNC_WARP, SYNC_BARRIER };

// The object that one round of one barrier of one block synchronises on.
void *sync_object(sync_kind kind, unsigned long long block, unsigned index, unsigned round);
void sync_release(void *object);
void sync_acquire(void *object);

} // namespace simt

#endif
