// The fixed sentences of the chat format, byte for byte as the model was trained on them.
// SOURCE: model.md 5.3, 5.4, 5.5.
#pragma once

#include <string_view>

#include "model/text/chat_encoder.h"

namespace tandem::text {

inline constexpr std::string_view kBosText = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEosText = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUserText = "<｜User｜>";
inline constexpr std::string_view kAssistantText = "<｜Assistant｜>";
inline constexpr std::string_view kLatestReminderText = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";

// What stands before and after the tool schemas, which are one JSON text a line.
extern const std::string_view kToolsBegin;
extern const std::string_view kToolsEnd;

// What stands before the JSON schema of the reply.
extern const std::string_view kResponseFormatBegin;

// The prefix of an effort; empty for those without one.
std::string_view effort_prefix(ChatFormat format, Effort effort);

// The token text of a task. REQUIRES: not kNone.
std::string_view task_token(Task task);

}  // namespace tandem::text
