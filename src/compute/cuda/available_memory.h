// How much memory a GPU may still take. On unified memory the driver counts pages that hold cached
// files as used, so its free counter alone would refuse a model that fits.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::cuda {

// MemAvailable of /proc/meminfo in bytes; -1 if the text has no such line.
std::int64_t mem_available(std::string_view meminfo);

// Unified memory: what the system can free. Otherwise the driver's counter.
std::int64_t available_memory(bool unified, std::int64_t driver_free_bytes,
                              std::string_view meminfo);

}  // namespace tandem::cuda
