// StuckClock: how long queued work has shown no progress. A long step is not a stuck one: every
// collective that the device reaches starts the clock anew.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem::cuda {

class StuckClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  StuckClock(std::chrono::milliseconds limit, Time now, std::int64_t progress)
      : limit_(limit), since_(now), progress_(progress) {}

  // True once when `progress` has not changed for the limit.
  bool expired(Time now, std::int64_t progress) {
    if (progress != progress_) {
      progress_ = progress;
      since_ = now;
    }
    if (reported_ || now - since_ < limit_) {
      return false;
    }
    reported_ = true;
    return true;
  }

 private:
  std::chrono::milliseconds limit_;
  Time since_;
  std::int64_t progress_;
  bool reported_ = false;
};

}  // namespace tandem::cuda
