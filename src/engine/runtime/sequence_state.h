// SequenceState: everything that decides the next token of one sequence once its logits are there:
// sampling, grammar, thinking budget, stop. One token at a time, whether the row was decoded or
// verified as a draft, so that speculation cannot change anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/runtime/engine.h"
#include "engine/sampling/sampler.h"

namespace tandem::runtime {

struct SequenceOptions {
  int vocab_size = 0;
  TokenId think_end_token = -1;     // -1: the model has no thinking
  std::uint64_t default_seed = 0;   // used if the request has none
  std::int64_t max_new_tokens = 1;  // at most, whatever the request says
};

class SequenceState {
 public:
  // The prompt has been moved out of the request; n_prompt is its length.
  SequenceState(SequenceId id, GenerationRequest request, std::span<const TokenId> prompt,
                const SequenceOptions& options);

  // The next token from its logits [vocab]. REQUIRES: not finished.
  // ERRORS: those of Sampler; the sequence is not to be continued then.
  Result<TokenOutput> advance(std::span<const float> logits, sampling::Sampler& sampler);

  std::optional<FinishReason> finished() const { return finished_; }

  // Tokens that the grammar lets come next without a choice.
  std::vector<TokenId> forced_tokens(int max) const;

  SequenceId id() const { return id_; }
  const GenerationRequest& request() const { return request_; }
  std::uint64_t seed() const { return seed_; }
  // Position of the token that comes next.
  Position next_position() const { return n_prompt_ + usage_.completion_tokens; }
  Usage& usage() { return usage_; }

 private:
  std::optional<TokenId> forced_token() const;
  void update(TokenId token);

  SequenceId id_;
  GenerationRequest request_;
  SequenceOptions options_;
  std::int64_t n_prompt_;
  std::uint64_t seed_;
  bool thinking_;
  bool counts_needed_;
  sampling::TokenCounts counts_;
  std::vector<std::uint32_t> mask_;
  Usage usage_;
  std::optional<FinishReason> finished_;
};

}  // namespace tandem::runtime
