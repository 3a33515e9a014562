// Graphs: instantiated once, launched often. What a graph runs are the launches as they were
// captured, arguments and grids included, whatever has become of the memory that they point to.
#include "kernels/simt/runtime_graph.h"

#include "kernels/simt/counts.h"
#include "kernels/simt/report.h"

#include <cstdlib>

struct CUgraphExec_st {
    std::vector<simt::work> nodes;
};

namespace simt {

static int executables;

static void check_leaks() {
    if (executables > 0) fail("%d executable graphs were never destroyed", executables);
}

} // namespace simt

int simt_graphs(void) {
    return simt::executables;
}

using namespace simt;

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long) {
    static const bool watched = atexit(check_leaks) == 0;
    (void)watched;
    *executable = nullptr;
    if (executables >= simt_get_options().graphs_most) return refused(cudaErrorMemoryAllocation);
    *executable = new CUgraphExec_st{graph->nodes};
    executables++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    counts.graph_launches++;
    for (const work &node : executable->nodes) enqueue(stream, node);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    if (nodes != nullptr) return refused(cudaErrorNotSupported);
    *count = graph->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    drain_all();
    delete executable;
    executables--;
    return cudaSuccess;
}

} // extern "C"
