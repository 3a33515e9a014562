// A captured graph: its work in the order of the calls, which is one of those that CUDA allows.
#ifndef LACUNA_KERNELS_SIMT_RUNTIME_GRAPH_H
#define LACUNA_KERNELS_SIMT_RUNTIME_GRAPH_H

#include "kernels/simt/runtime.h"

#include <vector>

struct CUgraph_st {
    std::vector<simt::work> nodes;
};

#endif
