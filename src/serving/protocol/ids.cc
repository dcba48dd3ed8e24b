#include "serving/protocol/ids.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace tandem::protocol {

std::uint64_t IdSource::random_seed() {
  std::uint64_t seed = 0;
  const ssize_t got = getrandom(&seed, sizeof(seed), 0);
  TANDEM_CHECK(got == sizeof(seed), "getrandom gave no random bytes");
  return seed;
}

std::string IdSource::make(std::string_view prefix) {
  const std::uint64_t n = counter_.fetch_add(1, std::memory_order_relaxed);
  return fmt::format("{}{:016x}{:016x}", prefix, mix64(seed_a_ ^ n), mix64(seed_b_ + n));
}

}  // namespace tandem::protocol
