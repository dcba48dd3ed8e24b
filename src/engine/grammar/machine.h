// Machine: what all matchers of one grammar share: the graph, the vocabulary, how the grammar is
// entered, and the state space that fills up while they work.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/grammar/state_space.h"

namespace tandem::grammar {

enum class EntryMode : std::uint8_t {
  kImmediate,  // the grammar covers the whole answer
  kTriggered,  // free text; the grammar starts right behind "<" and the DSML marker
  kFreeText,   // free text in which the DSML marker cannot occur
};

class Machine {
 public:
  Machine(std::shared_ptr<const Graph> graph, std::shared_ptr<const Vocabulary> vocabulary,
          EntryMode mode);

  EntryMode mode() const { return mode_; }

  const Vocabulary& vocabulary() const { return *vocabulary_; }

  const Graph& graph() const { return *graph_; }

  // The space that new matchers use.
  std::shared_ptr<StateSpace> space();

  // If `space` has grown over its limit: moves `state` into the space that replaces it.
  void renew(std::shared_ptr<StateSpace>* space, StateId* state);

  // Every token but the end of the sequence and, unless wanted, the DSML marker: [mask_words].
  const std::vector<std::uint32_t>& free_mask(bool with_eos, bool with_dsml) const {
    return free_masks_[(with_eos ? 1 : 0) + (with_dsml ? 2 : 0)];
  }

 private:
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  EntryMode mode_;
  std::array<std::vector<std::uint32_t>, 4> free_masks_;
  std::mutex mutex_;
  std::shared_ptr<StateSpace> space_;
};

}  // namespace tandem::grammar
