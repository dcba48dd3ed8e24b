// Smoke: three short requests that a working server answers and a broken one does not: a chat, a
// forced tool call, and a long prompt asked twice, whose greedy answers must be equal.
#pragma once

#include <string>
#include <vector>

#include "foundation/net/http_client.h"

namespace tandem::cluster {

struct SmokeStep {
  std::string name;
  bool ok = false;
  std::string detail;  // what was found; on failure also what was expected
  double seconds = 0;
};

struct SmokeOptions {
  std::string api_key;
  std::int64_t long_words = 3000;  // of the long prompt
};

std::vector<SmokeStep> run_smoke(const net::Url& url, const SmokeOptions& options);

}  // namespace tandem::cluster
