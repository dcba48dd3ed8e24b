#include "compute/device/step_graphs.h"

#include <algorithm>
#include <utility>

namespace tandem::device {

Status StepGraphs::run(const StepShape& shape, const std::function<void()>& queue_work) {
  if (shape.n_tokens > max_tokens_ || max_graphs_ < 1) {
    ++stats_.n_direct;
    queue_work();
    return ok_status();
  }
  const auto [place, is_new] = entries_.try_emplace(shape);
  Entry& entry = place->second;
  entry.last_use = ++clock_;
  if (is_new) {
    ++stats_.n_direct;
    queue_work();
    make_room();
    return ok_status();
  }
  if (entry.graph == nullptr) {
    TANDEM_ASSIGN(entry.graph, recorder_.record(queue_work));
    ++stats_.n_recorded;
  }
  ++stats_.n_replayed;
  return entry.graph->replay();
}

void StepGraphs::make_room() {
  while (static_cast<std::int64_t>(entries_.size()) > max_graphs_) {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    entries_.erase(oldest);
  }
}

StepGraphStats StepGraphs::stats() const {
  StepGraphStats stats = stats_;
  stats.n_graphs = std::count_if(entries_.begin(), entries_.end(),
                                 [](const auto& entry) { return entry.second.graph != nullptr; });
  return stats;
}

}  // namespace tandem::device
