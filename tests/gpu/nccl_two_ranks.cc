// Two ranks in two processes that share one GPU, which NCCL takes for two hosts over its socket
// transport: right or wrong is decided here, not speed. Mode `golden` compares with a golden
// prompt, with recorded steps, and measures the end of the program; mode `stuck` lets rank 1 fall
// asleep and expects rank 0 to name the cause in time. Exit code 0: as expected.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "compute/comm/nccl_communicator.h"
#include "compute/comm/stuck_verdict.h"
#include "compute/cuda/cuda_backend.h"
#include "model/v4/model.h"
#include "model/v4/open_model.h"
#include "tests/support/safetensors_file.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStuckExit = 7;
constexpr std::chrono::seconds kStuckLimit{5};
constexpr const char* kNano = TANDEM_SOURCE_DIR "/models/nano";
constexpr const char* kGolden = TANDEM_SOURCE_DIR "/tests/golden/data/nano/p00130.safetensors";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Rank 0 and rank 1 over a socket pair: enough to hand over NCCL's id.
class PairCommunicator final : public comm::Communicator {
 public:
  PairCommunicator(int socket, int rank) : socket_(socket), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  void all_reduce_sum(std::span<float>) override { std::abort(); }
  void all_gather(std::span<const float>, std::span<float>) override { std::abort(); }

  void broadcast(std::vector<std::uint8_t>& bytes) override {
    if (rank_ == 0) {
      TANDEM_CHECK(
          ::write(socket_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "socket pair");
    } else {
      TANDEM_CHECK(::recv(socket_, bytes.data(), bytes.size(), MSG_WAITALL) ==
                       static_cast<ssize_t>(bytes.size()),
                   "socket pair");
    }
  }

  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  int socket_;
  int rank_;
};

// Members go in reverse: graphs and model before NCCL, NCCL before the GPU.
struct Rank {
  std::unique_ptr<cuda::CudaBackend> gpu;
  std::unique_ptr<comm::NcclCommunicator> nccl;
  v4::OpenedModel opened;
  std::optional<checkpoint::WeightStore> weights;
  std::unique_ptr<v4::V4Model> model;
};

Result<Rank> start(comm::Communicator& pair) {
  Rank rank;
  cuda::CudaOptions options;
  options.numerics = kernels::Numerics::kReference;
  TANDEM_ASSIGN(rank.gpu, cuda::open_cuda_backend(options));
  TANDEM_ASSIGN(const comm::NcclLibrary library, comm::load_nccl());
  cuda::CudaBackend* gpu = rank.gpu.get();
  const auto begin = Clock::now();
  TANDEM_ASSIGN(rank.nccl, comm::make_nccl_communicator(
                               library, pair, {gpu->stream(), [gpu] { gpu->mark_collective(); }}));
  std::printf("rank %d: NCCL %s joined in %.2f s\n", pair.rank(), rank.nccl->version().c_str(),
              seconds_since(begin));
  TANDEM_ASSIGN(rank.opened, v4::open_model(kNano, 2));
  checkpoint::LoadOptions load;
  load.rank = pair.rank();
  load.world = 2;
  TANDEM_ASSIGN(rank.weights, v4::load_weights(rank.opened, gpu->device(), load));
  v4::ModelLimits limits;
  limits.max_step_tokens = 256;
  limits.n_slots = 1;
  limits.max_context_tokens = 512;
  limits.n_pages = 4;
  const v4::ModelParts parts{&gpu->device(), &gpu->kernels(), rank.nccl.get(), &gpu->graphs()};
  TANDEM_ASSIGN(rank.model, v4::V4Model::create(rank.opened.config, *rank.weights, parts, limits,
                                                tensor::RowFormat::kF32));
  rank.model->kv_cache().set_pages(0, 0, std::vector<PageId>{3, 1, 0, 2});
  return rank;
}

std::vector<float> run(Rank& rank, const std::vector<TokenId>& tokens, Position position) {
  v4::StepInput input;
  input.tokens = tokens;
  input.segments = {{0, 0, static_cast<std::int32_t>(tokens.size()), position}};
  input.logit_rows = {static_cast<std::int32_t>(tokens.size()) - 1};
  const auto output = rank.model->forward(input);
  TANDEM_CHECK(output.ok(), output.status().to_string());
  return {output->logits.begin(), output->logits.end()};
}

int golden(Rank& rank, int number) {
  const testing::SafetensorsFile file(kGolden);
  const std::vector<TokenId> prompt = file.i32("prompt_ids");
  const std::vector<std::int32_t> expected = file.i32("greedy_ids");
  std::vector<float> logits = run(rank, prompt, 0);
  const std::vector<float> wanted = file.f32("logits");
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(logits[i]) - wanted[i], 2);
    size += std::pow(static_cast<double>(wanted[i]), 2);
  }
  const double apart = std::sqrt(difference / size);
  int wrong = apart <= 2e-3 ? 0 : 1;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto best =
        static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    wrong += best == expected[i] ? 0 : 1;
    logits = run(rank, {expected[i]}, static_cast<Position>(prompt.size() + i));
  }
  std::printf(
      "rank %d: logits %.2e from the golden ones, %d wrong, %.1f ms a token, %lld replays\n",
      number, apart, wrong, seconds_since(begin) * 1e3 / static_cast<double>(expected.size()),
      static_cast<long long>(rank.gpu->graphs().stats().n_replayed));
  return wrong == 0 ? 0 : 1;
}

// Rank 1 sleeps; rank 0 must name it.
int stuck(Rank& rank, int number) {
  if (number == 1) {
    std::this_thread::sleep_for(3 * kStuckLimit);
    std::_Exit(0);
  }
  const auto begin = Clock::now();
  rank.gpu->watch_steps(kStuckLimit, [&] {
    const comm::Diagnosis found = comm::diagnose_stuck_step(0, {}, rank.nccl->transport_error());
    std::printf("rank 0: %s after %.1f s: %s\n",
                std::string(comm::verdict_name(found.verdict)).c_str(), seconds_since(begin),
                found.text.c_str());
    std::fflush(stdout);
    rank.nccl->abort(kStuckExit);
  });
  run(rank, {1, 2, 3}, 0);
  return 1;  // the step ended, which it cannot
}

int run_rank(const std::string& mode, int socket, int number) {
  const std::string host = "tandem-test-" + std::to_string(number);
  ::setenv("NCCL_HOSTID", host.c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
  PairCommunicator pair(socket, number);
  auto rank = start(pair);
  if (!rank.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", number, rank.status().to_string().c_str());
    return 1;
  }
  const int code = mode == "stuck" ? stuck(*rank, number) : golden(*rank, number);
  const auto begin = Clock::now();
  { const Rank ends = std::move(rank).value(); }
  const double took = seconds_since(begin);
  std::printf("rank %d: ended in %.2f s\n", number, took);
  return took < 5 ? code : 1;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "golden";
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) {
    return 1;
  }
  const pid_t child = ::fork();  // before CUDA starts: a process cannot share its context
  const int code = tandem::run_rank(mode, sockets[child == 0 ? 1 : 0], child == 0 ? 1 : 0);
  std::fflush(stdout);
  if (child == 0) {
    std::_Exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return code != 0 ? code : WEXITSTATUS(status);
}
