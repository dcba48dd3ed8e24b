#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/messages";

json::Object messages_body(const GateContext& context, std::string_view user, int max_tokens) {
  return {{"model", context.model()},
          {"max_tokens", max_tokens},
          {"temperature", 0},
          {"thinking", json::Object{{"type", "disabled"}}},
          {"messages", json::Array{json::Object{{"role", "user"}, {"content", user}}}}};
}

Status check_text(GateContext& context) {
  TANDEM_ASSIGN(
      const ApiReply reply,
      context.client().post(kPath, messages_body(context, "Reply with exactly READY.", 64)));
  if (reply.status == 404) {
    context.skip("this server has no /v1/messages");
    return ok_status();
  }
  context.check(reply.status == 200, "messages.text.status", "200", reply.brief());
  context.check_equal("messages.text.type", "message", text_at(reply.json, "type"));
  context.check_equal("messages.text.answer", "READY",
                      strip(text_at(reply.json, "content.0.text")));
  context.check_equal("messages.text.stop_reason", "end_turn", text_at(reply.json, "stop_reason"));
  context.check(int_at(reply.json, "usage.input_tokens").has_value() &&
                    int_at(reply.json, "usage.output_tokens").value_or(0) > 0,
                "messages.text.usage", "input_tokens and output_tokens", reply.brief());
  json::Object count_body = messages_body(context, "Reply with exactly READY.", 64);
  count_body.erase("max_tokens");
  TANDEM_ASSIGN(const ApiReply count,
                context.client().post("/v1/messages/count_tokens", count_body));
  context.check(int_at(count.json, "input_tokens").value_or(0) > 0, "messages.count_tokens",
                "a positive input_tokens", count.brief());
  return ok_status();
}

// Follows the order message_start, blocks one after the other, message_delta, message_stop.
class MessagesOrder {
 public:
  void take(const net::SseEvent& event) {
    const auto parsed = json::parse(event.data);
    const std::string type = parsed.ok() ? text_at(*parsed, "type") : "";
    if (event.event != type) {
      note(fmt::format("event: '{}' but type '{}'", event.event, type));
    }
    if (type == "ping") {
      return;
    }
    if (stopped) {
      note(type + " after message_stop");
    }
    if (type == "message_start") {
      started = at(*parsed, "message.usage.input_tokens") != nullptr;
    } else if (type == "content_block_start") {
      open_block(int_at(*parsed, "index").value_or(-1));
    } else if (type == "content_block_delta") {
      text += text_at(*parsed, "delta.text");
      if (open != int_at(*parsed, "index").value_or(-1)) {
        note("a delta outside its block");
      }
    } else if (type == "content_block_stop") {
      open = -1;
    } else if (type == "message_delta") {
      stop_reason = text_at(*parsed, "delta.stop_reason");
      has_usage = int_at(*parsed, "usage.output_tokens").has_value();
    } else if (type == "message_stop") {
      stopped = true;
    }
  }

  bool started = false;
  bool stopped = false;
  bool has_usage = false;
  std::string text;
  std::string stop_reason;
  std::string bad;
  std::int64_t open = -1;

 private:
  void note(std::string what) {
    if (bad.empty()) {
      bad = std::move(what);
    }
  }

  void open_block(std::int64_t index) {
    if (open >= 0) {
      note("a block starts inside another");
    }
    if (index != blocks_++) {
      note(fmt::format("block index {} at place {}", index, blocks_ - 1));
    }
    open = index;
  }

  std::int64_t blocks_ = 0;
};

Status check_stream(GateContext& context) {
  json::Object body = messages_body(context, "Reply with exactly READY.", 64);
  body["stream"] = true;
  const StreamReply reply = context.client().stream(kPath, body);
  if (reply.status == 404) {
    context.skip("this server has no /v1/messages");
    return ok_status();
  }
  MessagesOrder order;
  for (const net::SseEvent& event : reply.events) {
    order.take(event);
  }
  context.check(reply.status == 200, "messages.stream.status", "200", reply.brief());
  context.check(order.bad.empty(), "messages.stream.order", "blocks in order", order.bad);
  context.check(order.started, "messages.stream.start", "message_start with usage", reply.brief());
  context.check(order.stopped && order.open == -1 && !reply.ended_inside_event,
                "messages.stream.end", "every block closed, then message_stop", reply.brief());
  context.check_equal("messages.stream.stop_reason", "end_turn", order.stop_reason);
  context.check(order.has_usage, "messages.stream.usage", "usage in message_delta", reply.brief());
  context.check_equal("messages.stream.answer", "READY", strip(order.text));
  return ok_status();
}

Status check_tools(GateContext& context) {
  json::Object body = messages_body(context, "What is the weather in Paris? Use the tool.", 256);
  body["tools"] = json::Array{json::Object{
      {"name", "get_weather"},
      {"description", "Get the current weather of a city."},
      {"input_schema",
       json::Object{{"type", "object"},
                    {"properties", json::Object{{"city", json::Object{{"type", "string"}}}}},
                    {"required", json::Array{"city"}}}}}};
  body["tool_choice"] = json::Object{{"type", "any"}};
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  if (reply.status == 404) {
    context.skip("this server has no /v1/messages");
    return ok_status();
  }
  context.check_equal("messages.tools.stop_reason", "tool_use", text_at(reply.json, "stop_reason"));
  const json::Value* content = at(reply.json, "content");
  const json::Value* call = nullptr;
  if (content != nullptr && content->is_array()) {
    for (const json::Value& block : content->get_array()) {
      call = text_at(block, "type") == "tool_use" ? &block : call;
    }
  }
  if (context.check(call != nullptr, "messages.tools.block", "a tool_use block", reply.brief())) {
    context.check_equal("messages.tools.name", "get_weather", text_at(*call, "name"));
    context.check(text_at(*call, "input.city").find("Paris") != std::string::npos,
                  "messages.tools.input", "the city of the request", json::dump(*call));
  }
  return ok_status();
}

}  // namespace

void add_messages_gates(std::vector<Gate>& gates) {
  gates.push_back({"messages.text", "Messages: plain text and usage", true, check_text});
  gates.push_back({"messages.stream", "Messages: the event stream", true, check_stream});
  gates.push_back({"messages.tools", "Messages: a tool call", true, check_tools});
}

}  // namespace tandem::verify
