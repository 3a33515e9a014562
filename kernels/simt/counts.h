// What the emulator has counted since the start.
#ifndef LACUNA_KERNELS_SIMT_COUNTS_H
#define LACUNA_KERNELS_SIMT_COUNTS_H

#include "kernels/simt/simt.h"

namespace simt {

extern struct simt_counts counts;

} // namespace simt

#endif
