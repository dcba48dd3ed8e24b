// TokenConstraint: what a grammar says about the next token of one sequence. The step loop asks for
// a mask before sampling, reports what was sampled, and takes tokens back when a draft is rejected.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::grammar {

// One per sequence; a pure state machine over tokens. Not thread-safe by itself; different
// constraints of one grammar may be used from different threads.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // How many accepted tokens rollback() can always take back.
  static constexpr int kMaxRollback = 512;

  // Sets bit t % 32 of word t / 32 iff token t may come next and clears all others; `mask` has
  // ceil(vocab / 32) words. Returns false if every token is allowed (mask untouched).
  // At least one bit is always set.
  virtual bool fill_mask(std::span<std::uint32_t> mask) = 0;

  // Moves over one token. False: the grammar does not allow it, and the state is unchanged.
  virtual bool accept(TokenId token) = 0;

  // Undoes the last n accepted tokens. REQUIRES: 0 <= n <= tokens accepted, n <= kMaxRollback.
  virtual void rollback(int n_tokens) = 0;

  // The tokens that must come next because the text allows no other, at most `max` of them:
  // accepting them is the same as sampling them. Empty if there is a choice.
  virtual std::vector<TokenId> forced_tokens(int max) const = 0;

  // True once the text is complete and only an end-of-sequence token may follow (or has followed).
  virtual bool is_finished() const = 0;

  // An independent copy in the same state.
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

}  // namespace tandem::grammar
