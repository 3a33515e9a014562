// The settings in force, and what was counted.
#include "kernels/simt/counts.h"

struct simt_counts simt::counts;

static struct simt_options in_force = {1, false, 90, (size_t)8 << 30, true, 1000};

void simt_set_options(const struct simt_options *options) {
    in_force = *options;
}

struct simt_options simt_get_options(void) {
    return in_force;
}

struct simt_counts simt_counted(void) {
    return simt::counts;
}
