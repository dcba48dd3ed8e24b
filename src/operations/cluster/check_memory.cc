#include <algorithm>

#include "operations/cluster/checks.h"

namespace tandem::cluster {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kGib);
}

void check_cma(const NodeUnderTest& under, const std::string& meminfo, Findings& out) {
  const std::int64_t total = meminfo_bytes(meminfo, "CmaTotal");
  const std::int64_t free = meminfo_bytes(meminfo, "CmaFree");
  if (total < 0 || free < 0) {
    out.push_back({"cma_accounting", under.name, Level::kPass,
                   "this kernel has no contiguous-memory lines", "", ""});
    return;
  }
  const std::string seen = fmt::format("CmaTotal {} kB, CmaFree {} kB", total / 1024, free / 1024);
  if (free <= total) {
    out.push_back({"cma_accounting", under.name, Level::kPass, seen, "", ""});
    return;
  }
  const std::string kernel = read_word(*under.system, "/proc/sys/kernel/osrelease");
  const std::string crash = read_word(*under.system, "/sys/kernel/kexec_crash_size");
  const bool handover_safe = crash.empty() || crash == "0";
  out.push_back(
      {"cma_accounting", under.name, Level::kFail, fmt::format("{}; kernel {}", seen, kernel),
       "more contiguous memory is free than exists: this kernel's accounting is broken, and "
       "registering memory for RDMA fails with 'cannot allocate memory' although much is free",
       fmt::format("boot the previous kernel, or add kho=off to the kernel command line ({}); this "
                   "tool never edits boot settings",
                   handover_safe ? "safe here: kexec_crash_size is 0"
                                 : "NOT safe here: kexec_crash_size is " + crash)});
}

// "PID RSS NAME" of the three largest processes.
std::string largest_processes(HostSystem& system) {
  const CommandResult result = system.run({"ps", "-eo", "rss,comm", "--sort=-rss"}, 5'000);
  std::vector<std::string> out;
  for (const std::string& line : lines_of(result.out)) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= 2 && words[0] != "RSS" && out.size() < 3) {
      out.push_back(fmt::format("{} {:.1f} GiB", words[1],
                                gib(std::strtoll(words[0].c_str(), nullptr, 10) * 1024)));
    }
  }
  return joined(out, ", ");
}

std::int64_t needed_bytes(const NodeUnderTest& under) {
  if (under.config->memory_gib > 0) {
    return under.config->memory_gib * kGib;
  }
  const std::string& folder = under.config->model_of(*under.node);
  const CommandResult size = under.system->run({"du", "-sLB1", "--", folder}, 10'000);
  const std::int64_t bytes = size.ok() ? std::strtoll(size.out.c_str(), nullptr, 10) : 0;
  return bytes / 2 + bytes / 8;  // half the weights, and an eighth for caches and buffers
}

void check_plan(const NodeUnderTest& under, const std::string& meminfo, Findings& out) {
  const std::int64_t available = meminfo_bytes(meminfo, "MemAvailable");
  const std::int64_t free = meminfo_bytes(meminfo, "MemFree");
  const std::int64_t need = needed_bytes(under);
  const std::int64_t reserve = under.config->reserve_gib * kGib;
  const std::string plan = fmt::format("need {:.1f} + reserve {:.1f} GiB, available {:.1f} GiB",
                                       gib(need), gib(reserve), gib(available));
  if (available < need + reserve) {
    out.push_back({"memory", under.name, Level::kFail, plan,
                   "GPU and processes share this memory; a start that runs out leaks a little "
                   "each time and can take the machine down",
                   fmt::format("stop what uses it (largest: {}) or lower memory_gib",
                               largest_processes(*under.system))});
    return;
  }
  const bool drops = free < need;
  out.push_back({"memory", under.name, Level::kPass,
                 plan + (drops ? "; will drop checkpoint pages from the page cache" : ""), "", ""});
}

void check_swap(const NodeUnderTest& under, Findings& out) {
  const auto swaps = under.system->read_file("/proc/swaps");
  const std::size_t lines = swaps.ok() ? lines_of(*swaps).size() : 0;
  if (lines <= 1) {
    out.push_back({"swap", under.name, Level::kPass, "no swap in use", "", ""});
    return;
  }
  out.push_back({"swap", under.name, Level::kWarn, fmt::format("{} swap areas active", lines - 1),
                 "pages of the server that go to disk stall both ranks at every step",
                 "swapoff -a, and remove the swap lines from /etc/fstab"});
}

void check_shm(const NodeUnderTest& under, Findings& out) {
  const CommandResult result = under.system->run({"df", "-B1", "--output=size", "/dev/shm"}, 5'000);
  const std::vector<std::string> lines = lines_of(result.out);
  const std::int64_t size = lines.size() > 1 ? std::strtoll(lines[1].c_str(), nullptr, 10) : 0;
  if (size <= 16 * kGib) {
    out.push_back(
        {"shm", under.name, Level::kPass, fmt::format("/dev/shm {:.1f} GiB", gib(size)), "", ""});
    return;
  }
  out.push_back(
      {"shm", under.name, Level::kWarn, fmt::format("/dev/shm may grow to {:.1f} GiB", gib(size)),
       "it comes out of the same memory as the weights", "mount -o remount,size=8G /dev/shm"});
}

// Units that kill the largest process when memory looks full.
const std::vector<std::string>& killer_units() {
  static const std::vector<std::string> units{"earlyoom",       "systemd-oomd", "nohang",
                                              "nohang-desktop", "oomd",         "dgx-anti-oom"};
  return units;
}

std::vector<std::string> states(HostSystem& system, const std::string& verb) {
  std::vector<std::string> argv{"systemctl", verb};
  argv.insert(argv.end(), killer_units().begin(), killer_units().end());
  std::vector<std::string> lines = lines_of(system.run(argv, 5'000).out);
  lines.resize(killer_units().size());
  return lines;
}

bool avoids_us(HostSystem& system, const std::string& unit) {
  if (unit != "earlyoom") {
    return false;
  }
  const auto text = system.read_file("/etc/default/earlyoom");
  const std::size_t avoid = text.ok() ? text->find("--avoid") : std::string::npos;
  return avoid != std::string::npos && text->find("tandem", avoid) != std::string::npos;
}

}  // namespace

std::int64_t meminfo_bytes(const std::string& text, const std::string& key) {
  for (const std::string& line : lines_of(text)) {
    if (line.rfind(key + ":", 0) == 0) {
      return std::strtoll(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
    }
  }
  return -1;
}

void check_memory(const NodeUnderTest& under, Findings& out) {
  const auto meminfo = under.system->read_file("/proc/meminfo");
  if (!meminfo.ok()) {
    out.push_back({"memory", under.name, Level::kWarn, meminfo.status().message(),
                   "the memory plan cannot be checked", "mount /proc"});
    return;
  }
  check_cma(under, *meminfo, out);
  check_plan(under, *meminfo, out);
  check_swap(under, out);
  check_shm(under, out);
}

void check_oom_killers(const NodeUnderTest& under, Findings& out) {
  constexpr const char* kWhy =
      "weights and cache fill this machine on purpose; a daemon that reacts to full memory kills "
      "a rank in the middle of loading or of a long context, which looks like a network fault on "
      "the other machine";
  const std::vector<std::string> active = states(*under.system, "is-active");
  const std::vector<std::string> enabled = states(*under.system, "is-enabled");
  bool found = false;
  for (std::size_t i = 0; i < killer_units().size(); ++i) {
    const std::string& unit = killer_units()[i];
    const std::string fix = fmt::format("systemctl disable --now {} on the {}", unit, under.name);
    if (active[i] == "active" && avoids_us(*under.system, unit)) {
      out.push_back({"oom_killer", under.name, Level::kNote,
                     fmt::format("{} is active, and its --avoid names tandem", unit), "", ""});
    } else if (active[i] == "active") {
      const bool soft = unit == "systemd-oomd" || under.config->ignore_oom_killers;
      out.push_back({"oom_killer", under.name, soft ? Level::kWarn : Level::kFail,
                     fmt::format("{} is active on the {}", unit, under.name), kWhy, fix});
    } else if (enabled[i] == "enabled") {
      out.push_back({"oom_killer", under.name, Level::kWarn,
                     fmt::format("{} is stopped but enabled: it returns at the next boot", unit),
                     kWhy, fix});
    } else {
      continue;
    }
    found = true;
  }
  if (!found) {
    out.push_back({"oom_killer", under.name, Level::kPass,
                   "none of " + joined(killer_units(), ", "), "", ""});
  }
}

}  // namespace tandem::cluster
