#include "serving/server/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace tandem::server {
namespace {

constexpr double kUsPerMinute = 60e6;
constexpr double kSecondsPerMinute = 60;

protocol::ApiError over_limit(const std::string& name, std::int64_t limit, const char* what,
                              int wait_s) {
  // The words "try again in Ns" are what Codex looks for.
  protocol::ApiError error = protocol::to_api_error(
      resource_exhausted("key '{}' is over its limit of {} {} per minute; try again in {}s", name,
                         limit, what, wait_s));
  error.retry_after_s = wait_s;
  return error;
}

}  // namespace

// A new limit starts with a full bucket.
void RateLimiter::Bucket::set_limit(std::int64_t limit) {
  if (limit != per_minute) {
    per_minute = limit;
    level = static_cast<double>(limit);
  }
}

void RateLimiter::Bucket::refill(TimeUs elapsed_us) {
  const auto full = static_cast<double>(per_minute);
  level = std::min(full, level + full * static_cast<double>(elapsed_us) / kUsPerMinute);
}

int RateLimiter::Bucket::wait_s() const {
  if (per_minute == 0 || level >= 1) {
    return 0;
  }
  return static_cast<int>(
      std::ceil((1 - level) * kSecondsPerMinute / static_cast<double>(per_minute)));
}

void RateLimiter::refill(Key& key) const {
  const TimeUs now = clock_.now_us();
  key.requests.refill(now - key.updated_us);
  key.tokens.refill(now - key.updated_us);
  key.updated_us = now;
}

std::optional<protocol::ApiError> RateLimiter::take(const std::string& name, Key& key) {
  refill(key);
  if (const int wait_s = key.requests.wait_s()) {
    return over_limit(name, key.requests.per_minute, "requests", wait_s);
  }
  if (const int wait_s = key.tokens.wait_s()) {
    return over_limit(name, key.tokens.per_minute, "tokens", wait_s);
  }
  key.requests.level -= 1;
  return std::nullopt;
}

std::optional<protocol::ApiError> RateLimiter::admit(const KeyOwner& owner) {
  const std::lock_guard lock(mutex_);
  if (owner.requests_per_minute == 0 && owner.tokens_per_minute == 0) {
    keys_.erase(owner.name);
    return std::nullopt;
  }
  Key& key = keys_.try_emplace(owner.name, Key{{}, {}, clock_.now_us()}).first->second;
  key.requests.set_limit(owner.requests_per_minute);
  key.tokens.set_limit(owner.tokens_per_minute);
  return take(owner.name, key);
}

std::optional<protocol::ApiError> RateLimiter::admit_again(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(name);
  return found == keys_.end() ? std::nullopt : take(name, found->second);
}

void RateLimiter::charge(const std::string& name, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(name);
  if (found != keys_.end()) {
    refill(found->second);
    found->second.tokens.level -= static_cast<double>(tokens);
  }
}

}  // namespace tandem::server
