#include "operations/cluster/vllm_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "operations/cluster/gid.h"
#include "operations/cluster/serve_command.h"
#include "operations/cluster/vllm_command.h"

namespace tandem::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::seconds(2);
constexpr std::int64_t kAskMs = 10'000;
constexpr std::int64_t kActMs = 60'000;
constexpr std::size_t kTailLines = 15;

struct Side {
  const char* name;
  const NodeConfig& node;
  HostSystem& system;
};

std::string image_id(const ClusterConfig& config, HostSystem& system) {
  const CommandResult result = system.run(
      {config.vllm.runtime, "image", "inspect", "--format", "{{.Id}}", config.vllm.image}, kAskMs);
  return result.ok() ? trimmed(result.out) : "";
}

std::string refusal(const ClusterConfig& config, HostSystem& head, HostSystem& worker) {
  const CommandResult hello = worker.run({"echo", "tandem"}, kAskMs);
  if (!hello.ok()) {
    return fmt::format("ssh: {}: {}; `ssh {} true` must work without a question", config.worker.ssh,
                       hello.timed_out ? "no answer" : trimmed(hello.err), config.worker.ssh);
  }
  const std::string ours = image_id(config, head);
  const std::string theirs = image_id(config, worker);
  if (ours.empty() || theirs.empty()) {
    return fmt::format("image: {} is missing on the {}; run `{} pull {}` there", config.vllm.image,
                       ours.empty() ? "head" : "worker", config.vllm.runtime, config.vllm.image);
  }
  if (ours != theirs) {
    return fmt::format("image: {} is {} on the head and {} on the worker; pull it again on both",
                       config.vllm.image, ours.substr(0, 19), theirs.substr(0, 19));
  }
  if (container_state(config, worker) == "running") {
    return "worker: its rank runs without a head (left of an earlier run); tandem down, then again";
  }
  return "";
}

// The index that is pinned, or the one found now.
Result<int> gid_index(const Side& side) {
  if (side.node.gid_index >= 0) {
    return static_cast<int>(side.node.gid_index);
  }
  TANDEM_ASSIGN(const GidChoice choice,
                resolve_gid(side.system, parse_hca_selector(side.node.hca), side.node.address));
  return choice.index;
}

Status remove_container(const ClusterConfig& config, const Side& side) {
  const CommandResult result =
      side.system.run({config.vllm.runtime, "rm", "-f", kContainer}, kActMs);
  if (result.ok() || container_state(config, side.system).empty()) {
    return ok_status();
  }
  return unavailable("{}: container {} cannot be removed: {}", side.name, kContainer,
                     result.timed_out ? "no answer" : trimmed(result.err));
}

StartOutcome wait_until_ready(const ClusterConfig& config, const Side& head, const Side& worker) {
  const auto end = Clock::now() + std::chrono::seconds(config.start_timeout_s);
  std::string problem =
      fmt::format("not ready after {} s ([cluster] start_timeout_s)", config.start_timeout_s);
  while (Clock::now() < end) {
    for (const Side* side : {&worker, &head}) {
      const std::string state = container_state(config, side->system);
      if (state != "running") {
        problem = fmt::format("the {}'s container is {}", side->name,
                              state.empty() ? "gone or out of reach" : state);
        return {StartResult::kFailed, problem, 0};
      }
    }
    if (read_health(server_url(config)).ok) {
      return {StartResult::kReady, "ready at " + server_url(config), 0};
    }
    std::this_thread::sleep_for(kPoll);
  }
  return {StartResult::kFailed, problem, 0};
}

}  // namespace

std::string container_state(const ClusterConfig& config, HostSystem& system) {
  const CommandResult result = system.run(
      {config.vllm.runtime, "container", "inspect", "--format", "{{.State.Status}}", kContainer},
      kAskMs);
  return result.ok() ? trimmed(result.out) : "";
}

StartOutcome start_vllm(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                        const Say& say) {
  if (container_state(config, head) == "running") {
    const Health health = read_health(server_url(config));
    return {StartResult::kAlreadyRunning,
            std::string("the head's container runs already: ") +
                (health.ok ? "healthy" : "not healthy yet (tandem logs, tandem restart)"),
            0};
  }
  if (read_health(server_url(config)).answers) {
    return {StartResult::kRefused,
            fmt::format("port {} on {} is taken by another server", config.port, config.host), 0};
  }
  say("check: ssh, image, RoCE");
  const std::string problem = refusal(config, head, worker);
  if (!problem.empty()) {
    return {StartResult::kRefused, problem, 0};
  }
  const Side sides[] = {{"worker", config.worker, worker}, {"head", config.head, head}};
  std::vector<std::vector<std::string>> commands;
  for (const Side& side : sides) {
    const auto index = gid_index(side);
    const Role role = &side.node == &config.head ? Role::kHead : Role::kWorker;
    const auto command = index.ok() ? vllm_command(config, role, *index)
                                    : Result<std::vector<std::string>>(index.status());
    if (!command.ok()) {
      return {StartResult::kRefused, fmt::format("{}: {}", side.name, command.status().message()),
              0};
    }
    commands.push_back(*command);
  }
  StartOutcome outcome{StartResult::kReady, "", 0};
  for (std::size_t i = 0; i < commands.size() && outcome.result == StartResult::kReady; ++i) {
    static_cast<void>(remove_container(config, sides[i]));  // of a run that has ended
    say(fmt::format("start {}: {}", sides[i].name, joined(commands[i], " ")));
    const CommandResult started = sides[i].system.run(commands[i], kActMs);
    if (!started.ok()) {
      outcome = {StartResult::kFailed,
                 fmt::format("{}: {}", sides[i].name,
                             started.timed_out ? "no answer" : trimmed(started.err)),
                 0};
    }
  }
  if (outcome.result == StartResult::kReady) {
    outcome = wait_until_ready(config, sides[1], sides[0]);
  }
  if (outcome.result != StartResult::kReady) {
    outcome.message += "; last lines:\n" + joined(vllm_log(config, head, worker, kTailLines), "\n");
    static_cast<void>(stop_vllm(config, head, worker, say));
  }
  return outcome;
}

Status stop_vllm(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                 const Say& say) {
  Status first = ok_status();
  for (const Side& side :
       {Side{"head", config.head, head}, Side{"worker", config.worker, worker}}) {
    say(fmt::format("stop: {}", side.name));
    const Status removed = remove_container(config, side);
    if (first.ok() && !removed.ok()) {
      first = removed;
    }
  }
  return first;
}

std::vector<std::string> vllm_log(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                                  std::size_t lines) {
  std::vector<std::pair<std::string, std::string>> stamped;  // time stamp, line
  for (const Side& side :
       {Side{"head", config.head, head}, Side{"worker", config.worker, worker}}) {
    const CommandResult result = side.system.run(
        {config.vllm.runtime, "logs", "--timestamps", "--tail", std::to_string(lines), kContainer},
        kAskMs);
    for (const std::string& line : lines_of(result.out + result.err)) {
      stamped.emplace_back(line.substr(0, line.find(' ')), fmt::format("{}: {}", side.name, line));
    }
  }
  std::stable_sort(stamped.begin(), stamped.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  const std::size_t skip = stamped.size() > lines ? stamped.size() - lines : 0;
  for (std::size_t i = skip; i < stamped.size(); ++i) {
    out.push_back(stamped[i].second);
  }
  return out;
}

}  // namespace tandem::cluster
