// TokenConstraint: what a grammar looks like to the step loop. One per sequence; a pure state
// machine over tokens, independent of how the grammar was written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::grammar {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit t of mask [ceil(vocab_size / 32)] iff token t may come next. Returns false, with the
  // mask untouched, if every token may come next.
  virtual bool fill_mask(std::span<std::uint32_t> mask) = 0;

  // Takes one token. Returns false, with the state unchanged, if the token is not allowed.
  virtual bool accept(TokenId token) = 0;

  // Undoes the last n_tokens accepted tokens. REQUIRES: so many were accepted.
  virtual void rollback(int n_tokens) = 0;

  // The tokens, at most max_tokens, that are the only way on from here (jump-forward).
  virtual std::vector<TokenId> forced_tokens(int max_tokens) const = 0;

  // True when the text is complete and only the end-of-sequence token may follow.
  virtual bool is_finished() const = 0;

  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

}  // namespace tandem::grammar
