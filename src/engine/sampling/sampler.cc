#include "engine/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

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

constexpr std::size_t kLanes = 16;  // of sums that the compiler can turn into vectors

std::optional<std::size_t> first_non_finite(std::span<const float> values) {
  // x * 0 is 0 for finite x, else NaN, and NaN stays.
  std::array<float, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += values[i + lane] * 0.0F;
    }
  }
  for (; i < values.size(); ++i) {
    lanes[0] += values[i] * 0.0F;
  }
  if (std::all_of(lanes.begin(), lanes.end(), [](float sum) { return sum == 0.0F; })) {
    return std::nullopt;
  }
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(bad - values.begin());
}

// exp(x) for x <= 0 within 2e-7 of the value, 1e-38 and less becomes 1e-38; without branches.
// 2^n * 2^f with |f| <= 1/2: n goes into the exponent, 2^f is its Taylor series.
inline float exp_below_one(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float y = (x > -87.0F ? x : -87.0F) * kLog2E;
  const float shifted = y + kRound;
  const float f = (y - (shifted - kRound)) * 0.693147181F;
  const float p =
      1.0F +
      f * (1.0F + f * (0.5F + f * (1.0F / 6 + f * (1.0F / 24 + f * (1.0F / 120 + f / 720)))));
  const std::uint32_t n = std::bit_cast<std::uint32_t>(shifted) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + n);
}

// Sum of exp((logit - top) * scale).
double sum_exp(std::span<const float> logits, double top, double scale) {
  const auto shift = static_cast<float>(top);
  const auto factor = static_cast<float>(scale);
  double total = 0.0;
  std::size_t i = 0;
  // Float lanes over a block, doubles over blocks.
  constexpr std::size_t kBlock = 1024;
  for (; i + kBlock <= logits.size(); i += kBlock) {
    std::array<float, kLanes> lanes{};
    for (std::size_t j = i; j < i + kBlock; j += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += exp_below_one((logits[j + lane] - shift) * factor);
      }
    }
    total += std::accumulate(lanes.begin(), lanes.end(), 0.0);
  }
  for (; i < logits.size(); ++i) {
    total += exp_below_one((logits[i] - shift) * factor);
  }
  return total;
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
  logits_ = input.logits;
  const bool penalties = input.counts != nullptr && uses_counts(params);
  if (!penalties && params.logit_bias.empty() && input.mask.empty()) {
    return ok_status();
  }
  changed_.assign(input.logits.begin(), input.logits.end());
  if (penalties) {
    apply_penalties(params, *input.counts, changed_);
  }
  for (const auto& bias : params.logit_bias) {
    changed_[static_cast<std::size_t>(bias.first)] += bias.second;
  }
  if (!input.mask.empty()) {
    apply_mask(input.mask, changed_);
  }
  logits_ = changed_;
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
    out.token = params.temperature < kLeastTemperature ? best : draw(params, input, best);
  }
  if (params.n_logprobs >= 0) {
    add_logprobs(params.n_logprobs, out.token, best, out);
  }
  return out;
}

TokenId Sampler::draw(const SamplingParams& params, const SampleInput& input, TokenId best) {
  const double temperature = params.temperature;
  const double scale = 1.0 / temperature;
  const double top = logits_[static_cast<std::size_t>(best)];
  const double least_log_weight = params.min_p > 0.0F ? std::log(static_cast<double>(params.min_p))
                                                      : -std::numeric_limits<double>::infinity();
  Race race(input.seed, input.position);
  race.enter(best, 0.0);
  const auto enter = [&](TokenId token, float logit) {
    const double log_weight = (logit - top) * scale;
    if (log_weight >= least_log_weight) {
      race.enter(token, log_weight);
    }
  };
  if (params.top_k <= 0 && params.top_p >= 1.0F) {
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      enter(static_cast<TokenId>(i), logits_[i]);
    }
    return race.winner();
  }
  // The head of the distribution is nearly always all that the filters keep.
  const double head = top - 8.0 * temperature;
  collect(head);
  if (params.top_k > 0) {
    const auto k = static_cast<std::size_t>(params.top_k);
    if (candidates_.size() < k) {
      collect(-std::numeric_limits<double>::max());
    }
    keep_top_k(k);
  }
  if (params.top_p < 1.0F) {
    const auto mass = [&] {
      double sum = 0.0;
      for (const Candidate& candidate : candidates_) {
        sum += std::exp((candidate.logit - top) * scale);
      }
      return sum;
    };
    const double kept = mass();
    const double wanted = params.top_p * (params.top_k > 0 ? kept : sum_exp(logits_, top, scale));
    if (kept < wanted) {
      collect(-std::numeric_limits<double>::max());
    }
    keep_top_p(wanted, top, scale);
  }
  for (const Candidate& candidate : candidates_) {
    enter(candidate.token, candidate.logit);
  }
  return race.winner();
}

// Candidates: all tokens with a logit of at least `least`; never masked ones.
void Sampler::collect(double least) {
  const auto bound = static_cast<float>(
      std::max(least, static_cast<double>(std::numeric_limits<float>::lowest())));
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] >= bound) {
      candidates_.push_back({static_cast<TokenId>(i), logits_[i]});
    }
  }
}

void Sampler::keep_top_k(std::size_t k) {
  if (k >= candidates_.size()) {
    return;
  }
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                   candidates_.end(), better);
  candidates_.resize(k);
}

// Keeps the shortest list of best tokens whose weights reach `mass`. Sorts a growing head only: the
// mass of a language model sits in few tokens.
void Sampler::keep_top_p(double mass, double top, double scale) {
  double sum = 0.0;
  std::size_t n_sorted = 0;
  for (std::size_t n_head = 64; n_sorted < candidates_.size(); n_head *= 8) {
    const std::size_t end = std::min(n_head, candidates_.size());
    std::partial_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(n_sorted),
                      candidates_.begin() + static_cast<std::ptrdiff_t>(end), candidates_.end(),
                      better);
    for (; n_sorted < end; ++n_sorted) {
      sum += std::exp((candidates_[n_sorted].logit - top) * scale);
      if (sum >= mass) {
        candidates_.resize(n_sorted + 1);
        return;
      }
    }
  }
}

void Sampler::add_logprobs(int n, TokenId token, TokenId best, SampleOutput& out) {
  const double top = logits_[static_cast<std::size_t>(best)];
  const double log_sum = top + std::log(sum_exp(logits_, top, 1.0));
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(logits_[static_cast<std::size_t>(id)] - log_sum);
  };
  out.logprob = logprob(token);
  if (n == 0) {
    return;
  }
  collect(top - 8.0);
  if (candidates_.size() < static_cast<std::size_t>(n)) {
    collect(-std::numeric_limits<double>::max());
  }
  const std::size_t count = std::min(static_cast<std::size_t>(n), candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates_.end(), better);
  for (std::size_t i = 0; i < count; ++i) {
    out.best.push_back({candidates_[i].token, logprob(candidates_[i].token)});
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
