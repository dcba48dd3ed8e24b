#include "engine/runtime/sequence_state.h"

#include <algorithm>

#include "foundation/base/random.h"

namespace tandem::runtime {

SequenceState::SequenceState(SequenceId id, GenerationRequest request,
                             std::span<const TokenId> prompt, const SequenceOptions& options)
    : id_(id),
      request_(std::move(request)),
      options_(options),
      n_prompt_(static_cast<std::int64_t>(prompt.size())),
      seed_(request_.sampling.seed.value_or(options.default_seed)),
      thinking_(request_.thinking.starts_in_thinking && options.think_end_token >= 0),
      counts_needed_(sampling::uses_counts(request_.sampling)) {
  usage_.prompt_tokens = n_prompt_;
  if (counts_needed_ && request_.sampling.repetition_penalty != 1.0F) {
    counts_.add_prompt(prompt);
  }
  if (request_.constraint != nullptr) {
    mask_.resize((static_cast<std::size_t>(options.vocab_size) + 31) / 32);
  }
}

std::optional<TokenId> SequenceState::forced_token() const {
  const bool spent =
      request_.thinking.max_tokens >= 0 && usage_.thinking_tokens >= request_.thinking.max_tokens;
  return thinking_ && spent ? std::optional<TokenId>(options_.think_end_token) : std::nullopt;
}

Result<TokenOutput> SequenceState::advance(std::span<const float> logits,
                                           sampling::Sampler& sampler) {
  TANDEM_CHECK(!finished_.has_value(), "a finished sequence gets no more tokens");
  sampling::SampleInput input;
  input.logits = logits;
  input.counts = counts_needed_ ? &counts_ : nullptr;
  input.seed = seed_;
  input.position = next_position();
  input.forced = forced_token();
  if (request_.constraint != nullptr && !input.forced.has_value() &&
      request_.constraint->fill_mask(mask_)) {
    input.mask = mask_;
  }
  TANDEM_ASSIGN(sampling::SampleOutput sampled, sampler.sample(request_.sampling, input));
  if (request_.constraint != nullptr && !request_.constraint->accept(sampled.token)) {
    return internal_error("the grammar refuses token {} at position {} that its mask allowed",
                          sampled.token, input.position);
  }
  update(sampled.token);
  TokenOutput output;
  output.token = sampled.token;
  output.logprob = sampled.logprob;
  output.best = std::move(sampled.best);
  return output;
}

void SequenceState::update(TokenId token) {
  ++usage_.completion_tokens;
  if (counts_needed_) {
    counts_.add_generated(token);
  }
  if (thinking_) {
    thinking_ = token != options_.think_end_token;
    usage_.thinking_tokens += thinking_ ? 1 : 0;
  }
  const auto& stops = request_.stop_tokens;
  const bool stopped =
      !request_.ignore_eos && std::find(stops.begin(), stops.end(), token) != stops.end();
  if (stopped || (request_.constraint != nullptr && request_.constraint->is_finished())) {
    finished_ = FinishReason::kStop;
  } else if (usage_.completion_tokens >= options_.max_new_tokens) {
    finished_ = FinishReason::kLength;
  }
}

std::vector<TokenId> SequenceState::forced_tokens(int max) const {
  if (request_.constraint == nullptr || max <= 0 || forced_token().has_value()) {
    return {};
  }
  return request_.constraint->forced_tokens(max);
}

}  // namespace tandem::runtime
