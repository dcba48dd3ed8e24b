// Sample: what one streamed request showed. Tokens come from the server's usage. An arrival is one
// network read that carried text: servers send several tokens at once, so chunks are no tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "foundation/net/http_client.h"

namespace tandem::bench {

struct Target {
  net::Url url;
  std::string api_key;
  std::string model;
  std::int64_t timeout_ms = 600'000;  // longest wait for the next byte
};

struct RequestShape {
  std::int64_t max_tokens = 128;
  double temperature = 0;
  bool natural = false;  // answers may end by themselves; else exactly max_tokens
};

struct Sample {
  double ttft_s = 0;
  double total_s = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t arrivals = 0;
  double gap_median_s = 0;  // between arrivals
  double gap_p99_s = 0;
  double gap_max_s = 0;

  // Tokens per second after the first; 0 if all text arrived at once.
  double decode_rate() const;
};

// Sends one chat request and reads its stream. `arrived` is called for each arrival with seconds
// since the request was sent.
// ERRORS: kFailedPrecondition (a status other than 200, with the start of the body); kDataLoss (no
// text or no usage); kCancelled (`stop`); those of net::http_fetch.
Result<Sample> stream_request(const Target& target, const RequestShape& shape,
                              const std::string& prompt, const std::atomic<bool>& stop,
                              const std::function<void(double)>& arrived = nullptr);

// GET or POST of a small body that is read whole.
Result<net::HttpResponse> fetch_text(const Target& target, const std::string& path,
                                     const std::string& body, const std::atomic<bool>& stop);

// The first model that the server lists.
Result<std::string> first_model(const Target& target, const std::atomic<bool>& stop);

std::int64_t int_member(const json::Value& value, std::string_view key);

}  // namespace tandem::bench
