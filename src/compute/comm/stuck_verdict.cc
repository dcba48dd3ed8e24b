#include "compute/comm/stuck_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::comm {
namespace {

std::string places(std::span<const RankProgress> all) {
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    text += fmt::format("{}rank {} in step {} at collective {}", rank == 0 ? "" : ", ", rank,
                        all[rank].step, all[rank].collective);
  }
  return text;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFabric:
      return "fabric";
    case Verdict::kDesync:
      return "desync";
    case Verdict::kKernel:
      return "kernel";
  }
  return "";
}

Diagnosis diagnose_stuck_step(int rank, std::span<const RankProgress> all,
                              std::string_view transport_error) {
  if (!transport_error.empty()) {
    return {
        Verdict::kFabric,
        fmt::format("the collective library reports: {}; check the cable, the link and the other "
                    "machine's log",
                    transport_error)};
  }
  if (all.empty()) {
    return {Verdict::kFabric,
            fmt::format("rank {} waits and the other ranks do not answer; see whether "
                        "their machine and process are alive",
                        rank)};
  }
  const auto by_step = [](const RankProgress& a, const RankProgress& b) { return a.step < b.step; };
  const auto steps = std::minmax_element(all.begin(), all.end(), by_step);
  if (steps.first->step != steps.second->step) {
    return {Verdict::kDesync,
            fmt::format("{}: the ranks run different steps; please report this with both logs",
                        places(all))};
  }
  const auto by_collective = [](const RankProgress& a, const RankProgress& b) {
    return a.collective < b.collective;
  };
  const auto reached = std::minmax_element(all.begin(), all.end(), by_collective);
  if (reached.first->collective != reached.second->collective) {
    return {Verdict::kKernel,
            fmt::format("{}: the GPU of rank {} does not reach the next collective; "
                        "see its kernel log for Xid messages",
                        places(all), reached.first - all.begin())};
  }
  return {Verdict::kFabric,
          fmt::format("{}: all ranks wait in the same collective and no data moves; check the link",
                      places(all))};
}

}  // namespace tandem::comm
