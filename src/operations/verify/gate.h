// Gate: one independent promise of a server, checked over the wire. A gate asserts through its
// GateContext, which records every assertion with the request that it speaks about.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "operations/verify/api_client.h"
#include "operations/verify/report.h"

namespace tandem::verify {

struct VerifyOptions {
  net::Url url;
  std::string api_key;
  std::string model;  // "": the server's first model
  std::int64_t timeout_ms = 1'800'000;
  std::int64_t multiturn_prefix_tokens = 21'000;
  int multiturn_turns = 6;
  std::vector<std::int64_t> recall_tokens = {1'024, 4'096, 16'384};
  std::string only;  // run gates whose name starts with this
};

class GateContext {
 public:
  GateContext(ApiClient& client, const VerifyOptions& options, GateResult& result)
      : client_(client), options_(options), result_(result) {}

  ApiClient& client() { return client_; }
  const VerifyOptions& options() const { return options_; }
  const std::string& model() const { return client_.model(); }

  // Records one assertion; returns `ok`. `got` is kept only for a failure.
  bool check(bool ok, std::string_view name, std::string_view expected, std::string_view got);

  // check() for equality of texts.
  bool check_equal(std::string_view name, std::string_view expected, std::string_view got);

  // Keeps a figure in the report.
  void value(std::string_view name, json::Value figure);

  // Marks the gate as not run.
  void skip(std::string reason);

  bool skipped() const { return result_.state == GateState::kSkipped; }

 private:
  ApiClient& client_;
  const VerifyOptions& options_;
  GateResult& result_;
};

struct Gate {
  std::string name;
  std::string title;
  bool required = true;
  // Asserts through the context. An error Status fails the gate with its message.
  std::function<Status(GateContext&)> run;
};

// All gates in the order in which they run.
std::vector<Gate> all_gates();

// Called before and after each gate, for the live checklist.
struct Progress {
  std::function<void(const Gate&)> started;
  std::function<void(const GateResult&)> finished;
};

// Runs the chosen gates one after another. A failing gate never stops later ones; `stop` gives the
// current request up, and its gate and later ones are reported as skipped.
Report run_gates(const std::vector<Gate>& gates, const VerifyOptions& options,
                 const Progress& progress, const std::atomic<bool>& stop);

}  // namespace tandem::verify
