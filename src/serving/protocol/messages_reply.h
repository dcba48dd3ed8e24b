// MessagesReply: the Reply of POST /v1/messages. SOURCE: api.md 3.10.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "serving/protocol/ids.h"
#include "serving/protocol/reply.h"

namespace tandem::protocol {

class MessagesReply final : public Reply {
 public:
  // `request_id` stands in errors, as in the request-id header.
  MessagesReply(std::string model, std::string request_id, IdSource& ids);

  std::string begin(std::int64_t prompt_tokens) override;
  std::string update(const ChoiceUpdate& update) override;
  std::string end_choice(const ChoiceEnd& end) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  std::string heartbeat() override;
  json::Value body() const override;
  json::Value error_body(const ApiError& error) const override;

 private:
  enum class Block { kNone, kThinking, kText, kToolUse };

  void event(const text::StreamEvent& event);
  void open(Block block, json::Object content);
  void delta(json::Object delta);
  void enter(Block block);
  void close();
  void end_call(const text::StreamEvent& event);
  std::string take() { return std::exchange(frames_, {}); }

  std::string request_id_;
  IdSource& ids_;
  json::Object message_;  // the whole form; content grows block by block
  std::string frames_;
  Block block_ = Block::kNone;
  std::int64_t n_blocks_ = 0;  // blocks begun
  json::Object open_;          // the block that is being written
  std::string text_;           // its text, or a call's arguments
  bool has_call_ = false;
  bool cut_call_ = false;
};

// {"type": "error", "error": {"type", "message"}, "request_id"}.
json::Object messages_error_body(const ApiError& error, const std::string& request_id);

}  // namespace tandem::protocol
