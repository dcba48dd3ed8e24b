#include "apps/tandem/memory_table.h"

#include <fmt/format.h>

#include <fstream>

namespace tandem::apps {
namespace {

// What the rest of the machine may need after start: page tables, client buffers, the shell that
// looks at a fault.
constexpr std::int64_t kReserveBytes = 512LL << 20;

std::string size_text(std::int64_t bytes) {
  constexpr double kMiB = 1 << 20;
  const double mebibytes = static_cast<double>(bytes) / kMiB;
  return mebibytes >= 1024 ? fmt::format("{:9.2f} GiB", mebibytes / 1024)
                           : fmt::format("{:9.2f} MiB", mebibytes);
}

// "weights: layer 3" and its like are one line: "weights".
std::string group_of(const std::string& label) {
  return label.substr(0, label.find(':'));
}

}  // namespace

std::int64_t MemoryPlan::rank_bytes() const {
  std::int64_t sum = 0;
  for (const device::MemoryUse& row : rows) {
    sum += row.bytes;
  }
  return sum;
}

std::string memory_table(const MemoryPlan& plan, std::int64_t available_bytes) {
  std::vector<device::MemoryUse> groups;
  for (const device::MemoryUse& row : plan.rows) {
    const std::string group = group_of(row.label);
    if (groups.empty() || groups.back().label != group) {
      groups.push_back({group, 0});
    }
    groups.back().bytes += row.bytes;
  }
  std::string out;
  for (const device::MemoryUse& group : groups) {
    out += fmt::format("  {:<28}{}\n", group.label, size_text(group.bytes));
  }
  out += fmt::format("  {:<28}{}\n", "sum per rank", size_text(plan.rank_bytes()));
  if (plan.ranks_here > 1) {
    out += fmt::format("  {:<28}{}\n", fmt::format("{} ranks here", plan.ranks_here),
                       size_text(plan.rank_bytes() * plan.ranks_here));
  }
  if (available_bytes >= 0) {
    out += fmt::format("  {:<28}{}\n", "available here", size_text(available_bytes));
  }
  out +=
      fmt::format("  a sequence grows by {:.1f} bytes per token and rank\n", plan.bytes_per_token);
  return out;
}

std::int64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") {
      return kibibytes * 1024;
    }
    std::getline(file, unit);
  }
  return -1;
}

Status check_memory(const MemoryPlan& plan, std::int64_t available_bytes) {
  const std::int64_t needed = plan.rank_bytes() * plan.ranks_here;
  if (available_bytes < 0 || needed + kReserveBytes <= available_bytes) {
    return ok_status();
  }
  return resource_exhausted(
      "the plan needs {:.2f} GiB here and keeps {:.2f} GiB free, but only {:.2f} GiB are "
      "available; lower kv_tokens, max_sequences or max_context_tokens, or free memory",
      static_cast<double>(needed) / (1LL << 30), static_cast<double>(kReserveBytes) / (1LL << 30),
      static_cast<double>(available_bytes) / (1LL << 30));
}

}  // namespace tandem::apps
