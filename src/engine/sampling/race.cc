#include "engine/sampling/race.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace tandem::sampling {
namespace {

constexpr double kLn2 = 0.6931471805599453;

// At most ln(value), within ln 2. REQUIRES: value > 0 and normal.
double log_below(double value) {
  constexpr int kMantissaBits = 52;
  constexpr int kBias = 1023;
  const auto exponent = static_cast<int>(std::bit_cast<std::uint64_t>(value) >> kMantissaBits);
  return kLn2 * (exponent - kBias);
}

}  // namespace

void Race::enter(TokenId token, double log_weight) {
  // Uniform in (0, 1), never 0 or 1.
  const std::uint64_t bits =
      mix64(key_ + static_cast<std::uint64_t>(token) * 0xD1342543DE82EF95ULL) >> 11;
  const double u = (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
  // To win, -log(u) < best * weight; and -log(u) >= 1 - u. One part in 1e9 guards the rounding.
  if (winner_ >= 0 && log_weight < log_below((1.0 - u) / best_) - 1e-9) {
    return;
  }
  const double weight = std::exp(log_weight);
  if (weight <= 0.0) {
    return;
  }
  const double arrival = -std::log(u) / weight;
  if (winner_ < 0 || arrival < best_ || (arrival == best_ && token < winner_)) {
    winner_ = token;
    best_ = arrival;
  }
}

// Lanes without dependencies between them, so that the compiler can use vectors.
TokenId argmax(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (; i < values.size(); ++i) {
    lanes[0] = std::max(lanes[0], values[i]);
  }
  const float best = *std::max_element(lanes.begin(), lanes.end());
  return static_cast<TokenId>(std::find(values.begin(), values.end(), best) - values.begin());
}

TokenId draw_draft(std::span<const float> logits, float temperature, std::uint64_t seed,
                   Position position) {
  const TokenId best = argmax(logits);
  if (temperature < kLeastTemperature) {
    return best;
  }
  const double top = logits[static_cast<std::size_t>(best)];
  const double scale = 1.0 / temperature;
  Race race(seed, position);
  race.enter(best, 0.0);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    race.enter(static_cast<TokenId>(i), (logits[i] - top) * scale);
  }
  return race.winner();
}

}  // namespace tandem::sampling
