// StepGraphs: records the work that one step queues, once per shape, and replays it afterwards. A
// decode step is more than a thousand short kernels; launching them one by one costs more than
// running them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "foundation/base/status.h"

namespace tandem::device {

// All in which two steps may differ, except for what their inputs in device and shared memory hold.
struct StepShape {
  std::int32_t n_tokens = 0;
  std::int32_t n_segments = 0;
  std::int32_t n_logit_rows = 0;
  std::int32_t kind = 0;  // which pass: main step, draft, ...

  auto operator<=>(const StepShape&) const = default;
};

struct StepGraphStats {
  std::int64_t n_graphs = 0;    // kept now
  std::int64_t n_recorded = 0;  // ever
  std::int64_t n_replayed = 0;
  std::int64_t n_direct = 0;  // steps that were queued kernel by kernel
};

// Recording and replaying on one device.
class GraphRecorder {
 public:
  // One recorded step; its destructor frees it.
  class Graph {
   public:
    virtual ~Graph() = default;
    // Queues the whole step.
    virtual Status replay() = 0;
  };

  virtual ~GraphRecorder() = default;
  // Runs queue_work with the device recording instead of running.
  // ERRORS: kInternal with the driver's words; nothing has been queued then.
  virtual Result<std::unique_ptr<Graph>> record(const std::function<void()>& queue_work) = 0;
};

class StepGraphs {
 public:
  // Steps of more than max_tokens rows are queued directly: their kernels are long. At most
  // max_graphs are kept, the longest unused goes first. `recorder` outlives this.
  StepGraphs(GraphRecorder& recorder, std::int32_t max_tokens, std::int64_t max_graphs)
      : recorder_(recorder), max_tokens_(max_tokens), max_graphs_(max_graphs) {}

  // Runs a step. queue_work must queue the same kernels with the same arguments for equal shapes,
  // and neither wait nor allocate. A shape is queued directly the first time (kernels are loaded
  // then), recorded the second time, and replayed from then on. ERRORS: those of record() and
  // replay().
  Status run(const StepShape& shape, const std::function<void()>& queue_work);

  // Forgets everything recorded. Recorded work refers to the memory it was recorded with.
  void clear() { entries_.clear(); }

  StepGraphStats stats() const;

 private:
  struct Entry {
    std::unique_ptr<GraphRecorder::Graph> graph;  // nullptr: seen once
    std::int64_t last_use = 0;
  };

  void make_room();

  GraphRecorder& recorder_;
  std::int32_t max_tokens_;
  std::int64_t max_graphs_;
  std::map<StepShape, Entry> entries_;
  std::int64_t clock_ = 0;
  StepGraphStats stats_;
};

}  // namespace tandem::device
