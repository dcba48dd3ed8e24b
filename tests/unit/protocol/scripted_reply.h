// Drives a Reply with a text that the model is supposed to have written, cut into steps in any way:
// text -> tokens -> the real stream decoder -> Reply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/stream_decoder.h"
#include "serving/protocol/reply.h"

namespace tandem::testing {

struct Script {
  std::string text;  // marks like </think> and ｜DSML｜ become their tokens
  text::StreamOptions options;
  runtime::FinishReason reason = runtime::FinishReason::kStop;
  runtime::Usage usage{.prompt_tokens = 10, .cached_tokens = 4, .completion_tokens = 7};
};

// Numbers of tokens per step, used round robin. {1}: token by token; {1000000}: all in one step.
using Cut = std::vector<std::size_t>;

// One token a step, steps of 2 to 9 tokens, all at once, and random steps.
std::vector<Cut> many_cuts();

// All frames of the streamed form.
std::string stream(protocol::Reply& reply, const Script& script, const Cut& cut);

// The whole form.
json::Value whole(protocol::Reply& reply, const Script& script);

// The DSML text of calls: "NAME" with parameters as "string" or JSON, wrapped as the model does.
std::string dsml_call(std::string_view name, std::string_view parameters);
std::string dsml_block(std::string_view calls);
std::string dsml_string(std::string_view name, std::string_view value);

}  // namespace tandem::testing
