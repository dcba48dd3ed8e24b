#include "engine/scheduler/step_pacer.h"

#include <algorithm>

namespace tandem::scheduler {

void StepPacer::record(bool had_decode, bool had_prefill, TimeUs step_us, TimeUs now) {
  constexpr double kNewWeight = 0.2;
  const auto time = static_cast<double>(step_us);
  if (had_prefill) {
    last_prefill_us_ = now;
  }
  if (!had_decode) {
    debt_us_ = 0.0;
  } else if (had_prefill) {
    const double owed = (decode_share_ * time - decode_step_us_) / (1.0 - decode_share_);
    debt_us_ = std::max(0.0, debt_us_) + std::max(0.0, owed);
  } else {
    debt_us_ -= time;
    decode_step_us_ += (decode_step_us_ == 0.0 ? 1.0 : kNewWeight) * (time - decode_step_us_);
  }
}

}  // namespace tandem::scheduler
