#include "compute/cuda/available_memory.h"

#include <charconv>

namespace tandem::cuda {

std::int64_t mem_available(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t found = meminfo.find(kKey);
  if (found == std::string_view::npos || (found > 0 && meminfo[found - 1] != '\n')) {
    return -1;
  }
  std::string_view rest = meminfo.substr(found + kKey.size());
  rest.remove_prefix(rest.find_first_not_of(' ') == std::string_view::npos
                         ? rest.size()
                         : rest.find_first_not_of(' '));
  std::int64_t kib = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return error == std::errc() &&
                 rest.substr(static_cast<std::size_t>(end - rest.data()), 3) == " kB"
             ? kib * 1024
             : -1;
}

std::int64_t available_memory(bool unified, std::int64_t driver_free_bytes,
                              std::string_view meminfo) {
  const std::int64_t of_system = mem_available(meminfo);
  return unified && of_system >= 0 ? of_system : driver_free_bytes;
}

}  // namespace tandem::cuda
