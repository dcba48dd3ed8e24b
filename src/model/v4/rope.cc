#include "model/v4/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::v4 {

InvFreq plain_inv_freq(double theta) {
  InvFreq freq{};
  for (std::size_t k = 0; k < freq.size(); ++k) {
    const auto power =
        static_cast<float>(std::pow(theta, 2.0 * static_cast<double>(k) / tensor::kRopeDim));
    freq[k] = 1.0F / power;
  }
  return freq;
}

InvFreq yarn_inv_freq(double theta, const YarnParams& yarn) {
  const auto correction = [&](double rotations) {
    return tensor::kRopeDim *
           std::log(yarn.original_positions / (2.0 * std::numbers::pi * rotations)) /
           (2.0 * std::log(theta));
  };
  const double low = std::max(std::floor(correction(yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(correction(yarn.beta_slow)), tensor::kRopeDim - 1.0);
  const double width = std::max(high - low, 0.001);
  InvFreq freq = plain_inv_freq(theta);
  for (std::size_t k = 0; k < freq.size(); ++k) {
    const auto ramp =
        static_cast<float>(std::clamp((static_cast<double>(k) - low) / width, 0.0, 1.0));
    freq[k] = freq[k] / static_cast<float>(yarn.factor) * ramp + freq[k] * (1.0F - ramp);
  }
  return freq;
}

}  // namespace tandem::v4
