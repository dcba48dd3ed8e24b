#include "serving/protocol/responses_compact.h"

#include <utility>

#include "serving/protocol/opaque_text.h"
#include "serving/protocol/responses_reply.h"

namespace tandem::protocol {
namespace {

constexpr std::string_view kQuestion =
    "Write a summary of the conversation above from which it can be continued without the "
    "original. Keep the user's wishes in their own words, decisions, names, paths, numbers, code "
    "that is still needed, results of tools and what is still to do. Write the summary only.";

// What the compact body shares with a normal one.
constexpr std::string_view kShared[] = {"model", "input", "previous_response_id", "instructions",
                                        "prompt_cache_key"};

}  // namespace

Parsed<GenerationTask> parse_compact_request(const json::Value& body, const ResponseLookup& lookup,
                                             IdSource& ids) {
  json::Object shared;
  for (const std::string_view key : kShared) {
    if (const json::Value* value = json::find(body, key)) {
      shared[key] = *value;
    }
  }
  const json::Value* model = json::find(body, "model");
  if (model == nullptr || !model->is_string()) {
    return bad_field("model", "'model' is missing, expected a string");
  }
  Parsed<ResponsesRequest> request = parse_responses_request(shared, lookup, ids);
  if (!request.ok()) {
    return request.error();
  }
  ChatPrompt& prompt = std::get<ChatPrompt>(request->task.prompt);
  prompt.mode = text::ThinkingMode::kChat;
  text::Message question;
  question.role = text::Role::kUser;
  question.content = kQuestion;
  prompt.messages.push_back(std::move(question));
  return std::move(request->task);
}

CompactReply::CompactReply(IdSource& ids, const Clock& clock)
    : id_(ids.make("resp_")), item_id_(ids.make("cmp_")), created_at_(clock.unix_seconds()) {}

std::string CompactReply::begin(std::int64_t /*prompt_tokens*/) {
  return {};
}

std::string CompactReply::update(const ChoiceUpdate& update) {
  for (const text::StreamEvent& event : update.events) {
    if (event.kind == text::StreamEvent::Kind::kContent) {
      summary_ += event.text;
    }
  }
  return {};
}

std::string CompactReply::end_choice(const ChoiceEnd& end) {
  usage_ = end.usage;
  return {};
}

std::string CompactReply::finish() {
  return {};
}

std::string CompactReply::fail(const ApiError& /*error*/) {
  return {};
}

std::string CompactReply::heartbeat() {
  return {};
}

json::Value CompactReply::body() const {
  return json::Object{
      {"id", id_},
      {"object", "response.compaction"},
      {"created_at", created_at_},
      {"output", json::Array{json::Object{{"type", "compaction"},
                                          {"id", item_id_},
                                          {"encrypted_content", wrap_opaque(summary_)}}}},
      {"usage", responses_usage(usage_)}};
}

json::Value CompactReply::error_body(const ApiError& error) const {
  return openai_error_body(error);
}

}  // namespace tandem::protocol
