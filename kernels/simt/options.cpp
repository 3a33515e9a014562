// The settings in force.
#include "kernels/simt/simt.h"

static struct simt_options in_force = {1, false, 90, (size_t)8 << 30, true};

void simt_set_options(const struct simt_options *options) {
    in_force = *options;
}

struct simt_options simt_get_options(void) {
    return in_force;
}
