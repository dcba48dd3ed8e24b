#include "compute/comm/staged_communicator.h"

#include <cstdint>
#include <cstdlib>

namespace tandem::comm {
namespace {

std::int64_t bytes_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size_bytes());
}

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Communicator& inner, device::Device& device)
      : inner_(inner), device_(device) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  void all_reduce_sum(std::span<float> values) override {
    if (size() == 1) {
      return;
    }
    in_.resize(values.size());
    device_.download(in_.data(), values.data(), bytes_of(values));
    inner_.all_reduce_sum(in_);
    device_.upload(values.data(), in_.data(), bytes_of(values));
  }

  void all_gather(std::span<const float> in, std::span<float> out) override {
    in_.resize(in.size());
    out_.resize(out.size());
    device_.download(in_.data(), in.data(), bytes_of(in));
    inner_.all_gather(in_, out_);
    device_.upload(out.data(), out_.data(), bytes_of(out));
  }

  void broadcast(std::vector<std::uint8_t>& bytes) override { inner_.broadcast(bytes); }
  void barrier() override { inner_.barrier(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_.abort(exit_code);
    std::abort();  // g++ 12 does not see that a virtual function never returns
  }

 private:
  Communicator& inner_;
  device::Device& device_;
  std::vector<float> in_;
  std::vector<float> out_;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Communicator& inner,
                                                       device::Device& device) {
  return std::make_unique<StagedCommunicator>(inner, device);
}

}  // namespace tandem::comm
