// Recorded steps against steps queued kernel by kernel: random plans over several sequences,
// prompts and verify blocks of every length, rollback, on two models in the same state. The logits
// must be the same bits at every step.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "compute/comm/communicator.h"
#include "foundation/base/random.h"
#include "model/v4/model.h"
#include "model/v4/open_model.h"
#include "tests/support/backend.h"

namespace tandem::v4 {
namespace {

constexpr std::int32_t kSlots = TANDEM_SOAK_SLOTS;
constexpr std::int64_t kContext = 512;

class Side {
 public:
  Side(const OpenedModel& opened, bool recorded)
      : backend_(testing::make_backend(kernels::Numerics::kNative, false)) {
    weights_.emplace(load_weights(opened, *backend_.device, {}).value());
    ModelLimits limits;
    limits.max_step_tokens = 64;
    limits.max_logit_rows = 64;
    limits.n_slots = kSlots;
    limits.max_context_tokens = kContext;
    limits.n_pages = kSlots * kContext / kPageTokens;
    ModelParts parts;
    parts.device = backend_.device.get();
    parts.kernels = backend_.kernels.get();
    parts.communicator = communicator_.get();
    parts.graphs = recorded ? backend_.graphs.get() : nullptr;
    model_ =
        V4Model::create(opened.config, *weights_, parts, limits, tensor::RowFormat::kFp8).value();
    for (std::int32_t slot = 0; slot < kSlots; ++slot) {
      std::vector<PageId> pages;
      for (PageId page = 0; page < kContext / kPageTokens; ++page) {
        pages.push_back(slot + kSlots * page);
      }
      model_->kv_cache().set_pages(slot, 0, pages);
    }
  }

  std::span<const float> forward(const StepInput& input) {
    return model_->forward(input).value().logits;
  }
  device::StepGraphStats stats() const { return backend_.graphs->stats(); }

 private:
  testing::Backend backend_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_single_communicator();
  std::optional<checkpoint::WeightStore> weights_;
  std::unique_ptr<V4Model> model_;
};

// Few shapes come often, as in service; positions move on, sometimes back by a few rows.
class Plans {
 public:
  StepInput next() {
    StepInput input;
    std::int32_t row = 0;
    for (std::int32_t slot = 0; slot < kSlots; ++slot) {
      if (random_.below(3) == 0 && !(slot == kSlots - 1 && row == 0)) {
        continue;
      }
      Position& position = positions_[slot];
      const std::int32_t n =
          random_.below(12) == 0 ? 7 : static_cast<std::int32_t>(1 + random_.below(3));
      position = std::max<Position>(0, position - static_cast<Position>(random_.below(4)));
      if (position + n > kContext) {
        position = 0;
      }
      input.segments.push_back({slot, row, n, position});
      for (std::int32_t i = 0; i < n; ++i) {
        input.tokens.push_back(static_cast<TokenId>(random_.below(4096)));
        input.logit_rows.push_back(row + i);
      }
      position += n;
      row += n;
    }
    return input;
  }

 private:
  Random random_{9};
  Position positions_[kSlots] = {};
};

TEST(GraphSoak, ReplayedStepsAreTheSameBits) {
  const OpenedModel opened = open_model(TANDEM_SOURCE_DIR "/models/nano", 1).value();
  Side recorded(opened, true);
  Side direct(opened, false);
  Plans plans;
  for (int step = 0; step < TANDEM_SOAK_STEPS; ++step) {
    const StepInput input = plans.next();
    const auto a = recorded.forward(input);
    const auto b = direct.forward(input);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_EQ(0, std::memcmp(a.data(), b.data(), a.size_bytes())) << "step " << step;
  }
  const device::StepGraphStats stats = recorded.stats();
  EXPECT_GT(stats.n_replayed, TANDEM_SOAK_STEPS / 4);
  EXPECT_GE(stats.n_graphs, 1);
}

}  // namespace
}  // namespace tandem::v4
