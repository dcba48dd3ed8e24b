#include "apps/tandem/compute_parts.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "compute/comm/nccl_communicator.h"
#include "compute/comm/staged_communicator.h"
#include "compute/comm/stuck_verdict.h"
#include "compute/cpu/cpu_kernels.h"

namespace tandem::apps {
namespace {

using Say = std::function<void(const std::string&)>;

constexpr std::chrono::seconds kStuckLimit{
    8};  // with the question to the others: named within 10 s
constexpr std::chrono::seconds kAnswerLimit{2};
constexpr int kStuckExitCode = 70;

class CpuParts final : public ComputeParts {
 public:
  CpuParts(const ComputeOptions& options, comm::Communicator& communicator)
      : kernels_(cpu::make_fast_kernels(options.numerics, options.n_threads)),
        communicator_(communicator) {}

  v4::ModelParts parts() override {
    return {device_.get(), kernels_.get(), &communicator_, nullptr};
  }
  std::int64_t available_bytes() const override { return -1; }
  std::int64_t scratch_bytes() const override { return 0; }

 private:
  std::unique_ptr<device::Device> device_ = device::make_cpu_device();
  std::unique_ptr<kernels::Kernels> kernels_;
  comm::Communicator& communicator_;
};

class GpuParts final : public ComputeParts {
 public:
  GpuParts(std::unique_ptr<cuda::CudaBackend> gpu, comm::Communicator& communicator)
      : gpu_(std::move(gpu)), communicator_(communicator) {}

  // NCCL where it loads; through the host where it does not, which recorded steps cannot contain.
  Status connect(const Say& say) {
    if (communicator_.size() == 1) {
      return ok_status();
    }
    const Result<comm::NcclLibrary> library = comm::load_nccl();
    if (library.ok()) {
      cuda::CudaBackend* gpu = gpu_.get();
      TANDEM_ASSIGN(
          nccl_, comm::make_nccl_communicator(*library, communicator_,
                                              {gpu->stream(), [gpu] { gpu->mark_collective(); }}));
      say(fmt::format("collectives: NCCL {}", nccl_->version()));
    } else {
      staged_ = comm::make_staged_communicator(communicator_, gpu_->device());
      say(fmt::format("collectives: through host memory and the launcher's network, slow; {}",
                      library.status().message()));
    }
    gpu_->watch_steps(kStuckLimit, [this] { end_stuck_job(); });
    return ok_status();
  }

  v4::ModelParts parts() override {
    comm::Communicator* collectives = nccl_ != nullptr     ? nccl_.get()
                                      : staged_ != nullptr ? staged_.get()
                                                           : &communicator_;
    return {&gpu_->device(), &gpu_->kernels(), collectives,
            staged_ == nullptr ? &gpu_->graphs() : nullptr};
  }

  std::int64_t available_bytes() const override { return gpu_->facts().available_bytes; }
  std::int64_t scratch_bytes() const override { return cuda::kScratchBytes; }

 private:
  // Every rank that waits asks the others how far they are. A rank that answers nothing is not
  // waiting in a step, or is gone.
  std::vector<comm::RankProgress> ask_ranks() {
    auto answer = std::make_shared<std::promise<std::vector<float>>>();
    std::future<std::vector<float>> answered = answer->get_future();
    const float mine = static_cast<float>(gpu_->n_marks() % (1 << 20));
    std::thread([answer, mine, &ranks = communicator_] {
      std::vector<float> all(static_cast<std::size_t>(ranks.size()));
      ranks.all_gather(std::span(&mine, 1), all);
      answer->set_value(std::move(all));
    }).detach();
    std::vector<comm::RankProgress> progress;
    if (answered.wait_for(kAnswerLimit) == std::future_status::ready) {
      for (const float marks : answered.get()) {
        progress.push_back({0, static_cast<std::int64_t>(marks)});
      }
    }
    return progress;
  }

  void end_stuck_job() {
    const std::vector<comm::RankProgress> progress = ask_ranks();
    const comm::Diagnosis found =
        comm::diagnose_stuck_step(communicator_.rank(), progress,
                                  nccl_ != nullptr ? nccl_->transport_error() : std::string());
    std::fprintf(stderr, "tandem: stuck step: %s: %s\n",
                 std::string(comm::verdict_name(found.verdict)).c_str(), found.text.c_str());
    communicator_.abort(kStuckExitCode);
  }

  std::unique_ptr<cuda::CudaBackend> gpu_;
  comm::Communicator& communicator_;
  std::unique_ptr<comm::NcclCommunicator> nccl_;
  std::unique_ptr<comm::Communicator> staged_;
};

}  // namespace

Result<std::unique_ptr<ComputeParts>> open_compute(const ComputeOptions& options,
                                                   comm::Communicator& communicator,
                                                   const Say& say) {
  if (options.device == "cpu") {
    return std::unique_ptr<ComputeParts>(std::make_unique<CpuParts>(options, communicator));
  }
  cuda::CudaOptions cuda_options;
  cuda_options.numerics = options.numerics;
  TANDEM_ASSIGN(std::unique_ptr<cuda::CudaBackend> gpu, cuda::open_cuda_backend(cuda_options));
  const cuda::CudaFacts& facts = gpu->facts();
  say(fmt::format("GPU: {}, {} multiprocessors, {:.1f} GB, {:.1f} GB available{}", facts.name,
                  facts.n_multiprocessors, static_cast<double>(facts.total_bytes) / 1e9,
                  static_cast<double>(facts.available_bytes) / 1e9,
                  facts.unified ? ", shared with the CPU" : ""));
  auto parts = std::make_unique<GpuParts>(std::move(gpu), communicator);
  TANDEM_TRY(parts->connect(say));
  return std::unique_ptr<ComputeParts>(std::move(parts));
}

}  // namespace tandem::apps
