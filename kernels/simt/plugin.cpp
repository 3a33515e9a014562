// The emulator as a plug-in: draws the table of ops, and with it everything, into the library.
#include "kernels/cuda/ops.h"

extern "C" const struct cuda_ops *lacuna_cuda_ops(void);

// A use that the linker sees; what the library exports is lacuna_cuda_ops itself.
extern "C" const struct cuda_ops *lacuna_cuda_emulated(void) {
    return lacuna_cuda_ops();
}
