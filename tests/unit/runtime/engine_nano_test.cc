// The engine over the real model code with the bundled nano checkpoint: whatever the batch, the
// drafts, the prefix cache and the number of ranks, a sequence gets the same tokens.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "compute/cpu/cpu_kernels.h"
#include "engine/runtime/model_engine.h"
#include "engine/runtime/v4_forward_model.h"
#include "engine/runtime/worker.h"
#include "foundation/base/random.h"
#include "model/v4/model.h"
#include "model/v4/open_model.h"
#include "tests/support/engine_fixture.h"

namespace tandem::runtime {
namespace {

using testing::Collected;
using testing::Collector;

constexpr const char* kNano = TANDEM_SOURCE_DIR "/models/nano";

// One rank's device, weights and model.
struct Rank {
  Rank(int rank, std::shared_ptr<testing::ThreadJob> job)
      : communicator(job, rank),
        device(device::make_cpu_device()),
        kernels(cpu::make_fast_kernels(kernels::Numerics::kNative, 1)) {
    const auto opened = v4::open_model(kNano, job->n_ranks());
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    checkpoint::LoadOptions load;
    load.rank = rank;
    load.world = job->n_ranks();
    auto loaded = v4::load_weights(*opened, *device, load);
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    weights.emplace(std::move(loaded).value());
    v4::ModelLimits limits;
    limits.max_step_tokens = 256;
    limits.n_slots = 4;
    limits.max_context_tokens = 1024;
    limits.n_pages = 40;
    limits.draft_slack = 4;
    v4::ModelParts parts;
    parts.device = device.get();
    parts.kernels = kernels.get();
    parts.communicator = &communicator;
    auto made =
        v4::V4Model::create(opened->config, *weights, parts, limits, tensor::RowFormat::kBf16);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    model = std::move(made).value();
    forward = make_v4_forward_model(*model);
  }

  testing::ThreadCommunicator communicator;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<kernels::Kernels> kernels;
  std::optional<checkpoint::WeightStore> weights;
  std::unique_ptr<v4::V4Model> model;
  std::unique_ptr<ForwardModel> forward;
};

std::vector<std::vector<TokenId>> prompts() {
  std::vector<std::vector<TokenId>> all;
  Random random(3);
  for (const std::size_t n : {1U, 5U, 130U, 300U}) {
    std::vector<TokenId> prompt(n);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(random.below(4096));
    }
    all.push_back(std::move(prompt));
  }
  return all;
}

GenerationRequest request(std::vector<TokenId> prompt, bool sampled) {
  GenerationRequest request = testing::make_request(std::move(prompt), 20);
  request.sampling.temperature = sampled ? 0.8F : 0.0F;
  request.sampling.seed = 11;
  return request;
}

// All prompts greedy and sampled: together, or one after the other.
std::vector<std::vector<TokenId>> generate(const EngineOptions& options, int n_ranks, bool together,
                                           std::int64_t* cached = nullptr) {
  auto job = std::make_shared<testing::ThreadJob>(n_ranks);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < n_ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(rank, job));
  }
  std::vector<std::thread> workers;
  for (int rank = 1; rank < n_ranks; ++rank) {
    workers.emplace_back([&, rank] {
      Rank& own = *ranks[static_cast<std::size_t>(rank)];
      const Status status =
          run_worker({options.n_snapshots, "worker"}, *own.forward, own.communicator);
      EXPECT_TRUE(status.ok()) << status.to_string();
    });
  }
  auto engine = make_engine(options, *ranks[0]->forward, ranks[0]->communicator);
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  Collector collector;
  std::vector<std::vector<TokenId>> tokens;
  int n = 0;
  for (const bool sampled : {false, true}) {
    for (const std::vector<TokenId>& prompt : prompts()) {
      EXPECT_TRUE((*engine)->submit(request(prompt, sampled), collector.sink(n)).ok());
      ++n;
      if (!together) {
        collector.wait(n - 1);
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    const Collected found = collector.wait(i);
    EXPECT_TRUE(found.finish->error.ok()) << found.finish->error.to_string();
    tokens.push_back(found.tokens);
  }
  if (cached != nullptr) {
    *cached = (*engine)->stats().cached_tokens_total;
  }
  EXPECT_TRUE((*engine)->stop().ok());
  for (std::thread& worker : workers) {
    worker.join();
  }
  return tokens;
}

TEST(EngineNano, BatchDraftsPrefixAndRanksChangeNothing) {
  EngineOptions plain;
  const auto expected = generate(plain, 1, false);
  ASSERT_EQ(expected.size(), 8U);
  for (const auto& tokens : expected) {
    ASSERT_EQ(tokens.size(), 20U);
  }
  EXPECT_EQ(generate(plain, 1, true), expected) << "batched";

  EngineOptions drafts = plain;
  drafts.max_drafts = 3;
  drafts.adaptive_drafts = false;
  EXPECT_EQ(generate(drafts, 1, true), expected) << "with drafts";

  EngineOptions prefix = drafts;
  prefix.n_snapshots = 8;
  std::int64_t cached = 0;
  EXPECT_EQ(generate(prefix, 1, false, &cached), expected) << "with the prefix cache";
  EXPECT_EQ(cached, 128 + 256) << "the sampled requests repeat the prompts of the greedy ones";

  // Two ranks add in another order, so a near tie may fall the other way: same machine, same code,
  // but only the two-rank runs are compared bit by bit with each other.
  const auto two = generate(plain, 2, false);
  EXPECT_EQ(generate(prefix, 2, true), two) << "two ranks with everything on";
}

}  // namespace
}  // namespace tandem::runtime
