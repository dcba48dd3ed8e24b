// PromptScale: how many words of filler make a prompt of a stated number of tokens, measured on the
// server under test and not assumed.
#pragma once

#include <atomic>
#include <cstdint>

#include "operations/bench/prompts.h"
#include "operations/bench/sample.h"

namespace tandem::bench {

struct PromptScale {
  double fixed = 0;     // tokens of a prompt without filler, template included
  double per_word = 0;  // tokens per word of filler
  bool by_tokenize = false;

  // 0 if the target is not above `fixed`.
  std::int64_t words_for(std::int64_t tokens) const;

  // Corrects per_word by what a prompt of `words` words really counted.
  void correct(std::int64_t words, std::int64_t counted);
};

// Counts two prompts, with and without filler: by POST /tokenize where the server has it, else by
// the usage of a request for one token.
// ERRORS: those of stream_request; kFailedPrecondition if the two counts do not grow.
Result<PromptScale> measure_scale(const Target& target, ContentClass content, std::uint64_t seed,
                                  const std::atomic<bool>& stop);

}  // namespace tandem::bench
