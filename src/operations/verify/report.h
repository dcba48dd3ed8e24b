// Report: what a verification run found. Every assertion has a name, and a failed one carries the
// request, what was expected and what was got.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::verify {

struct Assertion {
  std::string name;  // "responses.stream.sequence_numbers"
  bool ok = false;
  std::string request;   // what was sent, shortened
  std::string expected;  // for a failed assertion
  std::string got;
};

enum class GateState {
  kPassed,
  kFailed,
  kSkipped,  // not run; Gate::reason says why
};

struct GateResult {
  std::string name;   // "responses.stream"
  std::string title;  // one line for people
  bool required = true;
  GateState state = GateState::kPassed;
  std::string reason;  // of a skip, or of a failure outside the assertions
  std::vector<Assertion> assertions;
  json::Object values;  // figures worth keeping, for example cached tokens per turn
  double seconds = 0;

  int failed_assertions() const;
};

struct Report {
  std::string url;
  std::string model;
  std::string started_at;  // RFC 3339, UTC
  bool reachable = true;   // false: nothing answers at the address
  std::vector<GateResult> gates;

  // True if no required gate failed and at least one gate ran.
  bool passed() const;

  int skipped() const;
};

// {"schema_version": 1, "url", "model", "status": "PASS"|"FAIL", "gates": {...}}
std::string to_json(const Report& report);

// JUnit XML: one test case per assertion, one suite per gate.
std::string to_junit(const Report& report);

// One self-contained HTML page with the evidence.
std::string to_html(const Report& report);

}  // namespace tandem::verify
