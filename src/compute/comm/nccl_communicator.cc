#include "compute/comm/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "foundation/base/check.h"

namespace tandem::comm {
namespace {

constexpr std::chrono::seconds kAbortLimit{2};

class Nccl final : public NcclCommunicator {
 public:
  Nccl(const NcclLibrary& nccl, Communicator& inner, NcclOptions options)
      : nccl_(nccl), inner_(inner), options_(std::move(options)) {}

  // The helper may outlive this object; it holds copies of all that it uses.
  ~Nccl() override {
    if (comm_ == nullptr) {
      return;
    }
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> ended = done->get_future();
    std::thread([done, comm = comm_, abort = nccl_.abort] {
      abort(comm);
      done->set_value();
    }).detach();
    ended.wait_for(kAbortLimit);
  }

  Status start() {
    NcclId id{};
    int error = NcclLibrary::kSuccess;
    if (inner_.rank() == 0) {
      error = nccl_.get_unique_id(&id);
    }
    std::vector<std::uint8_t> bytes(sizeof(NcclId));
    std::memcpy(bytes.data(), &id, sizeof(NcclId));
    inner_.broadcast(bytes);
    std::memcpy(&id, bytes.data(), sizeof(NcclId));
    if (error == NcclLibrary::kSuccess) {
      error = nccl_.init_rank(&comm_, inner_.size(), id, inner_.rank());
    }
    if (error != NcclLibrary::kSuccess) {
      comm_ = nullptr;
      return Status(
          StatusCode::kUnavailable,
          fmt::format("NCCL {}: rank {} of {} cannot join: {} ({})", version(), inner_.rank(),
                      inner_.size(), nccl_.error_text(error), nccl_.last_error(nullptr)));
    }
    return ok_status();
  }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  void all_reduce_sum(std::span<float> values) override {
    if (size() == 1) {
      return;
    }
    mark();
    require(nccl_.all_reduce(values.data(), values.data(), values.size(), NcclLibrary::kFloat32,
                             NcclLibrary::kSum, comm_, options_.stream),
            "all-reduce");
  }

  void all_gather(std::span<const float> in, std::span<float> out) override {
    TANDEM_CHECK(out.size() == in.size() * static_cast<std::size_t>(size()),
                 "all-gather of unequal parts");
    mark();
    require(nccl_.all_gather(in.data(), out.data(), in.size(), NcclLibrary::kFloat32, comm_,
                             options_.stream),
            "all-gather");
  }

  void broadcast(std::vector<std::uint8_t>& bytes) override { inner_.broadcast(bytes); }
  void barrier() override { inner_.barrier(); }

  [[noreturn]] void abort(int exit_code) override {
    inner_.abort(exit_code);
    std::abort();  // g++ 12 does not see that a virtual function never returns
  }

  std::string transport_error() const override {
    int error = NcclLibrary::kSuccess;
    const int asked = nccl_.async_error(comm_, &error);
    const int found = asked != NcclLibrary::kSuccess ? asked : error;
    if (found == NcclLibrary::kSuccess || found == NcclLibrary::kInProgress) {
      return {};
    }
    return fmt::format("{} ({})", nccl_.error_text(found), nccl_.last_error(comm_));
  }

  std::string version() const override {
    return fmt::format("{}.{}.{}", nccl_.version / 10000, nccl_.version / 100 % 100,
                       nccl_.version % 100);
  }

 private:
  void mark() {
    if (options_.mark_collective) {
      options_.mark_collective();
    }
  }

  // A collective that cannot even be queued leaves the ranks apart: the job ends.
  void require(int error, const char* what) {
    TANDEM_CHECK(
        error == NcclLibrary::kSuccess,
        fmt::format("NCCL {}: {} ({})", what, nccl_.error_text(error), nccl_.last_error(comm_)));
  }

  const NcclLibrary nccl_;
  Communicator& inner_;
  const NcclOptions options_;
  void* comm_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<NcclCommunicator>> make_nccl_communicator(const NcclLibrary& nccl,
                                                                 Communicator& inner,
                                                                 const NcclOptions& options) {
  auto made = std::make_unique<Nccl>(nccl, inner, options);
  TANDEM_TRY(made->start());
  return std::unique_ptr<NcclCommunicator>(std::move(made));
}

}  // namespace tandem::comm
