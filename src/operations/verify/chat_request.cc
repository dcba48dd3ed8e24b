#include "operations/verify/chat_request.h"

#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

void note(ChatStreamFacts& facts, std::string text) {
  if (facts.bad.empty()) {
    facts.bad = std::move(text);
  }
}

void take_calls(ChatStreamFacts& facts, const json::Value& delta) {
  const json::Value* calls = at(delta, "tool_calls");
  if (calls == nullptr || !calls->is_array()) {
    return;
  }
  for (const json::Value& call : calls->get_array()) {
    const auto index = int_at(call, "index");
    if (!index.has_value()) {
      note(facts, "a tool call delta has no index");
      continue;
    }
    const auto place = static_cast<std::size_t>(*index);
    if (place > facts.calls.size()) {
      note(facts, fmt::format("tool call index {} after {} calls", place, facts.calls.size()));
      continue;
    }
    if (place == facts.calls.size()) {
      facts.calls.push_back({text_at(call, "id"), text_at(call, "function.name"), ""});
      if (facts.calls.back().id.empty() || facts.calls.back().name.empty()) {
        note(facts, "the first delta of a tool call lacks id or name");
      }
    } else if (!text_at(call, "id").empty() || !text_at(call, "function.name").empty()) {
      note(facts, "id or name is repeated in a later tool call delta");
    }
    facts.calls[place].arguments += text_at(call, "function.arguments");
  }
}

void take_choice(ChatStreamFacts& facts, const json::Value& choice, bool first) {
  if (const json::Value* delta = at(choice, "delta")) {
    if (first) {
      facts.role_first = text_at(*delta, "role") == "assistant";
    }
    facts.content += text_at(*delta, "content");
    facts.reasoning += reasoning_of(*delta);
    take_calls(facts, *delta);
  }
  const std::string reason = text_at(choice, "finish_reason");
  if (!reason.empty()) {
    facts.finish_reason = reason;
    ++facts.finish_count;
  } else if (facts.finish_count > 0) {
    note(facts, "a delta after finish_reason");
  }
}

void take_chunk(ChatStreamFacts& facts, const json::Value& chunk, bool first) {
  if (text_at(chunk, "object") != "chat.completion.chunk") {
    note(facts, "object is '" + text_at(chunk, "object") + "'");
  }
  const std::string id = text_at(chunk, "id");
  if (!first && id != facts.id) {
    note(facts, "the id changed from " + facts.id + " to " + id);
  }
  facts.id = id;
  if (const json::Value* usage = at(chunk, "usage"); usage != nullptr && usage->is_object()) {
    facts.usage = *usage;
  }
  const json::Value* choices = at(chunk, "choices");
  if (choices == nullptr || !choices->is_array()) {
    note(facts, "a chunk has no choices list");
    return;
  }
  for (const json::Value& choice : choices->get_array()) {
    take_choice(facts, choice, first);
  }
}

}  // namespace

std::string reasoning_of(const json::Value& message) {
  const std::string ours = text_at(message, "reasoning_content");
  return ours.empty() ? text_at(message, "reasoning") : ours;
}

json::Object chat_body(const GateContext& context, std::string_view user, int max_tokens) {
  return {{"model", context.model()},
          {"messages", json::Array{json::Object{{"role", "user"}, {"content", user}}}},
          {"temperature", 0},
          {"max_tokens", max_tokens},
          {"chat_template_kwargs", json::Object{{"thinking", false}}}};
}

json::Object weather_tool() {
  return {
      {"type", "function"},
      {"function",
       json::Object{
           {"name", "get_weather"},
           {"description", "Get the current weather of a city."},
           {"parameters",
            json::Object{{"type", "object"},
                         {"properties", json::Object{{"city", json::Object{{"type", "string"}}}}},
                         {"required", json::Array{"city"}},
                         {"additionalProperties", false}}}}}};
}

ChatStreamFacts read_chat_stream(const StreamReply& reply) {
  ChatStreamFacts facts;
  bool first = true;
  for (const net::SseEvent& event : reply.events) {
    if (!event.event.empty()) {
      note(facts, "a chat frame has an event: line: " + event.event);
    }
    if (facts.done_count > 0) {
      note(facts, "an event after [DONE]");
    }
    if (event.data == "[DONE]") {
      ++facts.done_count;
      continue;
    }
    const auto parsed = json::parse(event.data);
    if (!parsed.ok()) {
      note(facts, "data is no JSON: " + shorten(event.data, 120));
      continue;
    }
    take_chunk(facts, *parsed, first);
    first = false;
  }
  if (reply.ended_inside_event) {
    note(facts, "the stream ended inside an event");
  }
  if (!reply.transport.ok()) {
    note(facts, reply.transport.to_string());
  }
  return facts;
}

}  // namespace tandem::verify
