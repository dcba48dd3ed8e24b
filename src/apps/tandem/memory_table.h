// The memory plan as people read it, and whether the machine has that much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compute/device/device.h"
#include "foundation/base/status.h"

namespace tandem::apps {

struct MemoryPlan {
  std::vector<device::MemoryUse> rows;  // of one rank
  int ranks_here = 1;                   // ranks that share this machine's memory
  double bytes_per_token = 0;           // cache growth of one sequence, one rank

  std::int64_t rank_bytes() const;
};

// One line per label, the sum, and what the machine has left (bytes; -1: unknown).
std::string memory_table(const MemoryPlan& plan, std::int64_t available_bytes);

// MemAvailable of /proc/meminfo, bytes; -1 where there is none.
std::int64_t available_memory_bytes();

// ERRORS: kResourceExhausted with both figures and what to lower.
Status check_memory(const MemoryPlan& plan, std::int64_t available_bytes);

}  // namespace tandem::apps
