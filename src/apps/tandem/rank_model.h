// RankModel: one rank's device, weights and model, loaded and ready to run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/tandem/compute_parts.h"
#include "apps/tandem/serve_config.h"
#include "compute/comm/communicator.h"
#include "engine/runtime/v4_forward_model.h"
#include "foundation/base/status.h"
#include "model/checkpoint/weight_store.h"
#include "model/text/tokenizer.h"
#include "model/v4/model.h"
#include "model/v4/open_model.h"

namespace tandem::apps {

// The model stands last: it uses all that stands before it and must go first.
struct RankModel {
  v4::OpenedModel opened;
  std::unique_ptr<ComputeParts> compute;
  std::optional<checkpoint::WeightStore> weights;
  std::unique_ptr<v4::V4Model> model;
  std::unique_ptr<runtime::ForwardModel> forward;
};

// The checkpoint's tokenizer, with all that chat needs. ERRORS: kNotFound, kInvalidArgument.
Result<text::Tokenizer> load_tokenizer(const v4::OpenedModel& opened);

// Most drafts per sequence and step: the config's, or the default of the checkpoint's drafter.
std::int32_t draft_tokens_of(const ServeConfig& config, const v4::ModelConfig& model);

// Lines for the operator; rank 0 prints them, the others are silent.
using StartLine = std::function<void(const std::string&)>;

// Opens and checks the checkpoint, plans memory and prints the table, loads, builds.
// ERRORS: of open_model and load_weights; kResourceExhausted if the plan does not fit.
Result<std::unique_ptr<RankModel>> load_rank_model(const ServeConfig& config,
                                                   comm::Communicator& communicator,
                                                   const StartLine& say);

}  // namespace tandem::apps
