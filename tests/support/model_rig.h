// ModelRig: a checkpoint on one or more ranks, which are threads of the test. What the model does
// is done on all of them; the answers are rank 0's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compute/comm/staged_communicator.h"
#include "model/v4/model.h"
#include "model/v4/open_model.h"
#include "tests/support/backend.h"
#include "tests/support/thread_communicator.h"

namespace tandem::testing {

struct RigOptions {
  std::string model;  // folder
  int n_ranks = 1;
  kernels::Numerics numerics = kernels::Numerics::kReference;
  bool plain_kernels = false;  // the oracle instead of SIMD
  tensor::RowFormat kv_format = tensor::RowFormat::kF32;
  v4::ModelLimits limits;
};

class ModelRig {
 public:
  explicit ModelRig(const RigOptions& options) {
    auto job = std::make_shared<ThreadJob>(options.n_ranks);
    for (int rank = 0; rank < options.n_ranks; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(options, rank, job));
    }
    assign_pages(options.limits);
  }

  // Calls work(model) on every rank at the same time.
  template <typename Work>
  void on_all(Work work) {
    std::vector<std::thread> others;
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      others.emplace_back([&, rank] { work(*ranks_[rank]->model); });
    }
    work(*ranks_[0]->model);
    for (std::thread& other : others) {
      other.join();
    }
  }

  v4::V4Model& head() { return *ranks_[0]->model; }
  const v4::ModelConfig& config() const { return ranks_[0]->opened.config; }

  // One forward pass; logits [n_logit_rows * vocab] of rank 0.
  std::vector<float> forward(const v4::StepInput& input) {
    std::vector<float> logits;
    on_all([&](v4::V4Model& model) {
      const auto output = model.forward(input);
      EXPECT_TRUE(output.ok()) << output.status().to_string();
      if (output.ok() && &model == &head()) {
        logits.assign(output->logits.begin(), output->logits.end());
      }
    });
    return logits;
  }

  // tokens[first .. first + n) of one sequence in `slot`; logits of the last row.
  std::vector<float> run(std::int32_t slot, std::span<const TokenId> tokens, std::size_t first,
                         std::size_t n) {
    v4::StepInput input;
    input.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        tokens.begin() + static_cast<std::ptrdiff_t>(first + n));
    input.segments = {{slot, 0, static_cast<std::int32_t>(n), static_cast<Position>(first)}};
    input.logit_rows = {static_cast<std::int32_t>(n) - 1};
    return forward(input);
  }

  // Drafts after forward(); the logits of every drafted token [n_drafts][vocab]; greedy.
  struct Drafts {
    std::vector<std::vector<float>> logits;
    std::vector<TokenId> tokens;
    std::vector<float> confidences;
  };
  Drafts draft(const v4::DraftSequence& sequence) {
    Drafts drafts;
    on_all([&](v4::V4Model& model) {
      const bool is_head = &model == &head();
      const auto sampler = [&](std::size_t, std::int32_t, std::span<const float> logits) {
        if (is_head) {
          drafts.logits.emplace_back(logits.begin(), logits.end());
        }
        return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
      };
      const auto output = model.draft(std::span(&sequence, 1), sampler);
      EXPECT_TRUE(output.ok()) << output.status().to_string();
      if (output.ok() && is_head) {
        drafts.tokens = output->tokens.at(0);
        drafts.confidences =
            output->confidences.empty() ? std::vector<float>() : output->confidences.at(0);
      }
    });
    return drafts;
  }

 private:
  // The model stands last: it goes before all that it uses.
  struct Rank {
    Rank(const RigOptions& options, int rank, std::shared_ptr<ThreadJob> job)
        : communicator(std::move(job), rank),
          backend(make_backend(options.numerics, options.plain_kernels)),
          staged(comm::make_staged_communicator(communicator, *backend.device)) {
      auto found = v4::open_model(options.model, options.n_ranks);
      EXPECT_TRUE(found.ok()) << found.status().to_string();
      opened = std::move(found).value();
      checkpoint::LoadOptions load;
      load.rank = rank;
      load.world = options.n_ranks;
      auto loaded = v4::load_weights(opened, *backend.device, load);
      EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
      weights.emplace(std::move(loaded).value());
      v4::ModelParts parts;
      parts.device = backend.device.get();
      parts.kernels = backend.kernels.get();
      parts.communicator = backend.device->host_visible()
                               ? static_cast<comm::Communicator*>(&communicator)
                               : staged.get();
      // Collectives that wait for the host cannot be recorded.
      parts.graphs = options.n_ranks == 1 ? backend.graphs.get() : nullptr;
      auto made =
          v4::V4Model::create(opened.config, *weights, parts, options.limits, options.kv_format);
      EXPECT_TRUE(made.ok()) << made.status().to_string();
      model = std::move(made).value();
    }

    ThreadCommunicator communicator;
    Backend backend;
    std::unique_ptr<comm::Communicator> staged;
    v4::OpenedModel opened;
    std::optional<checkpoint::WeightStore> weights;
    std::unique_ptr<v4::V4Model> model;
  };

  // The pool shared out evenly, the ids in descending order so that order cannot matter.
  void assign_pages(const v4::ModelLimits& limits) {
    const std::int64_t per_slot = limits.n_pages / limits.n_slots;
    for (const auto& rank : ranks_) {
      for (std::int32_t slot = 0; slot < limits.n_slots; ++slot) {
        std::vector<PageId> pages;
        for (std::int64_t i = 0; i < per_slot; ++i) {
          pages.push_back(static_cast<PageId>(limits.n_pages - 1 - slot * per_slot - i));
        }
        const auto n = std::min(per_slot, rank->model->kv_cache().layout().max_pages_per_slot());
        rank->model->kv_cache().set_pages(slot, 0,
                                          std::span(pages).first(static_cast<std::size_t>(n)));
      }
    }
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
};

// sqrt(sum (a - b)^2 / sum b^2).
inline double relative_l2(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

inline double max_difference(std::span<const float> a, std::span<const float> b) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return most;
}

inline TokenId greedy(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace tandem::testing
