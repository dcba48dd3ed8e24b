#include <algorithm>
#include <cstdlib>

#include "compute/comm/communicator.h"
#include "foundation/base/check.h"

namespace tandem::comm {
namespace {

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void all_reduce_sum(std::span<float> /*values*/) override {}

  void all_gather(std::span<const float> in, std::span<float> out) override {
    TANDEM_CHECK(in.size() == out.size(), "one rank gathers only its own part");
    std::copy(in.begin(), in.end(), out.begin());
  }

  void broadcast(std::vector<std::uint8_t>& /*bytes*/) override {}
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace tandem::comm
