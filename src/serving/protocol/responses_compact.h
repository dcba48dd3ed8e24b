// POST /v1/responses/compact: the model writes a summary of a conversation, and the client gets it
// as one opaque item to put in front of what comes next. SOURCE: OpenResponses 2026-04-24.
#pragma once

#include <string>

#include "foundation/base/clock.h"
#include "serving/protocol/reply.h"
#include "serving/protocol/responses_request.h"

namespace tandem::protocol {

// The task that writes the summary: the conversation and the question for it, without thinking.
// ERRORS: 400 with the field; "previous_response_not_found" from the lookup.
Parsed<GenerationTask> parse_compact_request(const json::Value& body, const ResponseLookup& lookup,
                                             IdSource& ids);

// Only the whole form exists: the stream's frames are empty.
class CompactReply final : public Reply {
 public:
  CompactReply(IdSource& ids, const Clock& clock);

  std::string begin(std::int64_t prompt_tokens) override;
  std::string update(const ChoiceUpdate& update) override;
  std::string end_choice(const ChoiceEnd& end) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  std::string heartbeat() override;
  json::Value body() const override;
  json::Value error_body(const ApiError& error) const override;

 private:
  std::string id_;
  std::string item_id_;
  std::int64_t created_at_;
  std::string summary_;
  runtime::Usage usage_;
};

}  // namespace tandem::protocol
