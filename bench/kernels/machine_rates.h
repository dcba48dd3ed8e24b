// What this machine can do at best, measured in the same run as the kernels: the floors and
// ceilings that they are compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/cpu/fast/thread_pool.h"

namespace tandem::bench {

// Seconds to read the whole buffer once with all threads of the pool.
double seconds_to_read(cpu::ThreadPool& pool, const std::vector<std::uint8_t>& buffer);

// float32 multiply-adds per second, times two, of all threads together: registers only.
double peak_flops(cpu::ThreadPool& pool, std::int64_t rounds);

}  // namespace tandem::bench
