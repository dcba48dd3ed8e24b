#include "compute/comm/backoff.h"

#include <algorithm>
#include <thread>

namespace tandem::comm {
namespace {

using std::chrono::microseconds;

constexpr int kSpinPolls = 64;             // before the clock is read at all
constexpr microseconds kYieldTime{3'000};  // ranks of one step are rarely further apart
constexpr microseconds kShortest{50};
constexpr microseconds kLongest{4'000};
constexpr int kShareOfWait = 64;  // a sleep adds at most 1/64 to what was waited already

}  // namespace

microseconds Backoff::sleep_after(microseconds waited) {
  if (waited < kYieldTime) {
    return microseconds{0};
  }
  return std::clamp(waited / kShareOfWait, kShortest, kLongest);
}

void Backoff::pause() {
  ++polls_;
  if (polls_ < kSpinPolls) {
    return;
  }
  if (polls_ == kSpinPolls) {
    start_ = Clock::now();
  }
  const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - start_);
  const microseconds sleep = sleep_after(waited);
  if (sleep.count() == 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(sleep);
  }
}

}  // namespace tandem::comm
