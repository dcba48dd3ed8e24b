// The small integers that travel through the system, named so that signatures explain themselves.
#pragma once

#include <cstdint>

namespace tandem {

using TokenId = std::int32_t;      // row of the embedding table
using SequenceId = std::uint64_t;  // one timeline of tokens, unique while the process lives
using PageId = std::int32_t;       // index into a page pool
using Position = std::int64_t;     // 0-based absolute position of a token in its sequence

}  // namespace tandem
