// Clock: time as a parameter, so that policy code can be simulated.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

// Microseconds on a monotonic scale with an arbitrary origin.
using TimeUs = std::int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic time in microseconds.
  virtual TimeUs now_us() const = 0;
  // Seconds since 1970-01-01 UTC, for "created" fields and file stamps.
  virtual std::int64_t unix_seconds() const = 0;
};

// The machine's own clocks.
const Clock& system_clock();

// A clock that tests move by hand.
class ManualClock final : public Clock {
 public:
  TimeUs now_us() const override { return now_us_; }

  std::int64_t unix_seconds() const override { return unix_seconds_ + now_us_ / 1'000'000; }

  void advance_us(TimeUs delta) { now_us_ += delta; }

 private:
  TimeUs now_us_ = 0;
  std::int64_t unix_seconds_ = 1'700'000'000;
};

}  // namespace tandem
