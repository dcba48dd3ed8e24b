#include "serving/protocol/conversation.h"

#include <utility>

namespace tandem::protocol {

// The assistant turn that the next part belongs to.
text::Message& ConversationBuilder::turn() {
  if (!held_.empty()) {
    release();
  }
  if (!turn_is_open_) {
    text::Message message;
    message.role = text::Role::kAssistant;
    messages_.push_back(std::move(message));
    turn_is_open_ = true;
  }
  return messages_.back();
}

void ConversationBuilder::reasoning(std::string_view text) {
  text::Message& message = turn();
  if (message.reasoning && !message.reasoning->empty() && !text.empty()) {
    *message.reasoning += "\n";
  }
  message.reasoning = message.reasoning.value_or("") + std::string(text);
}

void ConversationBuilder::assistant_text(std::string_view text, std::string_view separator) {
  std::string& content = turn().content;
  if (!content.empty()) {
    content += separator;
  }
  content += text;
}

void ConversationBuilder::call(text::ToolCall call) {
  known_.insert(call.id);
  text::Message& message = turn();
  waiting_.insert(call.id);
  message.tool_calls.push_back(std::move(call));
}

void ConversationBuilder::message(text::Message message) {
  if (waits_for_results()) {
    held_.push_back(std::move(message));
    return;
  }
  messages_.push_back(std::move(message));
  turn_is_open_ = false;
}

void ConversationBuilder::result(text::Message result) {
  waiting_.erase(result.tool_call_id);
  messages_.push_back(std::move(result));
  turn_is_open_ = false;
  if (!waits_for_results()) {
    release();
  }
}

// Calls that have no result until now will get none.
void ConversationBuilder::release() {
  waiting_.clear();
  for (text::Message& message : held_) {
    messages_.push_back(std::move(message));
    turn_is_open_ = false;
  }
  held_.clear();
}

std::vector<text::Message> ConversationBuilder::take() {
  release();
  return std::move(messages_);
}

}  // namespace tandem::protocol
