#include "serving/protocol/responses_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/protocol/opaque_text.h"

namespace tandem::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One stored response "resp_1" and one stored item "rs_9".
class FakeLookup final : public ResponseLookup {
 public:
  Parsed<json::Array> history(const std::string& id) const override {
    if (id != "resp_1") {
      ApiError error = bad_field("previous_response_id", "unknown");
      error.code = "previous_response_not_found";
      return error;
    }
    return stored;
  }

  std::optional<json::Value> item(const std::string& id) const override {
    if (id == "rs_9") {
      return json::parse(R"({"type":"reasoning","id":"rs_9","summary":[],
        "content":[{"type":"reasoning_text","text":"stored thought"}]})")
          .value();
    }
    return std::nullopt;
  }

  json::Array stored;
};

struct Outcome {
  Parsed<ResponsesRequest> parsed;

  const std::vector<text::Message>& messages() const {
    return std::get<ChatPrompt>(parsed->task.prompt).messages;
  }
};

Outcome parse(const std::string& text, const FakeLookup& lookup = {}) {
  IdSource ids(1, 2);
  return {parse_responses_request(json::parse(text).value(), lookup, ids)};
}

Outcome parse_items(const std::string& items, const FakeLookup& lookup = {}) {
  return parse(R"({"model":"m","input":)" + items + "}", lookup);
}

std::string error_of(const std::string& text) {
  const Outcome outcome = parse(text);
  return outcome.parsed.ok() ? "no error" : outcome.parsed.error().message;
}

// "role:content" with reasoning, calls and ids, one line per message.
std::string shown(const std::vector<text::Message>& messages) {
  std::string out;
  for (const text::Message& message : messages) {
    const char* const roles[] = {"system", "developer", "user", "tool", "assistant", "reminder"};
    out += roles[static_cast<int>(message.role)];
    out += message.tool_call_id.empty() ? "" : "(" + message.tool_call_id + ")";
    out += message.reasoning ? " {" + *message.reasoning + "}" : "";
    out += " " + message.content;
    for (const text::ContentBlock& block : message.blocks) {
      out += "|" + block.text;
    }
    for (const text::ContentPart& part : message.parts) {
      out += "|" + part.type + ":" + part.text;
    }
    for (const text::ToolCall& call : message.tool_calls) {
      out += " " + call.id + "=" + call.name + json::dump(call.arguments);
    }
    out += "\n";
  }
  return out;
}

TEST(ResponsesRequest, PlainStringAndMessagesInEveryForm) {
  EXPECT_EQ(shown(parse_items(R"("hi")").messages()), "user hi\n");
  EXPECT_EQ(shown(parse(R"({"input":"hi","instructions":"be brief"})").messages()),
            "system be brief\nuser hi\n");
  EXPECT_EQ(shown(parse_items(R"([{"role":"developer","content":"note"},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
                                                 {"type":"input_text","text":"b"}]},
      {"type":"message","role":"assistant","id":"msg_1","phase":"commentary",
       "content":[{"type":"output_text","text":"c"},{"type":"refusal","refusal":"d"}]},
      {"role":"user","content":"e"}])")
                      .messages()),
            "system note\nuser |a|b\nassistant cd\nuser e\n");
}

// C-08: what stands between a call and its result goes behind the result.
TEST(ResponsesRequest, ResultsFollowTheirCallsWhateverStandsBetween) {
  EXPECT_EQ(shown(parse_items(R"([{"role":"user","content":"q"},
      {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}]},
      {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
      {"role":"developer","content":"note"},
      {"type":"function_call_output","call_id":"c1","output":"ok"}])")
                      .messages()),
            "user q\nassistant {r}  c1=f\"{}\"\ntool(c1) ok\nsystem note\n");
  EXPECT_EQ(shown(parse_items(R"([{"role":"user","content":"q"},
      {"type":"function_call","call_id":"c1","name":"f","arguments":{"a":1}},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
      {"role":"user","content":"stop"},
      {"type":"message","role":"assistant","content":"stopped"}])")
                      .messages()),
            "user q\nassistant  c1=f{\"a\":1} c2=g\"{}\"\nuser stop\nassistant stopped\n");
}

TEST(ResponsesRequest, OutputsAreStringsListsOrObjects) {
  EXPECT_EQ(shown(parse_items(R"([{"role":"user","content":"q"},
      {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"c3","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c3","output":{"k":1}},
      {"type":"function_call_output","call_id":"c1",
       "output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:"}]},
      {"type":"function_call_output","call_id":"c2","output":"s"}])")
                      .messages()),
            "user q\nassistant  c1=f\"{}\" c2=f\"{}\" c3=f\"{}\"\ntool(c3) {\"k\":1}\n"
            "tool(c1) |text:t|image:\ntool(c2) s\n");
}

// A28: the tools and history of Codex.
TEST(ResponsesRequest, CustomToolsAndNamespaces) {
  const Outcome outcome = parse(R"({"model":"m","client_metadata":{"x":1},
    "tools":[{"type":"function","name":"shell","strict":false,"parameters":{"type":"object"}},
      {"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},
      {"type":"namespace","name":"mcp__git","tools":[{"type":"function","name":"log"}]},
      {"type":"web_search","external_web_access":false}],
    "tool_choice":{"type":"function","name":"log"},
    "input":[{"role":"user","content":"q"},
      {"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** x"},
      {"type":"custom_tool_call_output","call_id":"c1","output":"done"},
      {"type":"function_call","call_id":"c2","name":"log","namespace":"mcp__git","arguments":"{}"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"output_text","text":"y"}]},
      {"type":"web_search_call","id":"ws_1","status":"completed"}]})");
  ASSERT_TRUE(outcome.parsed.ok()) << outcome.parsed.error().message;
  EXPECT_EQ(shown(outcome.messages()),
            "user q\nassistant  c1=apply_patch{\"input\":\"*** x\"}\ntool(c1) done\n"
            "assistant  c2=mcp__git__log\"{}\"\ntool(c2) |text:y\n");
  std::vector<std::string> names;
  for (const Tool& tool : outcome.parsed->task.tools) {
    names.push_back(tool.spec.name);
  }
  EXPECT_THAT(names, ElementsAre("shell", "apply_patch", "mcp__git__log"));
  EXPECT_EQ(outcome.parsed->task.tool_choice.name, "mcp__git__log");
  EXPECT_THAT(json::dump(outcome.parsed->task.tools[1].definition), HasSubstr("start: x"));
  EXPECT_EQ(outcome.parsed->settings.echo.at("tools").get_array().size(), 4U);
}

TEST(ResponsesRequest, ReasoningInEveryForm) {
  const std::string ours = wrap_opaque("thought");
  EXPECT_EQ(
      shown(parse_items(R"([{"role":"user","content":"q"},{"type":"reasoning","summary":[],
      "content":null,"encrypted_content":")" +
                        ours +
                        R"("},{"role":"assistant","content":"a"},{"role":"user","content":"z"}])")
                .messages()),
      "user q\nassistant {thought} a\nuser z\n");
  EXPECT_EQ(shown(parse_items(R"([{"role":"user","content":"q"},
      {"type":"reasoning","summary":[],"encrypted_content":"gAAA"},
      {"role":"assistant","content":"a"},{"role":"user","content":"z"}])")
                      .messages()),
            "user q\nassistant a\nuser z\n");
  EXPECT_EQ(shown(parse_items(R"([{"role":"user","content":"q"},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]},
      {"role":"assistant","content":"a"},{"role":"user","content":"z"}])")
                      .messages()),
            "user q\nassistant {s} a\nuser z\n");
}

// A24, C-07: the prompt of a continuation is that of the whole conversation.
TEST(ResponsesRequest, AContinuationEqualsTheWholeConversation) {
  const std::string earlier = R"({"type":"message","role":"user","content":"q","id":"msg_a"},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"r"}]},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed"})";
  const std::string later = R"({"type":"function_call_output","call_id":"c1","output":"ok"},
    {"role":"user","content":"go on"})";
  FakeLookup lookup;
  lookup.stored = json::parse("[" + earlier + "]").value().get_array();
  const Outcome continued = parse(
      R"({"previous_response_id":"resp_1","instructions":"new","input":[)" + later + "]}", lookup);
  const Outcome stateless =
      parse(R"({"instructions":"new","input":[)" + earlier + "," + later + "]}");
  ASSERT_TRUE(continued.parsed.ok()) << continued.parsed.error().message;
  EXPECT_EQ(shown(continued.messages()), shown(stateless.messages()));
  EXPECT_EQ(continued.parsed->input.size(), 2U);
  EXPECT_EQ(continued.parsed->settings.echo.at("previous_response_id"), "resp_1");
}

TEST(ResponsesRequest, ACutCallIsNoCall) {
  FakeLookup lookup;
  lookup.stored = json::parse(R"([{"type":"message","role":"user","content":"q"},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x","status":"incomplete"}])")
                      .value()
                      .get_array();
  EXPECT_EQ(shown(parse(R"({"previous_response_id":"resp_1","input":"z"})", lookup).messages()),
            "user q\nuser z\n");
}

TEST(ResponsesRequest, ItemReferences) {
  const Outcome outcome = parse_items(R"([{"role":"user","content":"q"},
    {"type":"item_reference","id":"rs_9"},{"role":"assistant","content":"a"},
    {"role":"user","content":"z"}])");
  EXPECT_EQ(shown(outcome.messages()), "user q\nassistant {stored thought} a\nuser z\n");
  EXPECT_EQ(json::dump(outcome.parsed->input.at(1).get_object().at("id")), "\"rs_9\"");
  EXPECT_THAT(error_of(R"({"input":[{"type":"item_reference","id":"rs_0"}]})"), HasSubstr("rs_0"));
}

TEST(ResponsesRequest, StoredItemsHaveIdsAndParts) {
  const Outcome outcome = parse_items(R"([{"role":"user","content":"q"},
    {"role":"assistant","content":"a","id":"msg_mine"},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
    {"type":"function_call_output","id":"fco_1","call_id":"c1","output":"o"}])");
  const json::Array& input = outcome.parsed->input;
  EXPECT_EQ(json::dump(input.at(0).get_object().at("content")),
            R"([{"type":"input_text","text":"q"}])");
  EXPECT_EQ(json::dump(input.at(1).get_object().at("content")),
            R"([{"type":"output_text","text":"a","annotations":[]}])");
  EXPECT_EQ(input.at(1).get_object().at("id"), "msg_mine");
  EXPECT_THAT(std::string(input.at(2).get_object().at("id").get_string()), HasSubstr("fc_"));
  EXPECT_EQ(input.at(3).get_object().at("id"), "fco_1");
}

TEST(ResponsesRequest, Settings) {
  const Outcome outcome = parse(R"({"model":"m","input":"x","store":false,"stream":true,
    "max_output_tokens":1,"temperature":0,"top_p":0.5,"reasoning":{"effort":"none","summary":"auto"},
    "truncation":"auto","include":["reasoning.encrypted_content"],"parallel_tool_calls":false,
    "text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}},
    "tool_choice":"none","service_tier":"auto","unknown_field":[1]})");
  ASSERT_TRUE(outcome.parsed.ok()) << outcome.parsed.error().message;
  const ResponsesRequest& request = *outcome.parsed;
  EXPECT_TRUE(request.task.stream);
  EXPECT_FALSE(request.settings.store);
  EXPECT_TRUE(request.settings.encrypted_reasoning);
  EXPECT_TRUE(request.task.drop_oldest);
  EXPECT_EQ(request.task.max_tokens, 1);
  EXPECT_EQ(request.task.sampling.temperature, 0.0F);
  EXPECT_EQ(request.task.sampling.top_p, 0.5F);
  EXPECT_FALSE(request.task.parallel_tool_calls);
  EXPECT_EQ(request.task.format.kind, ReplyFormat::Kind::kJsonSchema);
  EXPECT_TRUE(request.task.format.strict);
  EXPECT_EQ(request.task.format.param, "text.format");
  EXPECT_EQ(std::get<ChatPrompt>(request.task.prompt).mode, text::ThinkingMode::kChat);
  EXPECT_EQ(json::dump(request.settings.echo.at("reasoning")),
            R"({"effort":"none","summary":"auto"})");
}

TEST(ResponsesRequest, WrongThingsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"input":"x","include":["not_supported"]})", "not_supported"},
      {R"({"input":"x","temperature":"hot"})", "'temperature' is string"},
      {R"({"input":"x","max_output_tokens":0})", "'max_output_tokens' is 0"},
      {R"({"input":"x","top_logprobs":21})", "'top_logprobs' is 21"},
      {R"({"input":[{"type":"mystery"}]})", "'input[0].type' is 'mystery'"},
      {R"({"input":[{"content":"x"}]})", "'input[0].type' is missing"},
      {R"({"input":[3]})", "'input[0]' is integer"},
      {R"({"input":[{"role":"critic","content":"x"}]})", "'input[0].role'"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"u"}]}]})",
       "'input[0].content[0]' is of kind 'image'"},
      {R"({"input":[{"type":"function_call_output","call_id":"c9","output":""}]})", "'c9'"},
      {R"({"input":[]})", "'input' is missing or empty"},
      {R"({})", "'input' is missing or empty"},
      {R"({"input":"x","previous_response_id":"resp_0"})", "unknown"},
      {R"({"input":"x","conversation":"conv_1"})", "'conversation' is not supported"},
      {R"({"input":"x","background":true})", "'background' is true"},
      {R"({"input":"x","tools":[{"type":"function"}]})", "'tools[0].name' is missing"},
      {R"({"input":"x","tools":[{"name":"a"},{"name":"a"}]})", "'a', which another tool has"},
      {R"({"input":"x","tool_choice":"required"})", "'tool_choice' asks for a tool call"},
      {R"({"input":"x","reasoning":{"effort":"lots"}})", "'reasoning.effort' is 'lots'"},
      {R"({"input":"x","text":{"format":{"type":"json_schema","name":"n"}}})",
       "'text.format.schema' is missing"},
      {R"([1])", "the body is array"}};
  for (const auto& [body, message] : cases) {
    EXPECT_THAT(error_of(body), HasSubstr(message)) << body;
  }
}

}  // namespace
}  // namespace tandem::protocol
