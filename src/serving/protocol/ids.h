// Ids of responses, items and calls: a prefix and 32 hexadecimal digits, never the same twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::protocol {

// Thread-safe. The same seeds give the same ids in the same order, which tests rely on; a server
// takes its seeds from random_seed(), so ids stay unique across restarts.
class IdSource {
 public:
  IdSource(std::uint64_t seed_a, std::uint64_t seed_b) : seed_a_(seed_a), seed_b_(seed_b) {}

  // A number from the kernel's random source.
  static std::uint64_t random_seed();

  // "resp_" + 32 digits.
  std::string make(std::string_view prefix);

 private:
  std::uint64_t seed_a_;
  std::uint64_t seed_b_;
  std::atomic<std::uint64_t> counter_{0};
};

}  // namespace tandem::protocol
