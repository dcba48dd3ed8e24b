#include <algorithm>
#include <cmath>

#include "operations/cluster/checks.h"

namespace tandem::cluster {
namespace {

// Versions with a known fault; the last one of a range is bad, the next good.
struct BadRange {
  std::string first;
  std::string last;
  std::string fault;
};

const std::vector<BadRange>& bad_nccl() {
  static const std::vector<BadRange> ranges{
      {"2.28.0", "2.30.3", "a pair stops after some dozens of requests; fixed in 2.30.4"}};
  return ranges;
}

const std::vector<BadRange>& bad_drivers() {
  static const std::vector<BadRange> ranges{
      {"580.0", "580.159.03", "leaks memory descriptors until the machine freezes"}};
  return ranges;
}

const BadRange* find_range(const std::vector<BadRange>& ranges, const std::string& version) {
  for (const BadRange& range : ranges) {
    if (compare_versions(version, range.first) >= 0 && compare_versions(version, range.last) <= 0) {
      return &range;
    }
  }
  return nullptr;
}

void check_driver(const NodeUnderTest& under, const std::string& version, Findings& out) {
  const BadRange* bad = find_range(bad_drivers(), version);
  if (bad == nullptr) {
    out.push_back({"driver", under.name, Level::kPass, "driver " + version, "", ""});
    return;
  }
  out.push_back({"driver", under.name, Level::kWarn, "driver " + version, bad->fault,
                 fmt::format("update the driver to one after {}", bad->last)});
}

void check_nccl(const NodeUnderTest& under, Findings& out) {
  for (const std::string& line : lines_of(under.system->run({"ldconfig", "-p"}, 5'000).out)) {
    const std::size_t arrow = line.find("=> ");
    if (line.find("libnccl.so.2 ") == std::string::npos || arrow == std::string::npos) {
      continue;
    }
    const std::string path =
        trimmed(under.system->run({"readlink", "-f", trimmed(line.substr(arrow + 3))}, 5'000).out);
    const std::size_t so = path.rfind(".so.");
    const std::string version = so == std::string::npos ? "" : path.substr(so + 4);
    const BadRange* bad = find_range(bad_nccl(), version);
    out.push_back({"nccl", under.name, bad != nullptr ? Level::kWarn : Level::kPass,
                   "NCCL " + version, bad != nullptr ? bad->fault : "",
                   bad != nullptr ? "apt-get install --only-upgrade libnccl2" : ""});
    return;
  }
  out.push_back(
      {"nccl", under.name, Level::kNote, "no NCCL library; the ranks do not need it", "", ""});
}

void check_memlock(const NodeUnderTest& under, Findings& out) {
  const CommandResult limit = under.system->run({"sh", "-c", "ulimit -l"}, 5'000);
  const std::string value = trimmed(limit.out);
  if (value == "unlimited" || !under.system->list_dir("/sys/class/infiniband").ok()) {
    out.push_back({"memlock", under.name, Level::kPass, "locked memory: " + value, "", ""});
    return;
  }
  out.push_back(
      {"memlock", under.name, Level::kWarn, fmt::format("locked memory is limited to {} kB", value),
       "RDMA must pin its buffers",
       "add '* - memlock unlimited' to /etc/security/limits.d/tandem.conf; log in again"});
}

std::string range_text(const std::vector<int>& cpus) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t j = i;
    while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) {
      ++j;
    }
    parts.push_back(i == j ? std::to_string(cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[j]));
    i = j + 1;
  }
  return joined(parts, ",");
}

// The bytes that a file system has free at the nearest existing folder above `path`.
std::int64_t free_bytes(HostSystem& system, std::string path) {
  while (true) {
    const CommandResult result = system.run({"df", "-B1", "--output=avail", path}, 5'000);
    const std::vector<std::string> lines = lines_of(result.out);
    if (result.ok() && lines.size() > 1) {
      return std::strtoll(lines[1].c_str(), nullptr, 10);
    }
    const std::size_t slash = path.rfind('/');
    if (path == "/" || slash == std::string::npos) {
      return -1;
    }
    path = slash == 0 ? "/" : path.substr(0, slash);
  }
}

}  // namespace

int compare_versions(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    char* end = nullptr;
    const std::int64_t x = i < a.size() ? std::strtoll(a.c_str() + i, &end, 10) : 0;
    i = std::min(a.find('.', i), a.size() - 1) + 1;
    const std::int64_t y = j < b.size() ? std::strtoll(b.c_str() + j, &end, 10) : 0;
    j = std::min(b.find('.', j), b.size() - 1) + 1;
    if (x != y) {
      return x < y ? -1 : 1;
    }
  }
  return 0;
}

void check_accelerator(const NodeUnderTest& under, Findings& out) {
  const CommandResult result = under.system->run(
      {"nvidia-smi", "--query-gpu=name,driver_version,temperature.gpu", "--format=csv,noheader"},
      8'000);
  if (!result.ok()) {
    out.push_back({"gpu", under.name, Level::kNote,
                   result.timed_out ? "nvidia-smi does not answer" : "no NVIDIA GPU here",
                   "the rank computes on the CPU", ""});
  } else {
    const std::string line = trimmed(result.out);
    const std::size_t first = line.find(", ");
    const std::size_t second = line.find(", ", first + 1);
    out.push_back({"gpu", under.name, Level::kPass, line, "", ""});
    if (first != std::string::npos && second != std::string::npos) {
      check_driver(under, line.substr(first + 2, second - first - 2), out);
      const std::int64_t celsius = std::strtoll(line.c_str() + second + 2, nullptr, 10);
      if (celsius >= 85) {
        out.push_back({"temperature", under.name, Level::kWarn, fmt::format("{} C", celsius),
                       "machines were seen to switch off under lasting load at this heat",
                       "improve the air flow, or cap the clock: nvidia-smi -lgc 0,2000"});
      }
    }
    check_nccl(under, out);
  }
  check_memlock(under, out);
}

std::string big_cores(HostSystem& system) {
  std::map<std::int64_t, std::vector<int>> by_capacity;
  const auto names = system.list_dir("/sys/devices/system/cpu");
  std::vector<int> numbers;
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>{}) {
    if (name.rfind("cpu", 0) == 0 && name.size() > 3 &&
        name.find_first_not_of("0123456789", 3) == std::string::npos) {
      numbers.push_back(std::atoi(name.c_str() + 3));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  for (const int number : numbers) {
    const std::string capacity =
        read_word(system, fmt::format("/sys/devices/system/cpu/cpu{}/cpu_capacity", number));
    if (!capacity.empty()) {
      by_capacity[std::strtoll(capacity.c_str(), nullptr, 10)].push_back(number);
    }
  }
  return by_capacity.size() < 2 ? "" : range_text(by_capacity.rbegin()->second);
}

void check_cpu(const NodeUnderTest& under, Findings& out) {
  const std::string big = big_cores(*under.system);
  const std::string& pinned = under.node->cpus;
  if (big.empty()) {
    out.push_back({"cpu", under.name, Level::kPass, "all cores are equal: no pinning", "", ""});
  } else if (!pinned.empty() && pinned != big) {
    out.push_back({"cpu", under.name, Level::kWarn,
                   fmt::format("pinned to {}, the big cores are {}", pinned, big),
                   "a rank that waits on a small core delays both",
                   "remove cpus from cluster.toml"});
  } else {
    out.push_back({"cpu", under.name, Level::kPass, "rank pinned to the big cores " + big, "", ""});
  }
}

void check_ports(const NodeUnderTest& under, Findings& out) {
  if (under.name != "head") {
    return;
  }
  const CommandResult sockets = under.system->run({"ss", "-Hltnp"}, 5'000);
  const std::string suffix = fmt::format(":{}", under.config->port);
  for (const std::string& line : lines_of(sockets.out)) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 4) {
      continue;
    }
    const std::string& local = words[3];
    if (local.size() > suffix.size() &&
        local.compare(local.size() - suffix.size(), suffix.size(), suffix) == 0) {
      out.push_back(
          {"port", under.name, Level::kFail,
           fmt::format("{} is taken by {}", local, words.size() > 5 ? words[5] : "another process"),
           "the API could not open its port after minutes of loading",
           fmt::format("stop it, or set another port in cluster.toml (now {})",
                       under.config->port)});
      return;
    }
  }
  out.push_back({"port", under.name, Level::kPass,
                 fmt::format("port {} is free", under.config->port), "", ""});
}

void check_disk(const NodeUnderTest& under, Findings& out) {
  constexpr std::int64_t kNeed = std::int64_t{1} << 30;
  const std::int64_t free = free_bytes(*under.system, under.node->state_dir);
  const std::string seen = fmt::format("{}: {:.1f} GiB free", under.node->state_dir,
                                       static_cast<double>(free) / (1024.0 * 1024.0 * 1024.0));
  if (free >= 0 && free < kNeed / 16) {
    out.push_back({"disk", under.name, Level::kFail, seen, "status and logs cannot be written",
                   "free some space there"});
  } else if (free >= 0 && free < kNeed) {
    out.push_back({"disk", under.name, Level::kWarn, seen, "logs need some room",
                   "free at least 1 GiB there"});
  } else {
    out.push_back({"disk", under.name, Level::kPass, seen, "", ""});
  }
}

void check_leftovers(const NodeUnderTest& under, Findings& out) {
  const std::string lock = under.node->state_dir + "/lock";
  const auto text = under.system->read_file(lock);
  const std::vector<std::string> words = words_of(text.ok() ? *text : "");
  const std::string boot = read_word(*under.system, "/proc/sys/kernel/random/boot_id");
  // lock: PID BOOT_ID
  if (words.size() >= 2) {
    const bool alive =
        words[1] == boot && under.system->read_file("/proc/" + words[0] + "/stat").ok();
    if (alive) {
      out.push_back({"leftovers", under.name, Level::kNote,
                     fmt::format("a run is active here (pid {})", words[0]), "", "tandem status"});
      return;
    }
    out.push_back({"leftovers",
                   under.name,
                   Level::kWarn,
                   fmt::format("{} belongs to pid {} of {}", lock, words[0],
                               words[1] == boot ? "this boot, which is gone" : "an earlier boot"),
                   "a run ended without cleaning up",
                   "rm " + lock,
                   {"rm", "-f", "--", lock}});
    return;
  }
  for (const std::string& line :
       lines_of(under.system->run({"ps", "-eo", "pid,args"}, 5'000).out)) {
    const std::vector<std::string> process = words_of(line);
    if (process.size() >= 3 && process[1] == under.config->binary && process[2] == "serve") {
      out.push_back(
          {"leftovers", under.name, Level::kFail,
           fmt::format("pid {} is a rank without a run: {}", process[0], line.substr(0, 120)),
           "it holds the memory that the new rank needs", "kill " + process[0]});
      return;
    }
  }
  out.push_back({"leftovers", under.name, Level::kPass, "nothing left of an earlier run", "", ""});
}

void check_programs(const NodeUnderTest& under, Findings& out) {
  const CommandResult binary = under.system->run({"test", "-x", under.config->binary}, 5'000);
  if (!binary.ok()) {
    out.push_back({"binary", under.name, Level::kFail,
                   fmt::format("{} is not there or cannot be run", under.config->binary),
                   "both machines start the same program by the same path",
                   fmt::format("install the tandem package on the {}", under.name)});
  }
  if (under.config->engine == "tandem" &&
      !under.system->run({"sh", "-c", "command -v orted"}, 5'000).ok()) {
    out.push_back({"mpi", under.name, Level::kFail, "Open MPI's orted is not installed",
                   "it starts the rank on this machine", "apt-get install openmpi-bin"});
  }
}

Finding clock_finding(double offset_ms, double uncertainty_ms) {
  Finding finding{
      "clock",
      "pair",
      Level::kPass,
      fmt::format("worker is {:+.0f} ms off (within {:.0f} ms)", offset_ms, uncertainty_ms),
      "",
      ""};
  const double off = std::max(0.0, std::abs(offset_ms) - uncertainty_ms);
  if (off > 1'000) {
    finding.level = off > 60'000 ? Level::kFail : Level::kWarn;
    finding.why =
        "logs of the two machines cannot be put in order, and certificates may be refused";
    finding.fix = "timedatectl set-ntp true on both";
  }
  return finding;
}

}  // namespace tandem::cluster
