#include "engine/grammar/machine.h"

#include <utility>

namespace tandem::grammar {
namespace {

constexpr std::size_t kMaxSpaceBytes = std::size_t{48} << 20;

}  // namespace

Machine::Machine(std::shared_ptr<const Graph> graph, std::shared_ptr<const Vocabulary> vocabulary,
                 EntryMode mode)
    : graph_(std::move(graph)), vocabulary_(std::move(vocabulary)), mode_(mode) {
  if (mode_ != EntryMode::kFreeText) {
    space_ = std::make_shared<StateSpace>(graph_, vocabulary_);
  }
  const auto clear = [](std::vector<std::uint32_t>* mask, TokenId token) {
    if (token >= 0) {
      (*mask)[static_cast<std::size_t>(token) / 32] &= ~(1U << (token % 32));
    }
  };
  for (std::size_t i = 0; i < free_masks_.size(); ++i) {
    free_masks_[i].assign(vocabulary_->mask_words(), 0xFFFFFFFFU);
    if (vocabulary_->size() % 32 != 0) {
      free_masks_[i].back() = (1U << (vocabulary_->size() % 32)) - 1;
    }
    if ((i & 1) == 0) {
      for (const TokenId eos : vocabulary_->roles().eos) {
        clear(&free_masks_[i], eos);
      }
    }
    if ((i & 2) == 0) {
      clear(&free_masks_[i], vocabulary_->roles().dsml);
    }
  }
}

std::shared_ptr<StateSpace> Machine::space() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return space_;
}

void Machine::renew(std::shared_ptr<StateSpace>* space, StateId* state) {
  std::shared_ptr<StateSpace> fresh;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (space_ == *space) {
      const std::lock_guard<std::mutex> inner((*space)->mutex());
      if ((*space)->bytes_used() <= kMaxSpaceBytes) {
        return;
      }
      space_ = std::make_shared<StateSpace>(graph_, vocabulary_);
    }
    fresh = space_;
  }
  const std::shared_ptr<StateSpace> keep = *space;  // outlives the lock on its mutex
  // Always old before new, so two matchers cannot wait for each other.
  const std::lock_guard<std::mutex> old_lock((*space)->mutex());
  const std::lock_guard<std::mutex> new_lock(fresh->mutex());
  *state = fresh->import(**space, *state);
  *space = fresh;
}

}  // namespace tandem::grammar
