// Content blocks of the Messages API -> messages of the chat encoder.
#pragma once

#include <string>

#include "serving/protocol/conversation.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// The text of "system": a string or text blocks. Claude Code's billing line, which changes with
// every request and would spoil the prefix cache, is left out (A30).
std::string system_text(const Fields& body);

// Adds one element of "messages".
void read_message(const Fields& message, ConversationBuilder& conversation);

}  // namespace tandem::protocol
