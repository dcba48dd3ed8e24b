// ConversationBuilder: turns an ordered list of items (what Responses and Messages store and send)
// into the messages that the chat encoder knows. It owns the rules about order (api.md A23, A24;
// field-cases C-08):
//   - reasoning, text and calls that follow each other are one assistant turn;
//   - what stands between a call and its result (a developer's note, a user's word) moves behind
//     the results, since the model was trained on results that follow their calls directly;
//   - a result must belong to a call of the conversation.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/chat_message.h"

namespace tandem::protocol {

class ConversationBuilder {
 public:
  void reasoning(std::string_view text);

  // `separator` stands before the text if the turn has text already.
  void assistant_text(std::string_view text, std::string_view separator = {});
  void call(text::ToolCall call);

  // A user or system message.
  void message(text::Message message);

  bool knows_call(const std::string& call_id) const { return known_.count(call_id) != 0; }

  // REQUIRES: knows_call(result.tool_call_id).
  void result(text::Message result);

  std::vector<text::Message> take();

 private:
  text::Message& turn();
  bool waits_for_results() const { return !waiting_.empty(); }
  void release();

  std::vector<text::Message> messages_;
  std::vector<text::Message> held_;  // behind the results that are still missing
  std::set<std::string> known_;      // ids of all calls
  std::set<std::string> waiting_;    // ids of calls without a result
  bool turn_is_open_ = false;        // messages_.back() is an assistant turn that goes on
};

}  // namespace tandem::protocol
