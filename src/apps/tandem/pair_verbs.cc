#include "apps/tandem/pair_verbs.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "apps/tandem/cluster_flags.h"
#include "apps/tandem/exit_codes.h"
#include "apps/tandem/stop_signal.h"
#include "foundation/json/json.h"
#include "operations/cluster/log_view.h"
#include "operations/cluster/notify.h"
#include "operations/cluster/pair.h"
#include "operations/cluster/pair_status.h"
#include "operations/cluster/run_lock.h"
#include "operations/cluster/serve_command.h"
#include "operations/cluster/smoke.h"
#include "operations/cluster/vllm_pair.h"

namespace tandem::apps {
namespace {

struct PairFlags {
  std::string file;
  bool json = false;
  bool follow = false;
  bool foreground = false;
  std::size_t lines = 200;
  std::string url;
  cluster::SmokeOptions smoke;
};

int fail(const char* verb, const Status& status, int code) {
  std::fprintf(stderr, "tandem %s: %s\n", verb, status.message().c_str());
  return code;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int code_of(const cluster::StartOutcome& outcome) {
  switch (outcome.result) {
    case cluster::StartResult::kReady:
      return kExitOk;
    case cluster::StartResult::kAlreadyRunning:
      return kExitAlreadyRunning;
    case cluster::StartResult::kRefused:
      return kExitRefused;
    case cluster::StartResult::kFailed:
      break;
  }
  return kExitFailure;
}

bool still_runs(const Cluster& pair, const cluster::StartOutcome& started) {
  if (pair.config.engine == "vllm") {
    return cluster::container_state(pair.config, *pair.head) == "running" &&
           cluster::container_state(pair.config, *pair.worker) == "running";
  }
  const auto lock = cluster::read_lock(*pair.head, pair.config.head.state_dir);
  return lock && lock->alive && lock->pid == started.pid;
}

// For systemd: stays beside the run, says READY, feeds the watchdog while the server is healthy,
// and ends with it.
int stay(const Cluster& pair, const cluster::StartOutcome& started) {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  const std::string notify = socket == nullptr ? "" : socket;
  cluster::notify_systemd(notify, "READY=1\nSTATUS=healthy");
  constexpr int kLookMs = 2'000;
  while (!StopSignal::wait(kLookMs)) {
    if (!still_runs(pair, started)) {
      say("the server has ended; its last lines are in tandem logs");
      cluster::remove_lock(pair.config.head.state_dir);
      return kExitEngineFault;
    }
    const cluster::Health health = cluster::read_health(cluster::server_url(pair.config));
    cluster::notify_systemd(
        notify, health.ok ? "WATCHDOG=1\nSTATUS=healthy" : "STATUS=unhealthy: " + health.verdict);
  }
  cluster::notify_systemd(notify, "STOPPING=1");
  const Status stopped = cluster::stop_pair(pair.config, *pair.head, *pair.worker, say);
  return stopped.ok() ? kExitOk : fail("up", stopped, kExitFailure);
}

int up(const PairFlags& flags) {
  const auto pair = open_cluster(flags.file);
  if (!pair.ok()) {
    return fail("up", pair.status(), kExitUsage);
  }
  StopSignal::install();
  const auto outcome = cluster::start_pair(pair->config, *pair->head, *pair->worker, say);
  if (outcome.result == cluster::StartResult::kReady) {
    say(outcome.message);
  } else {
    std::fprintf(stderr, "tandem up: %s\n", outcome.message.c_str());
  }
  if (!flags.foreground || outcome.result != cluster::StartResult::kReady) {
    return code_of(outcome);
  }
  StopSignal::set_ready();
  return stay(*pair, outcome);
}

int down(const PairFlags& flags) {
  const auto pair = open_cluster(flags.file);
  if (!pair.ok()) {
    return fail("down", pair.status(), kExitUsage);
  }
  const Status stopped = cluster::stop_pair(pair->config, *pair->head, *pair->worker, say);
  if (!stopped.ok()) {
    return fail("down", stopped, kExitFailure);
  }
  say("down");
  return kExitOk;
}

int restart(const PairFlags& flags) {
  const int stopped = down(flags);
  return stopped == kExitOk ? up(flags) : stopped;
}

int status(const PairFlags& flags) {
  const auto pair = open_cluster(flags.file);
  if (!pair.ok()) {
    return fail("status", pair.status(), kExitUsage);
  }
  const auto found = cluster::read_status(pair->config, *pair->head, *pair->worker);
  std::printf("%s",
              flags.json ? (json::dump(found.to_json()) + "\n").c_str() : found.to_text().c_str());
  return found.exit_code();
}

// Both containers' lines; with --follow those that are new every second.
int container_logs(const Cluster& pair, const PairFlags& flags) {
  constexpr int kLookMs = 1'000;
  std::set<std::string> shown;
  do {
    for (const std::string& line :
         cluster::vllm_log(pair.config, *pair.head, *pair.worker, flags.lines)) {
      if (shown.insert(line).second) {
        say(cluster::redacted(line));
      }
    }
  } while (flags.follow && !StopSignal::wait(kLookMs));
  return kExitOk;
}

int logs(const PairFlags& flags) {
  const auto pair = open_cluster(flags.file);
  if (!pair.ok()) {
    return fail("logs", pair.status(), kExitUsage);
  }
  StopSignal::install();
  StopSignal::set_ready();
  if (pair->config.engine == "vllm") {
    return container_logs(*pair, flags);
  }
  const Status shown =
      cluster::show_log(cluster::log_path(pair->config.head.state_dir), {flags.lines, flags.follow},
                        say, [] { return !StopSignal::wait(0); });
  return shown.ok() ? kExitOk : fail("logs", shown, kExitFailure);
}

int smoke(const PairFlags& flags) {
  std::string url = flags.url;
  if (url.empty()) {
    const auto pair = open_cluster(flags.file);
    if (!pair.ok()) {
      return fail("smoke", pair.status(), kExitUsage);
    }
    url = cluster::server_url(pair->config);
  }
  const auto parsed = net::parse_url(url);
  if (!parsed.ok()) {
    return fail("smoke", parsed.status(), kExitUsage);
  }
  bool good = true;
  for (const cluster::SmokeStep& step : cluster::run_smoke(*parsed, flags.smoke)) {
    std::printf("%-4s %-13s %6.2f s  %s\n", step.ok ? "ok" : "FAIL", step.name.c_str(),
                step.seconds, step.detail.c_str());
    good = good && step.ok;
  }
  return good ? kExitOk : kExitFailure;
}

using Runner = int (*)(const PairFlags&);

CLI::App* add(CLI::App& app, const char* name, const char* help, Runner run,
              const std::shared_ptr<PairFlags>& flags, int& exit_code) {
  CLI::App* verb = app.add_subcommand(name, help);
  add_cluster_flag(*verb, flags->file);
  verb->callback([flags, run, &exit_code] { exit_code = run(*flags); });
  return verb;
}

}  // namespace

void add_pair_verbs(CLI::App& app, int& exit_code) {
  const auto flags = [] { return std::make_shared<PairFlags>(); };
  const auto up_flags = flags();
  add(app, "up", "start both ranks and wait until tokens can be generated", up, up_flags, exit_code)
      ->add_flag("--foreground", up_flags->foreground, "stay beside the run (for systemd)");
  add(app, "down", "stop both ranks", down, flags(), exit_code);
  add(app, "restart", "down, then up", restart, flags(), exit_code);
  const auto status_flags = flags();
  add(app, "status", "ranks, memory, load", status, status_flags, exit_code)
      ->add_flag("--json", status_flags->json, "print JSON");
  const auto log_flags = flags();
  CLI::App* log_verb =
      add(app, "logs", "both ranks' log, keys left out", logs, log_flags, exit_code);
  log_verb->add_flag("-f,--follow", log_flags->follow, "go on as it grows");
  log_verb->add_option("-n,--lines", log_flags->lines, "lines of the end")->capture_default_str();
  const auto smoke_flags = flags();
  CLI::App* smoke_verb =
      add(app, "smoke", "one chat, one tool call, one long prompt", smoke, smoke_flags, exit_code);
  smoke_verb->add_option("--url", smoke_flags->url, "a server that is not in cluster.toml");
  smoke_verb->add_option("--api-key", smoke_flags->smoke.api_key, "key, if the server wants one");
  smoke_verb->add_option("--words", smoke_flags->smoke.long_words, "length of the long prompt")
      ->check(CLI::Range(10, 1'000'000))
      ->capture_default_str();
}

}  // namespace tandem::apps
