// Parts of a chat body that other endpoints read too: sampling, thinking, the wanted form.
#pragma once

#include "serving/protocol/generation_task.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// temperature, top_p, top_k, min_p, penalties, seed, logit_bias. SOURCE: api.md 3.7.
sampling::SamplingParams parse_sampling(const Fields& body);

// "stop": a string or up to 16 of them.
std::vector<std::string> parse_stop(const Fields& body);

// max_completion_tokens before max_tokens; -1 if neither is there.
std::int64_t parse_max_tokens(const Fields& body);

// All the ways to say how much to think; off wins. SOURCE: api.md 3.5.
void parse_thinking(const Fields& body, ChatPrompt& prompt, std::optional<int>& budget);

// response_format, and vLLM's guided_* and structured_outputs.
ReplyFormat parse_reply_format(const Fields& body);

}  // namespace tandem::protocol
