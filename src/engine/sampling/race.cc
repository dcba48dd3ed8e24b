#include "engine/sampling/race.h"

#include <algorithm>
#include <cmath>

namespace tandem::sampling {

void Race::enter(TokenId token, double weight) {
  if (!(weight > 0.0)) {
    return;
  }
  // Uniform in (0, 1), never 0 or 1.
  const std::uint64_t bits =
      mix64(key_ + static_cast<std::uint64_t>(token) * 0xD1342543DE82EF95ULL) >> 11;
  const double u = (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
  // -log(u) >= 1 - u: most tokens lose without a logarithm.
  if (winner_ >= 0 && 1.0 - u > best_ * weight) {
    return;
  }
  const double arrival = -std::log(u) / weight;
  if (winner_ < 0 || arrival < best_ || (arrival == best_ && token < winner_)) {
    winner_ = token;
    best_ = arrival;
  }
}

TokenId argmax(std::span<const float> values) {
  return static_cast<TokenId>(std::max_element(values.begin(), values.end()) - values.begin());
}

TokenId draw_draft(std::span<const float> logits, float temperature, std::uint64_t seed,
                   Position position) {
  const TokenId best = argmax(logits);
  if (temperature <= 0.0F) {
    return best;
  }
  const double top = logits[static_cast<std::size_t>(best)];
  Race race(seed, position);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    race.enter(static_cast<TokenId>(i), std::exp((logits[i] - top) / temperature));
  }
  return race.winner() >= 0 ? race.winner() : best;
}

}  // namespace tandem::sampling
