#include "apps/tandem/verify_verb.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>

#include "operations/verify/gate.h"

namespace tandem::apps {
namespace {

std::atomic<bool> interrupted{false};

constexpr int kExitUnreachable = 3;

// The first Ctrl-C gives the current gate up and keeps the report; a second one leaves.
void on_interrupt(int) {
  if (interrupted.exchange(true)) {
    _exit(130);
  }
}

struct VerifyFlags {
  std::string url;
  std::string json_file;
  std::string junit_file;
  std::string html_file;
  bool list = false;
  bool require_all = false;  // a skipped gate is no pass
  verify::VerifyOptions options;
};

class Checklist {
 public:
  Checklist() : colour_(isatty(STDOUT_FILENO) == 1) {}

  void started(const verify::Gate& gate) {
    if (colour_) {
      std::printf("  ..    %-24s %s", gate.name.c_str(), gate.title.c_str());
      std::fflush(stdout);
    }
  }

  void finished(const verify::GateResult& gate) {
    const char* word = "ok  ";
    const char* paint = "\033[32m";
    if (gate.state == verify::GateState::kFailed) {
      word = gate.required ? "FAIL" : "fail";
      paint = "\033[31m";
    } else if (gate.state == verify::GateState::kSkipped) {
      word = "skip";
      paint = "\033[35m";
    }
    std::printf("%s  %s%s%s  %-24s %s (%zu assertions, %.1f s)\n", colour_ ? "\r\033[2K" : "",
                colour_ ? paint : "", word, colour_ ? "\033[0m" : "", gate.name.c_str(),
                gate.title.c_str(), gate.assertions.size(), gate.seconds);
    if (!gate.reason.empty()) {
      std::printf("        %s\n", gate.reason.c_str());
    }
    for (const verify::Assertion& assertion : gate.assertions) {
      if (!assertion.ok) {
        std::printf(
            "        %s\n          request:  %s\n          expected: %s\n          got:      %s\n",
            assertion.name.c_str(), assertion.request.c_str(), assertion.expected.c_str(),
            assertion.got.c_str());
      }
    }
    std::fflush(stdout);
  }

 private:
  bool colour_;
};

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) {
    return true;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "tandem verify: cannot write %s\n", path.c_str());
    return false;
  }
  return true;
}

int run_verify(const VerifyFlags& flags) {
  const std::vector<verify::Gate> gates = verify::all_gates();
  if (flags.list) {
    for (const verify::Gate& gate : gates) {
      std::printf("%-24s %s%s\n", gate.name.c_str(), gate.title.c_str(),
                  gate.required ? "" : " (optional)");
    }
    return 0;
  }
  const auto url = net::parse_url(flags.url);
  if (!url.ok()) {
    std::fprintf(stderr, "tandem verify: %s\n", url.status().message().c_str());
    return 2;
  }
  verify::VerifyOptions options = flags.options;
  const auto is_chosen = [&options](const verify::Gate& gate) {
    return gate.name.compare(0, options.only.size(), options.only) == 0;
  };
  if (std::none_of(gates.begin(), gates.end(), is_chosen)) {
    std::fprintf(stderr, "tandem verify: no gate has a name that starts with '%s'; see --list\n",
                 options.only.c_str());
    return 2;
  }
  options.url = *url;
  if (options.url.prefix == "/v1") {
    options.url.prefix.clear();  // targets carry it themselves
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  Checklist checklist;
  const verify::Progress progress{
      [&checklist](const verify::Gate& gate) { checklist.started(gate); },
      [&checklist](const verify::GateResult& gate) { checklist.finished(gate); }};
  const verify::Report report = verify::run_gates(gates, options, progress, interrupted);
  const bool written = write_file(flags.json_file, verify::to_json(report)) &&
                       write_file(flags.junit_file, verify::to_junit(report)) &&
                       write_file(flags.html_file, verify::to_html(report));
  const bool passed = report.passed() && !(flags.require_all && report.skipped() > 0);
  std::printf("%s: %s (%d of %zu gates skipped%s)\n", passed ? "PASS" : "FAIL", report.url.c_str(),
              report.skipped(), report.gates.size(),
              flags.require_all ? ", which --require-all counts as failed" : "");
  if (interrupted.load()) {
    return 130;
  }
  if (!report.reachable) {
    std::fprintf(stderr, "tandem verify: nothing answers at %s\n", report.url.c_str());
    return kExitUnreachable;
  }
  return passed && written ? 0 : 1;
}

}  // namespace

void add_verify_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb = app.add_subcommand("verify", "prove what a running server does, gate by gate");
  verb->add_option("url", flags->url, "server address, for example http://127.0.0.1:8000");
  verb->add_option("--model", flags->options.model, "model name; default: the server's first");
  verb->add_option("--api-key", flags->options.api_key, "key, if the server wants one");
  verb->add_option("--only", flags->options.only, "run the gates whose name starts with this");
  verb->add_option("--timeout-ms", flags->options.timeout_ms, "longest wait for the next byte")
      ->capture_default_str();
  verb->add_option("--prefix-tokens", flags->options.multiturn_prefix_tokens,
                   "length of the multi-turn prefix")
      ->capture_default_str();
  verb->add_option("--turns", flags->options.multiturn_turns, "turns of the multi-turn gate")
      ->capture_default_str();
  verb->add_option("--recall", flags->options.recall_tokens, "prompt lengths of the recall gates")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--json", flags->json_file, "write the report as JSON");
  verb->add_option("--junit", flags->junit_file, "write the report as JUnit XML");
  verb->add_option("--html", flags->html_file, "write the report as one HTML page");
  verb->add_flag("--require-all", flags->require_all, "count a skipped gate as failed");
  verb->add_flag("--list", flags->list, "list the gates and leave");
  verb->callback([flags, &exit_code] { exit_code = run_verify(*flags); });
}

}  // namespace tandem::apps
