#include "operations/cluster/pair.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "foundation/json/json.h"
#include "foundation/net/http_client.h"
#include "operations/cluster/process.h"
#include "operations/cluster/run_lock.h"
#include "operations/cluster/serve_command.h"
#include "operations/cluster/vllm_pair.h"

namespace tandem::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(200);
constexpr std::int64_t kProbeMs = 2'000;
constexpr auto kOrderly = std::chrono::seconds(45);  // serve gives its ranks 35 s
constexpr auto kKill = std::chrono::seconds(5);
constexpr std::size_t kTailLines = 15;

// New lines of a growing file.
class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}

  void pass_on(const Say& say) {
    std::ifstream file(path_);
    file.seekg(offset_);
    for (std::string line; std::getline(file, line) && !file.eof();) {
      offset_ += static_cast<std::streamoff>(line.size()) + 1;
      say("  | " + line);
    }
  }

 private:
  std::string path_;
  std::streamoff offset_ = 0;
};

std::string last_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > kTailLines) {
      lines.erase(lines.begin());
    }
  }
  return joined(lines, "\n");
}

std::string digest_of(HostSystem& system, const std::string& file) {
  const CommandResult result = system.run({"sha256sum", "--", file}, 30'000);
  return result.ok() ? result.out.substr(0, result.out.find(' ')) : "";
}

// What would fail minutes later, asked now. "" if all is well.
std::string refusal(const ClusterConfig& config, HostSystem& head, HostSystem& worker) {
  const CommandResult hello = worker.run({"echo", "tandem"}, 8'000);
  if (!hello.ok()) {
    return fmt::format("ssh: {} {}; `ssh {} true` must work without a question", config.worker.ssh,
                       hello.timed_out ? "does not answer within 8 s" : trimmed(hello.err),
                       config.worker.ssh);
  }
  const std::string ours = digest_of(head, config.binary);
  const std::string theirs = digest_of(worker, config.binary);
  if (ours.empty() || theirs.empty()) {
    return fmt::format("version: {} is missing on the {}; install the same package on both",
                       config.binary, ours.empty() ? "head" : "worker");
  }
  if (ours != theirs) {
    return fmt::format(
        "version: {} differs between the machines (head {}, worker {}); install the "
        "same package on both",
        config.binary, ours.substr(0, 12), theirs.substr(0, 12));
  }
  const std::string model = config.model_of(config.worker);
  if (!worker.run({"test", "-e", model}, 5'000).ok()) {
    return fmt::format("model: {} is missing on the worker; copy the checkpoint there", model);
  }
  return "";
}

// Ranks on the worker whose head is gone. mpirun takes them along; this is for what it could not.
void sweep_worker(const ClusterConfig& config, HostSystem& worker, const Say& say) {
  const std::string pattern = "^" + config.binary + " rank ";
  if (worker.run({"pgrep", "-f", "--", pattern}, 5'000).ok()) {
    say("worker: a rank is left; ending it");
    worker.run({"pkill", "-KILL", "-f", "--", pattern}, 5'000);
  }
}

// Keeps the log of the run before.
void rotate_log(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::filesystem::rename(path, path + ".1", ignored);
}

StartOutcome wait_until_ready(const ClusterConfig& config, pid_t pid, const Say& say) {
  const std::string log = log_path(config.head.state_dir);
  LogTail tail(log);
  const auto end = Clock::now() + std::chrono::seconds(config.start_timeout_s);
  while (Clock::now() < end) {
    tail.pass_on(say);
    const int code = try_wait(pid);
    if (code >= 0) {
      return {StartResult::kFailed,
              fmt::format("the server ended with exit code {}; its last lines:\n{}", code,
                          last_lines(log)),
              0};
    }
    if (read_health(server_url(config)).ok) {
      tail.pass_on(say);
      return {StartResult::kReady, "ready at " + server_url(config), pid};
    }
    std::this_thread::sleep_for(kPoll);
  }
  stop_group(pid, 10'000);
  return {StartResult::kFailed,
          fmt::format("not ready after {} s ([cluster] start_timeout_s); last lines:\n{}",
                      config.start_timeout_s, last_lines(log)),
          0};
}

bool wait_gone(HostSystem& head, const std::string& state_dir, std::chrono::seconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    const auto lock = read_lock(head, state_dir);
    if (!lock || !lock->alive) {
      return true;
    }
    try_wait(lock->pid);  // if it is our child
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

}  // namespace

Health read_health(const std::string& url) {
  Health health;
  const auto parsed = net::parse_url(url);
  if (!parsed.ok()) {
    return health;
  }
  net::HttpRequest request;
  request.target = "/health";
  request.connect_timeout_ms = kProbeMs;
  request.idle_timeout_ms = kProbeMs;
  const auto response = net::http_fetch(*parsed, request);
  if (!response.ok()) {
    health.verdict = response.status().message();
    return health;
  }
  health.answers = true;
  health.ok = response->status == 200;
  const auto body = json::parse(response->body);
  const json::Value* verdict = body.ok() ? json::find(*body, "verdict") : nullptr;
  if (verdict != nullptr && verdict->is_string()) {
    health.verdict = std::string(verdict->get_string());
  }
  return health;
}

std::string log_path(const std::string& state_dir) {
  return state_dir + "/serve.log";
}

StartOutcome start_pair(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                        const Say& say) {
  if (config.engine == "vllm") {
    return start_vllm(config, head, worker, say);
  }
  const auto began = Clock::now();
  const std::string& state_dir = config.head.state_dir;
  const auto lock = read_lock(head, state_dir);
  if (lock && lock->alive) {
    const Health health = read_health(server_url(config));
    return {StartResult::kAlreadyRunning,
            fmt::format("pid {} runs already: {}", lock->pid,
                        health.ok        ? "healthy"
                        : health.answers ? "unhealthy: " + health.verdict + " (tandem restart)"
                                         : "still starting (tandem logs -f)"),
            lock->pid};
  }
  if (lock) {
    say(fmt::format("lock: {} is left of a run that is gone; removed", lock_path(state_dir)));
    remove_lock(state_dir);
  }
  if (read_health(server_url(config)).answers) {
    return {StartResult::kRefused,
            fmt::format("port {} on {} is taken by another server", config.port, config.host), 0};
  }
  say("check: ssh, program, checkpoint");
  const std::string problem = refusal(config, head, worker);
  if (!problem.empty()) {
    return {StartResult::kRefused, problem, 0};
  }
  const auto command = serve_command(config);
  if (!command.ok()) {
    return {StartResult::kRefused, command.status().message(), 0};
  }
  // Ours until the server has a pid: a full disk or a second `up` ends here, not after the start.
  const Status claimed = write_lock(head, state_dir, getpid());
  if (!claimed.ok()) {
    return {StartResult::kRefused, claimed.message(), 0};
  }
  sweep_worker(config, worker, say);
  rotate_log(log_path(state_dir));
  say("start: " + joined(*command, " "));
  SpawnOptions options;
  options.output_file = log_path(state_dir);
  options.new_session = true;
  const auto child = spawn_process(*command, options);
  if (!child.ok()) {
    remove_lock(state_dir);
    return {StartResult::kRefused, child.status().message(), 0};
  }
  const Status locked = write_lock(head, state_dir, child->pid);
  if (!locked.ok()) {
    stop_group(child->pid, 5'000);
    remove_lock(state_dir);
    return {StartResult::kRefused, locked.message(), 0};
  }
  StartOutcome outcome = wait_until_ready(config, child->pid, say);
  if (outcome.result != StartResult::kReady) {
    remove_lock(state_dir);
    sweep_worker(config, worker, say);
  } else {
    outcome.message +=
        fmt::format(" after {:.1f} s", std::chrono::duration<double>(Clock::now() - began).count());
  }
  return outcome;
}

Status stop_pair(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                 const Say& say) {
  if (config.engine == "vllm") {
    return stop_vllm(config, head, worker, say);
  }
  const std::string& state_dir = config.head.state_dir;
  const auto lock = read_lock(head, state_dir);
  if (lock && lock->alive) {
    say(fmt::format("stop: pid {}", lock->pid));
    kill(lock->pid, SIGTERM);
    if (!wait_gone(head, state_dir, kOrderly)) {
      say("stop: it does not end; killing it");
      kill(-lock->pid, SIGKILL);
      kill(lock->pid, SIGKILL);
      if (!wait_gone(head, state_dir, kKill)) {
        return deadline_exceeded(
            "pid {} cannot be killed (a process in state D waits for the "
            "kernel; see dmesg)",
            lock->pid);
      }
    }
  } else {
    say("stop: nothing runs on the head");
  }
  remove_lock(state_dir);
  sweep_worker(config, worker, say);
  return ok_status();
}

}  // namespace tandem::cluster
