// Communicator: what ranks say to each other. Collectives move activations; the control channel
// moves step plans from rank 0 to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foundation/base/clock.h"
#include "foundation/base/status.h"

namespace tandem::comm {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Element-wise sum over ranks, in place. Every rank gets the same bits.
  virtual void all_reduce_sum(std::span<float> values) = 0;

  // Concatenates equal parts in order of rank: out [size * in.size()].
  virtual void all_gather(std::span<const float> in, std::span<float> out) = 0;

  // Rank 0's bytes reach every rank. On rank 0 `bytes` is sent, elsewhere it is replaced.
  // Waiting ranks sleep: an idle pair uses no core.
  virtual void broadcast(std::vector<std::uint8_t>& bytes) = 0;

  virtual void barrier() = 0;

  // Ends all ranks of the job at once with this exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

// One rank alone.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace tandem::comm
