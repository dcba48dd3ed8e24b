// Filler text of a stated length in the server's own tokens.
#pragma once

#include <string>

#include "operations/verify/api_client.h"

namespace tandem::verify {

// A text that no cache has seen: the process id and a counter, spelled out.
std::string run_nonce();

// Sentences that start with `nonce` and count at least `tokens` tokens by the server's /tokenize.
// ERRORS: kFailedPrecondition if the server cannot count.
Result<std::string> filler_of_tokens(ApiClient& client, std::int64_t tokens,
                                     const std::string& nonce);

// Tokens of a text by the server's /tokenize.
Result<std::int64_t> count_tokens(ApiClient& client, const std::string& text);

}  // namespace tandem::verify
