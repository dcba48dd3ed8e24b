#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sampling/race.h"

namespace tandem::sampling {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr int kMaxLogprobs = 1024;

void apply_penalties(const SamplingParams& params, const TokenCounts& counts,
                     std::vector<float>& logits) {
  for (const auto& item : counts.entries()) {
    const TokenCounts::Entry& entry = item.second;
    float& logit = logits[static_cast<std::size_t>(item.first)];
    if (params.repetition_penalty != 1.0F) {
      logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    }
    if (entry.n_generated > 0) {
      logit -= params.presence_penalty +
               params.frequency_penalty * static_cast<float>(entry.n_generated);
    }
  }
}

void apply_mask(std::span<const std::uint32_t> mask, std::vector<float>& logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool allowed = i / 32 < mask.size() && ((mask[i / 32] >> (i % 32)) & 1U) != 0;
    if (!allowed) {
      logits[i] = kMasked;
    }
  }
}

// A sum of all bits of the exponent tells in one pass without branches whether a value is not
// finite; only then is it looked for.
std::optional<std::size_t> first_non_finite(std::span<const float> values) {
  float sum = 0.0F;
  for (const float value : values) {
    sum += value * 0.0F;
  }
  if (sum == 0.0F) {
    return std::nullopt;
  }
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(bad - values.begin());
}

}  // namespace

void TokenCounts::add_prompt(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    entries_[token].in_prompt = true;
  }
}

bool uses_counts(const SamplingParams& params) {
  return params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F ||
         params.repetition_penalty != 1.0F;
}

Status Sampler::prepare(const SamplingParams& params, const SampleInput& input) {
  const auto bad = first_non_finite(input.logits);
  if (bad.has_value()) {
    return internal_error("non_finite_logits: the logit of token {} at position {} is {}", *bad,
                          input.position, input.logits[*bad]);
  }
  logits_.assign(input.logits.begin(), input.logits.end());
  if (input.counts != nullptr && uses_counts(params)) {
    apply_penalties(params, *input.counts, logits_);
  }
  for (const auto& bias : params.logit_bias) {
    logits_[static_cast<std::size_t>(bias.first)] += bias.second;
  }
  if (!input.mask.empty()) {
    apply_mask(input.mask, logits_);
  }
  return ok_status();
}

Result<SampleOutput> Sampler::sample(const SamplingParams& params, const SampleInput& input) {
  TANDEM_TRY(prepare(params, input));
  const TokenId best = argmax(logits_);
  if (logits_[static_cast<std::size_t>(best)] == kMasked) {
    return internal_error("the token mask at position {} allows no token", input.position);
  }
  SampleOutput out;
  if (input.forced.has_value()) {
    out.token = *input.forced;
  } else {
    out.token = params.temperature <= 0.0F ? best : draw(params, input, best);
  }
  if (params.n_logprobs >= 0) {
    add_logprobs(params.n_logprobs, out.token, best, out);
  }
  return out;
}

TokenId Sampler::draw(const SamplingParams& params, const SampleInput& input, TokenId best) {
  const double temperature = params.temperature;
  const double top = logits_[static_cast<std::size_t>(best)];
  // min_p is a bound on the logit, so it needs no sorting and commutes with the others.
  const double least = params.min_p > 0.0F
                           ? top + temperature * std::log(static_cast<double>(params.min_p))
                           : -std::numeric_limits<double>::infinity();
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    // top_p counts the mass of tokens that min_p drops, so the bound waits until after it.
    if (logits_[i] != kMasked) {
      candidates_.push_back({static_cast<TokenId>(i), logits_[i]});
    }
  }
  if (params.top_k > 0) {
    keep_top_k(static_cast<std::size_t>(params.top_k));
  }
  if (params.top_p < 1.0F) {
    keep_top_p(params.top_p, top, temperature);
  }
  Race race(input.seed, input.position);
  for (const Candidate& candidate : candidates_) {
    if (candidate.logit >= least) {
      race.enter(candidate.token, std::exp((candidate.logit - top) / temperature));
    }
  }
  return race.winner() >= 0 ? race.winner() : best;
}

void Sampler::keep_top_k(std::size_t k) {
  if (k >= candidates_.size()) {
    return;
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                   candidates_.end(), better);
  candidates_.resize(k);
}

// Keeps the shortest list of best tokens whose mass reaches top_p. Sorts a growing head only: the
// mass of a language model sits in few tokens.
void Sampler::keep_top_p(double top_p, double top_logit, double temperature) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const auto weight = [&](const Candidate& c) {
    return std::exp((c.logit - top_logit) / temperature);
  };
  double total = 0.0;
  for (const Candidate& candidate : candidates_) {
    total += weight(candidate);
  }
  double mass = 0.0;
  std::size_t n_sorted = 0;
  for (std::size_t n_head = 64; n_sorted < candidates_.size(); n_head *= 8) {
    const std::size_t end = std::min(n_head, candidates_.size());
    std::partial_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(n_sorted),
                      candidates_.begin() + static_cast<std::ptrdiff_t>(end), candidates_.end(),
                      better);
    for (; n_sorted < end; ++n_sorted) {
      mass += weight(candidates_[n_sorted]);
      if (mass >= top_p * total) {
        candidates_.resize(n_sorted + 1);
        return;
      }
    }
  }
}

void Sampler::add_logprobs(int n, TokenId token, TokenId best, SampleOutput& out) {
  const double top = logits_[static_cast<std::size_t>(best)];
  double sum = 0.0;
  for (const float logit : logits_) {
    sum += std::exp(logit - top);
  }
  const double log_sum = top + std::log(sum);
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(logits_[static_cast<std::size_t>(id)] - log_sum);
  };
  out.logprob = logprob(token);
  const auto better = [&](TokenId a, TokenId b) {
    const float left = logits_[static_cast<std::size_t>(a)];
    const float right = logits_[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] != kMasked) {
      ids.push_back(static_cast<TokenId>(i));
    }
  }
  const std::size_t count = std::min(static_cast<std::size_t>(n), ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    better);
  for (std::size_t i = 0; i < count; ++i) {
    out.best.push_back({ids[i], logprob(ids[i])});
  }
}

Status validate(const SamplingParams& params, int vocab_size) {
  struct Range {
    const char* name;
    double found;
    double least;
    double most;
  };
  const Range ranges[] = {
      {"temperature", params.temperature, 0.0, 1e6},
      {"top_p", params.top_p, 1e-9, 1.0},
      {"top_k", static_cast<double>(params.top_k), 0.0, 1e9},
      {"min_p", params.min_p, 0.0, 1.0},
      {"presence_penalty", params.presence_penalty, -2.0, 2.0},
      {"frequency_penalty", params.frequency_penalty, -2.0, 2.0},
      {"repetition_penalty", params.repetition_penalty, 1e-6, 1e6},
      {"n_logprobs", static_cast<double>(params.n_logprobs), -1.0, kMaxLogprobs},
  };
  for (const Range& range : ranges) {
    if (!(range.found >= range.least && range.found <= range.most)) {
      return invalid_argument("{} is {}, expected {} to {}", range.name, range.found, range.least,
                              range.most);
    }
  }
  for (const auto& bias : params.logit_bias) {
    if (bias.first < 0 || bias.first >= vocab_size || !std::isfinite(bias.second)) {
      return invalid_argument(
          "logit_bias of token {} is {}, expected a token of 0 to {} and a finite number",
          bias.first, bias.second, vocab_size - 1);
    }
  }
  return ok_status();
}

}  // namespace tandem::sampling
