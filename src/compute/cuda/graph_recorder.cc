#include "compute/cuda/graph_recorder.h"

#include <utility>

#include "compute/cuda/cuda_error.h"

namespace tandem::cuda {
namespace {

class CudaGraph final : public device::GraphRecorder::Graph {
 public:
  CudaGraph(cudaStream_t stream, cudaGraphExec_t exec) : stream_(stream), exec_(exec) {}
  ~CudaGraph() override { cudaGraphExecDestroy(exec_); }

  Status replay() override { return to_status(cudaGraphLaunch(exec_, stream_), "graph launch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t exec_;
};

class CudaGraphRecorder final : public device::GraphRecorder {
 public:
  explicit CudaGraphRecorder(cudaStream_t stream) : stream_(stream) {}

  // Thread-local mode: other threads may load weights or take snapshots meanwhile.
  Result<std::unique_ptr<Graph>> record(const std::function<void()>& queue_work) override {
    TANDEM_TRY(to_status(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                         "start of graph capture"));
    queue_work();
    cudaGraph_t graph = nullptr;
    TANDEM_TRY(to_status(cudaStreamEndCapture(stream_, &graph), "end of graph capture"));
    cudaGraphExec_t exec = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    TANDEM_TRY(to_status(error, "making a graph runnable"));
    return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(stream_, exec));
  }

 private:
  cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<device::GraphRecorder> make_graph_recorder(void* stream) {
  return std::make_unique<CudaGraphRecorder>(static_cast<cudaStream_t>(stream));
}

}  // namespace tandem::cuda
