// RequestMetrics: what the server counts itself, and the engine's figures, as one Prometheus page.
// Names of our own and the `vllm:` names that existing dashboards and the live verifier read.
// SOURCE: api.md 0.5, 3.11.
#pragma once

#include <memory>
#include <string>

#include "engine/runtime/engine.h"
#include "foundation/base/clock.h"

namespace tandem::server {

class RequestMetrics {
 public:
  explicit RequestMetrics(const std::string& model_name);
  ~RequestMetrics();
  RequestMetrics(const RequestMetrics&) = delete;
  RequestMetrics& operator=(const RequestMetrics&) = delete;

  // A choice whose client got the whole answer; `reason` as chat names it.
  void finished(const std::string& reason);
  // A request whose client left or whose server stopped. Never counted as success.
  void aborted();
  void first_token(TimeUs since_request);
  void next_token(TimeUs since_last);
  void whole_request(TimeUs since_request);
  void response(int http_status);

  // Text format 0.0.4.
  std::string page(const runtime::EngineStats& stats, const runtime::EngineHealth& health,
                   std::int64_t connections) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::server
