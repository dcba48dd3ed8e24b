#include "serving/protocol/messages_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tandem::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parsed<GenerationTask> parse(const std::string& members, MessagesUse use = MessagesUse::kGenerate) {
  const std::string body = R"({"model":"m","max_tokens":9,)" + members + "}";
  return parse_messages_request(json::parse(body).value(), use);
}

const ChatPrompt& prompt(const GenerationTask& task) {
  return std::get<ChatPrompt>(task.prompt);
}

std::string shown(const std::string& members) {
  const Parsed<GenerationTask> task = parse(members);
  if (!task.ok()) {
    return "error: " + task.error().message;
  }
  std::string out;
  for (const text::Message& message : prompt(*task).messages) {
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
    out += message.without_eos ? " ..." : "";
    out += "\n";
  }
  return out;
}

TEST(MessagesRequest, TextInEveryForm) {
  EXPECT_EQ(shown(R"("system":"s","messages":[{"role":"user","content":"q"}])"),
            "system s\nuser q\n");
  EXPECT_EQ(shown(R"("system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                               {"type":"text","text":"b"}],
                     "messages":[{"role":"user","content":[{"type":"text","text":"q"},
                       {"type":"document","source":{"type":"text","data":"d"},"title":"t"}]},
                       {"role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]},
                       {"role":"user","content":"z"}])"),
            "system a\n\nb\nuser |q|t\nd\nassistant xy\nuser z\n");
}

// A29: Claude Code puts system messages behind the user's turn.
TEST(MessagesRequest, SystemMessagesInsideTheConversation) {
  EXPECT_EQ(shown(R"("messages":[{"role":"user","content":"q"},
                       {"role":"system","content":[{"type":"text","text":"note"}]}])"),
            "user q\nsystem note\n");
}

// A30: the billing line changes with every request; nothing of it reaches the prompt.
TEST(MessagesRequest, TheBillingLineIsDropped) {
  const std::string messages = R"("messages":[{"role":"user","content":"q"}])";
  for (const char* hash : {"aaaaa", "bbbbb"}) {
    EXPECT_EQ(shown(R"("system":[{"type":"text","text":"x-anthropic-billing-header: v=1; cch=)" +
                    std::string(hash) + R"(;"},{"type":"text","text":"s"}],)" + messages),
              "system s\nuser q\n");
    EXPECT_EQ(shown(R"("system":"x-anthropic-billing-header: cch=)" + std::string(hash) +
                    R"(;\ns",)" + messages),
              "system s\nuser q\n");
  }
}

// C-09, A23: turns with an empty, missing or foreign thinking block; results in any order.
TEST(MessagesRequest, ToolTurns) {
  EXPECT_EQ(shown(R"("messages":[{"role":"user","content":"q"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},
      {"type":"tool_use","id":"t1","name":"ls","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]},
    {"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"two"},
      {"type":"tool_use","id":"t2","name":"read","input":{"p":1}},
      {"type":"tool_use","id":"t3","name":"read","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t3","is_error":true,"content":"bad"},
      {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"x"},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]},
      {"type":"text","text":"go on"}]}])"),
            "user q\nassistant {}  t1=ls{}\ntool(t1) \n"
            "assistant two t2=read{\"p\":1} t3=read{}\ntool(t3) bad\n"
            "tool(t2) |text:x|image:\nuser go on\n");
}

TEST(MessagesRequest, AnAssistantTurnAtTheEndIsContinued) {
  EXPECT_EQ(
      shown(R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"be"}])"),
      "user q\nassistant be ...\n");
  EXPECT_EQ(
      shown(R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":""}])"),
      "user q\nassistant \n");
}

TEST(MessagesRequest, ThinkingAndEffort) {
  const std::string messages = R"("messages":[{"role":"user","content":"q"}],)";
  const auto mode = [&messages](const std::string& members) {
    return prompt(*parse(messages + members)).mode;
  };
  EXPECT_EQ(mode(R"("top_k":5)"), text::ThinkingMode::kChat);
  EXPECT_EQ(mode(R"("thinking":{"type":"adaptive"})"), text::ThinkingMode::kThinking);
  EXPECT_EQ(mode(R"("thinking":{"type":"disabled"},"output_config":{"effort":"max"})"),
            text::ThinkingMode::kChat);
  const Parsed<GenerationTask> task =
      parse(messages + R"("thinking":{"type":"enabled","budget_tokens":2048},
                          "output_config":{"effort":"max"},"context_management":{"edits":[]},
                          "metadata":{"user_id":"u"},"stop_sequences":["X",""],"temperature":0.5)");
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(task->thinking_budget, 2048);
  EXPECT_EQ(prompt(*task).effort, text::Effort::kMax);
  EXPECT_THAT(task->stop, ElementsAre("X"));
  EXPECT_EQ(task->sampling.temperature, 0.5F);
  EXPECT_EQ(task->max_tokens, 9);
}

TEST(MessagesRequest, ToolsAndChoices) {
  using Mode = grammar::ToolChoiceMode;
  const std::string base = R"("messages":[{"role":"user","content":"q"}],"tools":[
    {"name":"ls","description":"d","input_schema":{"type":"object"},"eager_input_streaming":true,
     "cache_control":{"type":"ephemeral"}},
    {"type":"web_search_20250305","name":"web_search"},
    {"type":"custom","name":"read","input_schema":{"type":"object"},"strict":true}],)";
  const Parsed<GenerationTask> any =
      parse(base + R"("tool_choice":{"type":"any","disable_parallel_tool_use":true})");
  ASSERT_TRUE(any.ok()) << any.error().message;
  ASSERT_EQ(any->tools.size(), 2U);
  EXPECT_EQ(json::dump(any->tools[0].definition),
            R"({"name":"ls","description":"d","parameters":{"type":"object"}})");
  EXPECT_TRUE(any->tools[1].spec.strict);
  EXPECT_EQ(any->tool_choice.mode, Mode::kRequired);
  EXPECT_FALSE(any->parallel_tool_calls);
  const Parsed<GenerationTask> named =
      parse(base + R"("tool_choice":{"type":"tool","name":"read"})");
  EXPECT_EQ(named->tool_choice.mode, Mode::kNamed);
  EXPECT_EQ(named->tool_choice.name, "read");
  EXPECT_EQ(parse(base + R"("tool_choice":{"type":"none"})")->tool_choice.mode, Mode::kNone);
  EXPECT_THAT(parse(base + R"("tool_choice":{"type":"tool","name":"zz"})").error().message,
              HasSubstr("'zz'"));
}

TEST(MessagesRequest, WrongThingsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("messages":[])", "'messages' is missing or empty"},
      {R"("messages":[{"role":"tool","content":"x"}])", "'messages[0].role' is 'tool'"},
      {R"("messages":[{"role":"user"}])", "'messages[0].content' is missing"},
      {R"("messages":[{"role":"user","content":5}])", "'messages[0].content' is integer"},
      {R"("messages":[{"role":"user","content":[{"type":"image"}]}])",
       "'messages[0].content[0].type' is 'image'"},
      {R"("messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9"}]}])",
       "'t9'"},
      {R"("messages":[{"role":"user","content":"q"}],"temperature":"x")", "'temperature'"},
      {R"("messages":[{"role":"user","content":"q"}],"thinking":{"type":"on"})", "'thinking.type'"},
      {R"("messages":[{"role":"user","content":"q"}],"tools":[{"name":"a","input_schema":[]}])",
       "'tools[0].input_schema' is array"}};
  for (const auto& [members, message] : cases) {
    EXPECT_THAT(shown(members), HasSubstr(message)) << members;
  }
  const json::Value without_limit =
      json::parse(R"({"model":"m","messages":[{"role":"user","content":"q"}]})").value();
  EXPECT_EQ(parse_messages_request(without_limit, MessagesUse::kGenerate).error().param,
            "max_tokens");
  EXPECT_TRUE(parse_messages_request(without_limit, MessagesUse::kCountTokens).ok());
}

}  // namespace
}  // namespace tandem::protocol
