#include "operations/verify/gate.h"

#include <chrono>
#include <ctime>

#include "operations/verify/choose_model.h"

namespace tandem::verify {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

GateResult run_gate(const Gate& gate, ApiClient& client, const VerifyOptions& options,
                    const std::atomic<bool>& stop) {
  GateResult result;
  result.name = gate.name;
  result.title = gate.title;
  result.required = gate.required;
  GateContext context(client, options, result);
  const auto start = std::chrono::steady_clock::now();
  const Status status = gate.run(context);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (status.code() == StatusCode::kCancelled && stop.load()) {
    result.state = GateState::kSkipped;
    result.reason = "interrupted";
  } else if (!status.ok()) {
    result.state = GateState::kFailed;
    result.reason = fmt::format("{}; request: {}", status.to_string(), client.last_request());
  } else if (result.failed_assertions() > 0) {
    result.state = GateState::kFailed;
  } else if (result.assertions.empty() && !context.skipped()) {
    result.state = GateState::kFailed;
    result.reason = "the gate asserted nothing";
  }
  return result;
}

}  // namespace

bool GateContext::check(bool ok, std::string_view name, std::string_view expected,
                        std::string_view got) {
  Assertion assertion;
  assertion.name = std::string(name);
  assertion.ok = ok;
  if (!ok) {
    assertion.request = client_.last_request();
    assertion.expected = std::string(expected);
    assertion.got = got.empty() ? "(nothing)" : shorten(got, 2'000);
  }
  result_.assertions.push_back(std::move(assertion));
  return ok;
}

bool GateContext::check_equal(std::string_view name, std::string_view expected,
                              std::string_view got) {
  return check(expected == got, name, expected, got);
}

void GateContext::value(std::string_view name, json::Value figure) {
  result_.values[name] = std::move(figure);
}

void GateContext::skip(std::string reason) {
  result_.state = GateState::kSkipped;
  result_.reason = std::move(reason);
}

Report run_gates(const std::vector<Gate>& gates, const VerifyOptions& options,
                 const Progress& progress, const std::atomic<bool>& stop) {
  Report report;
  report.started_at = utc_now();
  report.url = fmt::format("{}://{}:{}{}", options.url.scheme, options.url.host, options.url.port,
                           options.url.prefix);
  ApiClient client(options.url, options.api_key, options.timeout_ms);
  client.set_cancel(&stop);
  const Status reachable = choose_model(client, options.model);
  report.reachable = reachable.code() != StatusCode::kUnavailable;
  report.model = client.model();
  for (const Gate& gate : gates) {
    if (gate.name.compare(0, options.only.size(), options.only) != 0) {
      continue;
    }
    progress.started(gate);
    GateResult result;
    if (stop.load()) {
      result = {gate.name, gate.title, gate.required, GateState::kSkipped, "interrupted"};
    } else if (!reachable.ok()) {
      result = {gate.name, gate.title, gate.required, GateState::kFailed, reachable.to_string()};
    } else {
      result = run_gate(gate, client, options, stop);
    }
    progress.finished(result);
    report.gates.push_back(std::move(result));
  }
  return report;
}

}  // namespace tandem::verify
