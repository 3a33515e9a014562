// The device that the commands of gpu_tests measure. Internal to them.
#ifndef LACUNA_TESTS_GPU_DEVICE_H
#define LACUNA_TESTS_GPU_DEVICE_H

#include "engine/base/json.h"
#include "kernels/cuda/ops.h"

const struct cuda_ops *gpu_ops(void);

// NULL, and why on stderr: there is none.
struct cuda_device *gpu_open(struct cuda_facts *facts);

void gpu_print(json_t *j); // a line on stdout; takes over the reference

#endif
