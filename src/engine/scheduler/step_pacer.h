// StepPacer: keeps running streams at a share of their undisturbed rate while prompts are read.
//
// A step with prompt rows takes t_m, one without takes t_d. If every mixed step is followed by
// decode-only steps that take T together, the streams run at (T + t_d) / (T + t_m) of their rate.
// That is at least s once T >= (s * t_m - t_d) / (1 - s): the debt that a mixed step leaves behind.
#pragma once

#include "foundation/base/clock.h"

namespace tandem::scheduler {

class StepPacer {
 public:
  // decode_share in [0, 1): s above; 0 lets prompts run in every step. Prompts get a step at least
  // every max_pause_us whatever the debt.
  StepPacer(double decode_share, TimeUs max_pause_us)
      : decode_share_(decode_share), max_pause_us_(max_pause_us) {}

  bool prefill_allowed(TimeUs now) const {
    return debt_us_ <= 0.0 || now - last_prefill_us_ >= max_pause_us_;
  }

  // After a step that ended at `now`.
  void record(bool had_decode, bool had_prefill, TimeUs step_us, TimeUs now);

  // Mean time of a decode-only step; 0: none yet.
  double decode_step_us() const { return decode_step_us_; }

 private:
  double decode_share_;
  TimeUs max_pause_us_;
  double decode_step_us_ = 0.0;
  double debt_us_ = 0.0;
  TimeUs last_prefill_us_ = 0;
};

}  // namespace tandem::scheduler
