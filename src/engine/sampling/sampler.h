// Sampler: from one row of logits to one token. Pure: the answer depends on the arguments only.
//
// Order: penalties, bias, mask; log-probabilities are of what stands here (T = 1). Then
// temperature, top_k, top_p, min_p, and the draw (see Race). At least one token always survives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/sampling/sampling_params.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::sampling {

// Which tokens a sequence has, for the penalties.
class TokenCounts {
 public:
  struct Entry {
    bool in_prompt = false;
    std::int32_t n_generated = 0;
  };

  void add_prompt(std::span<const TokenId> tokens);
  void add_generated(TokenId token) { ++entries_[token].n_generated; }
  const std::unordered_map<TokenId, Entry>& entries() const { return entries_; }

 private:
  std::unordered_map<TokenId, Entry> entries_;
};

// True if the parameters need TokenCounts at all.
bool uses_counts(const SamplingParams& params);

struct SampleInput {
  std::span<const float> logits;        // [vocab], finite
  std::span<const std::uint32_t> mask;  // bit per allowed token; empty: all are
  const TokenCounts* counts = nullptr;  // nullptr: no penalties
  std::uint64_t seed = 0;
  Position position = 0;          // of the token that is sampled
  std::optional<TokenId> forced;  // this token whatever the logits say
};

struct SampleOutput {
  TokenId token = 0;
  std::optional<float> logprob;    // if n_logprobs >= 0
  std::vector<TokenLogprob> best;  // n_logprobs entries, best first, ties by id
};

// Holds only scratch memory; use one per thread.
class Sampler {
 public:
  // ERRORS: kInternal "non_finite_logits" names the first bad entry; kInternal if the mask allows
  // no token of the vocabulary.
  Result<SampleOutput> sample(const SamplingParams& params, const SampleInput& input);

 private:
  struct Candidate {
    TokenId token;
    float logit;
  };

  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }
  Status prepare(const SamplingParams& params, const SampleInput& input);
  TokenId draw(const SamplingParams& params, const SampleInput& input, TokenId best);
  void collect(double least);
  void keep_top_k(std::size_t k);
  void keep_top_p(double mass, double top, double scale);
  void add_logprobs(int n, TokenId token, TokenId best, SampleOutput& out);

  std::span<const float> logits_;  // after penalties, bias and mask
  std::vector<float> changed_;     // where they are if they differ from the input
  std::vector<Candidate> candidates_;
};

// ERRORS: kInvalidArgument names the parameter that is out of range.
Status validate(const SamplingParams& params, int vocab_size);

}  // namespace tandem::sampling
