// Why a step does not end, from what the ranks know of each other: the words for the operator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::comm {

// How far one rank's device has come.
struct RankProgress {
  std::int64_t step = 0;        // steps that the rank has begun
  std::int64_t collective = 0;  // collectives that its device has reached, ever
};

enum class Verdict {
  kFabric,  // the network, or the other machine
  kDesync,  // the ranks are not in the same step: a fault of ours
  kKernel,  // a device works on something that does not end
};

struct Diagnosis {
  Verdict verdict = Verdict::kFabric;
  std::string text;
};

// `all` holds every rank's progress in order, or nothing if the others did not answer in time.
// `transport_error` is what the collective library reports, empty if nothing.
Diagnosis diagnose_stuck_step(int rank, std::span<const RankProgress> all,
                              std::string_view transport_error);

// "fabric", "desync", "kernel".
std::string_view verdict_name(Verdict verdict);

}  // namespace tandem::comm
