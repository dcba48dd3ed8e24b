// The gates by family. Each function appends its gates to the list.
#pragma once

#include <vector>

#include "operations/verify/gate.h"

namespace tandem::verify {

void add_catalog_gates(std::vector<Gate>& gates);      // models, health, errors
void add_responses_gates(std::vector<Gate>& gates);    // /v1/responses
void add_chat_gates(std::vector<Gate>& gates);         // /v1/chat/completions
void add_messages_gates(std::vector<Gate>& gates);     // /v1/messages
void add_sampling_gates(std::vector<Gate>& gates);     // determinism, logprobs, n, stop, budget
void add_multiturn_gates(std::vector<Gate>& gates);    // prefix reuse, disconnect
void add_recall_gates(std::vector<Gate>& gates);       // long context, garbled text
void add_deep_gates(std::vector<Gate>& gates);         // tool calls behind a long context
void add_speculation_gates(std::vector<Gate>& gates);  // drafts on = off

}  // namespace tandem::verify
