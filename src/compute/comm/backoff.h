// Backoff: how a rank waits for another one. It spins while an answer is likely within
// microseconds, yields while a step is running, and sleeps longer and longer when nothing happens,
// because a spinning idle rank takes a core from whoever has work.
#pragma once

#include <chrono>

namespace tandem::comm {

class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  // Call each time a poll found nothing.
  void pause();

  // How long pause() sleeps after `waited` without news: zero means spin or yield.
  static std::chrono::microseconds sleep_after(std::chrono::microseconds waited);

 private:
  int polls_ = 0;
  Clock::time_point start_;
};

}  // namespace tandem::comm
