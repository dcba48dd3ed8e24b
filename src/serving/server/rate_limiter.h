// RateLimiter: how many requests and tokens a key may use per minute. Two buckets per key, each
// filled evenly up to one minute's worth; tokens are charged when a request ends, so one large
// request may overdraw the bucket and the next ones wait. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "foundation/base/clock.h"
#include "serving/protocol/api_error.h"
#include "serving/server/api_keys.h"

namespace tandem::server {

class RateLimiter {
 public:
  explicit RateLimiter(const Clock& clock) : clock_(clock) {}

  // Takes one request from the key's bucket, or says when to come again: 429 with the seconds.
  // Remembers the key's limits.
  std::optional<protocol::ApiError> admit(const KeyOwner& owner);

  // The same for a key that was admitted before: a turn of its WebSocket.
  std::optional<protocol::ApiError> admit_again(const std::string& name);

  // Prompt and generated tokens of a request that ended. Keys without limits are ignored.
  void charge(const std::string& name, std::int64_t tokens);

 private:
  // At most `per_minute`; 0: no limit.
  struct Bucket {
    std::int64_t per_minute = 0;
    double level = 0;

    void set_limit(std::int64_t limit);
    void refill(TimeUs elapsed_us);
    // Seconds until one unit is there; 0 if it is now.
    int wait_s() const;
  };
  struct Key {
    Bucket requests;
    Bucket tokens;
    TimeUs updated_us = 0;
  };

  std::optional<protocol::ApiError> take(const std::string& name, Key& key);
  void refill(Key& key) const;

  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Key> keys_;
};

}  // namespace tandem::server
