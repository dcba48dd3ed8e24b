// ControlChannel: how rank 0 tells the other ranks what to do next, in an order that none of them
// can leave without being noticed.
#pragma once

#include <string>
#include <vector>

#include "compute/comm/communicator.h"
#include "engine/runtime/forward_model.h"
#include "engine/scheduler/step_plan.h"

namespace tandem::runtime {

class ControlChannel {
 public:
  explicit ControlChannel(comm::Communicator& communicator) : communicator_(communicator) {}

  // Rank 0: to all others.
  void send(const scheduler::ControlMessage& message);

  // Others: waits, without using a core. ERRORS: kDataLoss, see MessageChain.
  Result<scheduler::ControlMessage> receive();

  // All ranks: returns once every rank has called it.
  void roll_call() { communicator_.barrier(); }

 private:
  comm::Communicator& communicator_;
  scheduler::MessageChain chain_;
};

// All ranks, once at the start: host name of every rank.
// ERRORS: kFailedPrecondition, on every rank, if the ranks were started with different sizes.
Result<std::vector<std::string>> meet_ranks(comm::Communicator& communicator,
                                            const ForwardSizes& sizes, const std::string& host);

}  // namespace tandem::runtime
