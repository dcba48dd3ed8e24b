#include "operations/verify/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::verify {
namespace {

std::string_view state_name(GateState state) {
  switch (state) {
    case GateState::kPassed:
      return "PASS";
    case GateState::kFailed:
      return "FAIL";
    case GateState::kSkipped:
      return "SKIP";
  }
  return "?";
}

// Text that is safe inside XML and HTML, in attributes too.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 has no other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

json::Object assertion_json(const Assertion& assertion) {
  json::Object out{{"name", assertion.name}, {"ok", assertion.ok}};
  if (!assertion.ok) {
    out["request"] = assertion.request;
    out["expected"] = assertion.expected;
    out["got"] = assertion.got;
  }
  return out;
}

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b1f24}
h1{font-size:1.4em} .PASS{color:#116329} .FAIL{color:#a40e26} .SKIP{color:#6e5494}
details{border:1px solid #d0d7de;border-radius:6px;margin:.5em 0;padding:.4em .8em}
summary{cursor:pointer} pre{background:#f6f8fa;padding:.6em;overflow:auto;white-space:pre-wrap}
.s{color:#57606a;font-size:.9em})";

void append_gate_html(std::string& out, const GateResult& gate) {
  out += fmt::format(
      "<details{}><summary><b class=\"{}\">{}</b> {} <span class=\"s\">{} · {} assertions · "
      "{:.1f} s{}</span></summary>\n",
      gate.state == GateState::kFailed ? " open" : "", state_name(gate.state),
      state_name(gate.state), escape(gate.title), escape(gate.name), gate.assertions.size(),
      gate.seconds, gate.required ? "" : " · optional");
  if (!gate.reason.empty()) {
    out += fmt::format("<p>{}</p>\n", escape(gate.reason));
  }
  out += "<ul>\n";
  for (const Assertion& assertion : gate.assertions) {
    const std::string_view state = assertion.ok ? "PASS" : "FAIL";
    out += fmt::format("<li><span class=\"{}\">{}</span> {}", state, state, escape(assertion.name));
    if (!assertion.ok) {
      out +=
          fmt::format("<pre>request:  {}\nexpected: {}\ngot:      {}</pre>",
                      escape(assertion.request), escape(assertion.expected), escape(assertion.got));
    }
    out += "</li>\n";
  }
  out += "</ul>\n";
  if (!gate.values.empty()) {
    out += fmt::format("<pre>{}</pre>\n", escape(json::dump_python(gate.values)));
  }
  out += "</details>\n";
}

}  // namespace

int GateResult::failed_assertions() const {
  return static_cast<int>(std::count_if(assertions.begin(), assertions.end(),
                                        [](const Assertion& a) { return !a.ok; }));
}

bool Report::passed() const {
  bool any_ran = false;
  for (const GateResult& gate : gates) {
    any_ran = any_ran || gate.state != GateState::kSkipped;
    if (gate.required && gate.state == GateState::kFailed) {
      return false;
    }
  }
  return any_ran;
}

int Report::skipped() const {
  return static_cast<int>(std::count_if(gates.begin(), gates.end(), [](const GateResult& gate) {
    return gate.state == GateState::kSkipped;
  }));
}

std::string to_json(const Report& report) {
  json::Object gates;
  for (const GateResult& gate : report.gates) {
    json::Array assertions;
    for (const Assertion& assertion : gate.assertions) {
      assertions.push_back(assertion_json(assertion));
    }
    gates[gate.name] = json::Object{{"status", state_name(gate.state)},
                                    {"title", gate.title},
                                    {"required", gate.required},
                                    {"reason", gate.reason},
                                    {"seconds", gate.seconds},
                                    {"assertions", std::move(assertions)},
                                    {"values", gate.values}};
  }
  return json::dump(json::Object{{"schema_version", 1},
                                 {"url", report.url},
                                 {"model", report.model},
                                 {"started_at", report.started_at},
                                 {"status", report.passed() ? "PASS" : "FAIL"},
                                 {"gates", std::move(gates)}});
}

std::string to_junit(const Report& report) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tandem verify\">\n";
  for (const GateResult& gate : report.gates) {
    const bool broken = gate.state == GateState::kFailed && gate.failed_assertions() == 0;
    const bool skipped = gate.state == GateState::kSkipped;
    const std::size_t extra = broken || skipped ? 1 : 0;
    out += fmt::format(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
        escape(gate.name), gate.assertions.size() + extra,
        gate.failed_assertions() + (broken ? 1 : 0), skipped ? 1 : 0, gate.seconds);
    for (const Assertion& assertion : gate.assertions) {
      out += fmt::format("<testcase name=\"{}\">", escape(assertion.name));
      if (!assertion.ok) {
        out += fmt::format("<failure message=\"{}\">request: {}\nexpected: {}\ngot: {}</failure>",
                           escape(assertion.name), escape(assertion.request),
                           escape(assertion.expected), escape(assertion.got));
      }
      out += "</testcase>\n";
    }
    if (broken) {
      out += fmt::format("<testcase name=\"run\"><failure message=\"{}\"/></testcase>\n",
                         escape(gate.reason));
    }
    if (skipped) {
      out += fmt::format("<testcase name=\"run\"><skipped message=\"{}\"/></testcase>\n",
                         escape(gate.reason));
    }
    out += "</testsuite>\n";
  }
  return out + "</testsuites>\n";
}

std::string to_html(const Report& report) {
  const std::string_view status = report.passed() ? "PASS" : "FAIL";
  std::string out = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>verify {}: {}</title>"
      "<style>{}</style>\n<h1><span class=\"{}\">{}</span> {}</h1>\n"
      "<p class=\"s\">model {} · started {}</p>\n",
      escape(report.url), status, kStyle, status, status, escape(report.url), escape(report.model),
      escape(report.started_at));
  for (const GateResult& gate : report.gates) {
    append_gate_html(out, gate);
  }
  return out + "</html>\n";
}

}  // namespace tandem::verify
