#include "operations/verify/chat_request.h"
#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/chat/completions";
constexpr const char* kBar = "\xEF\xBD\x9C";  // the full-width bar of DSML and the turn marks

// Markup of the model that must never reach a client.
std::string leaked_markup(std::string_view text) {
  for (const std::string& mark : {std::string(kBar) + "DSML", std::string("<") + kBar,
                                  std::string("</think>"), std::string("<think>")}) {
    if (text.find(mark) != std::string_view::npos) {
      return mark;
    }
  }
  return {};
}

void check_usage(GateContext& context, const json::Value& usage, const std::string& name) {
  const auto prompt = int_at(usage, "prompt_tokens");
  const auto completion = int_at(usage, "completion_tokens");
  const auto total = int_at(usage, "total_tokens");
  context.check(prompt.has_value() && completion.has_value() && total.has_value() &&
                    *prompt + *completion == *total && *prompt > 0 && *completion > 0,
                name + ".usage", "integers with prompt + completion = total", json::dump(usage));
  context.check(int_at(usage, "prompt_tokens_details.cached_tokens").has_value(),
                name + ".cached_tokens", "prompt_tokens_details.cached_tokens is an integer",
                json::dump(usage));
}

Status check_text(GateContext& context) {
  TANDEM_ASSIGN(const ApiReply reply,
                context.client().post(kPath, chat_body(context, "Reply with exactly READY.", 64)));
  context.check(reply.status == 200, "chat.text.status", "200", reply.brief());
  context.check_equal("chat.text.answer", "READY",
                      strip(text_at(reply.json, "choices.0.message.content")));
  context.check_equal("chat.text.finish", "stop", text_at(reply.json, "choices.0.finish_reason"));
  const json::Value* usage = at(reply.json, "usage");
  check_usage(context, usage == nullptr ? json::Value() : *usage, "chat.text");
  return ok_status();
}

Status check_stream(GateContext& context) {
  json::Object body = chat_body(context, "Reply with exactly READY.", 64);
  body["stream"] = true;
  body["stream_options"] = json::Object{{"include_usage", true}};
  const StreamReply reply = context.client().stream(kPath, body);
  const ChatStreamFacts facts = read_chat_stream(reply);
  context.check(reply.status == 200, "chat.stream.status", "200", reply.brief());
  context.check(facts.bad.empty(), "chat.stream.form", "well-formed chunks", facts.bad);
  context.check(facts.role_first, "chat.stream.role", "role assistant in the first delta",
                reply.brief());
  context.check(facts.finish_count == 1 && facts.done_count == 1, "chat.stream.one_end",
                "one finish_reason and one [DONE]",
                fmt::format("{} finish reasons, {} [DONE]", facts.finish_count, facts.done_count));
  context.check_equal("chat.stream.answer", "READY", strip(facts.content));
  check_usage(context, facts.usage, "chat.stream");
  return ok_status();
}

void check_call(GateContext& context, const std::string& name, const std::string& tool,
                const std::string& arguments) {
  context.check_equal(name + ".name", "get_weather", tool);
  const auto parsed = json::parse(arguments);
  if (context.check(parsed.ok(), name + ".arguments_parse", "JSON", arguments)) {
    const json::Value tool_schema(weather_tool());
    const json::Value* schema = at(tool_schema, "function.parameters");
    const std::string breach = schema_breach(*schema, *parsed);
    context.check(breach.empty(), name + ".arguments_valid", "an instance of the schema",
                  breach + arguments);
    context.check(text_at(*parsed, "city").find("Paris") != std::string::npos,
                  name + ".arguments_copied", "the city of the request", arguments);
  }
}

Status check_tools(GateContext& context) {
  json::Object body = chat_body(context, "What is the weather in Paris? Use the tool.", 256);
  body["tools"] = json::Array{weather_tool()};
  body["tool_choice"] = "required";
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  context.check(reply.status == 200, "chat.tools.status", "200", reply.brief());
  context.check_equal("chat.tools.finish", "tool_calls",
                      text_at(reply.json, "choices.0.finish_reason"));
  check_call(context, "chat.tools",
             text_at(reply.json, "choices.0.message.tool_calls.0.function.name"),
             text_at(reply.json, "choices.0.message.tool_calls.0.function.arguments"));
  const std::string leak = leaked_markup(reply.body);
  context.check(leak.empty(), "chat.tools.no_markup", "no DSML in the reply",
                leak + " in " + reply.brief());

  body["stream"] = true;
  const StreamReply stream = context.client().stream(kPath, body);
  const ChatStreamFacts facts = read_chat_stream(stream);
  context.check(facts.bad.empty(), "chat.tools.stream_form", "well-formed chunks", facts.bad);
  if (context.check(facts.calls.size() == 1, "chat.tools.stream_one_call", "one call",
                    stream.brief())) {
    check_call(context, "chat.tools.stream", facts.calls[0].name, facts.calls[0].arguments);
  }
  const std::string stream_leak = leaked_markup(stream.raw);
  context.check(stream_leak.empty(), "chat.tools.stream_no_markup", "no DSML", stream_leak);
  return ok_status();
}

Status check_truncated_call(GateContext& context) {
  json::Object body = chat_body(context, "What is the weather in Paris? Use the tool.", 24);
  body["tools"] = json::Array{weather_tool()};
  body["tool_choice"] = "required";
  std::string seen_inside;
  for (const int limit : {4, 8, 12, 16, 20, 24}) {
    body["max_tokens"] = limit;
    TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
    const std::string reason = text_at(reply.json, "choices.0.finish_reason");
    const json::Value* calls = at(reply.json, "choices.0.message.tool_calls");
    const bool has_calls = calls != nullptr && calls->is_array() && !calls->get_array().empty();
    if (reason == "length") {
      seen_inside += std::to_string(limit) + " ";
    }
    context.check(reason == (has_calls ? "tool_calls" : "length"),
                  "chat.truncation.finish_" + std::to_string(limit),
                  "length without a call, or tool_calls with a whole one", reply.brief());
    const std::string arguments =
        text_at(reply.json, "choices.0.message.tool_calls.0.function.arguments");
    context.check(!has_calls || json::parse(arguments).ok(),
                  "chat.truncation.json_" + std::to_string(limit), "no broken JSON in a call",
                  arguments);
    context.check(leaked_markup(reply.body).empty(),
                  "chat.truncation.no_markup_" + std::to_string(limit), "no DSML", reply.brief());
  }
  context.check(!seen_inside.empty(), "chat.truncation.reached", "at least one limit cuts the call",
                "every call fitted");
  return ok_status();
}

Status check_schema(GateContext& context) {
  const json::Object schema{
      {"type", "object"},
      {"properties",
       json::Object{{"name", json::Object{{"type", "string"}, {"maxLength", 40}}},
                    {"age", json::Object{{"type", "integer"}, {"minimum", 0}, {"maximum", 150}}}}},
      {"required", json::Array{"name", "age"}},
      {"additionalProperties", false}};
  json::Object body =
      chat_body(context, "Tom is 12 years old. Return JSON with name and age.", 200);
  body["response_format"] = json::Object{
      {"type", "json_schema"},
      {"json_schema", json::Object{{"name", "person"}, {"strict", true}, {"schema", schema}}}};
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  context.check(reply.status == 200, "chat.schema.status", "200", reply.brief());
  const std::string text = text_at(reply.json, "choices.0.message.content");
  const auto parsed = json::parse(text);
  if (context.check(parsed.ok(), "chat.schema.parses", "JSON", text)) {
    const std::string breach = schema_breach(schema, *parsed);
    context.check(breach.empty(), "chat.schema.valid", "an instance of the schema",
                  breach + " in " + text);
  }
  return ok_status();
}

Status check_assistant_final(GateContext& context) {
  json::Object body = chat_body(context, "", 64);
  body["messages"] =
      json::Array{json::Object{{"role", "user"}, {"content", "Reply with exactly READY."}},
                  json::Object{{"role", "assistant"}, {"content", "Hello."}}};
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  context.check(reply.status == 200, "chat.assistant_final.status", "200", reply.brief());
  const std::string text = text_at(reply.json, "choices.0.message.content");
  context.check(!strip(text).empty(), "chat.assistant_final.answers", "a non-empty turn",
                reply.brief());
  context.check(leaked_markup(text).empty(), "chat.assistant_final.no_markup", "plain text", text);
  return ok_status();
}

}  // namespace

void add_chat_gates(std::vector<Gate>& gates) {
  gates.push_back({"chat.text", "Chat: plain text and usage", true, check_text});
  gates.push_back({"chat.stream", "Chat: the chunk stream", true, check_stream});
  gates.push_back(
      {"chat.tools", "Chat: a required tool call, whole and streamed", true, check_tools});
  gates.push_back({"chat.truncation", "Chat: cut inside a tool call", true, check_truncated_call});
  gates.push_back({"chat.schema", "Chat: strict JSON schema", true, check_schema});
  gates.push_back({"chat.assistant_final", "Chat: a final assistant message still generates", true,
                   check_assistant_final});
}

}  // namespace tandem::verify
