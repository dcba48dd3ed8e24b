// The DSML tool grammar: exactly the calls that the declared tools allow, in the form that the
// model was trained on, and nothing that the stream decoder would not give back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/json/json.h"
#include "tests/unit/grammar/walk.h"

namespace tandem::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

json::Value parse(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
  return *parsed;
}

std::vector<ToolSpec> weather_tools() {
  ToolSpec weather;
  weather.name = "get_weather";
  weather.parameters = parse(R"({"type":"object","properties":{
      "city":{"type":"string","minLength":1},
      "days":{"type":"integer","minimum":1,"maximum":9},
      "unit":{"enum":["C","F",0]}},
      "required":["city"]})");
  ToolSpec now;
  now.name = "now";
  now.parameters = parse(R"({"type":"object","properties":{}})");
  return {weather, now};
}

GrammarPtr compile(const std::vector<ToolSpec>& tools, ToolChoiceMode mode, bool parallel = true,
                   const std::string& name = "", const json::Value* content = nullptr) {
  auto compiled = compile_tool_calls(byte_vocabulary(), tools, {mode, name}, parallel, content);
  EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
  return *compiled;
}

std::string parameter(std::string_view name, std::string_view value, bool is_string) {
  return std::string("<\xFFparameter name=\"") + std::string(name) + "\" string=\"" +
         (is_string ? "true" : "false") + "\">" + std::string(value) + "</\xFFparameter>";
}

std::string invoke(std::string_view name, std::string_view parameters) {
  return std::string("<\xFFinvoke name=\"") + std::string(name) + "\">\n" +
         std::string(parameters) + "\n</\xFFinvoke>";
}

std::string block(std::string_view calls) {
  return "\n\n<\xFFtool_calls>\n" + std::string(calls) + "\n</\xFFtool_calls>";
}

TEST(ToolGrammar, RequiredTakesCallsOnly) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kRequired);
  const std::string city = parameter("city", "Oslo", true);
  EXPECT_TRUE(accepts(grammar, block(invoke("get_weather", city))));
  EXPECT_TRUE(accepts(grammar, block(invoke("now", ""))));
  EXPECT_TRUE(accepts(grammar, block(invoke("now", "") + "\n" + invoke("get_weather", city))));
  EXPECT_TRUE(
      accepts(grammar, block(invoke("get_weather", city + "\n" + parameter("days", "3", false) +
                                                       "\n" + parameter("unit", "F", true)))));
  EXPECT_TRUE(
      accepts(grammar, block(invoke("get_weather", city + "\n" + parameter("unit", "0", false)))));
  EXPECT_FALSE(accepts(grammar, "Hello"));
  EXPECT_FALSE(accepts(grammar, ""));
  EXPECT_FALSE(accepts(grammar, block("")));
}

TEST(ToolGrammar, ParametersFollowTheirSchemas) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kRequired);
  const std::string city = parameter("city", "Oslo", true);
  const auto refused = [&](const std::string& parameters) {
    return !accepts(grammar, block(invoke("get_weather", parameters)));
  };
  EXPECT_TRUE(refused(""));                                            // city is required
  EXPECT_TRUE(refused(parameter("city", "", true)));                   // minLength
  EXPECT_TRUE(refused(parameter("city", "\"Oslo\"", false)));          // a string is raw
  EXPECT_TRUE(refused(city + "\n" + parameter("days", "10", false)));  // maximum
  EXPECT_TRUE(refused(city + "\n" + parameter("days", "3", true)));    // a number is JSON
  EXPECT_TRUE(refused(city + "\n" + parameter("unit", "K", true)));    // enum
  EXPECT_TRUE(refused(city + "\n" + parameter("other", "1", false)));  // not declared
  EXPECT_TRUE(refused(city + "\n" + city));                            // twice
  EXPECT_TRUE(refused(parameter("days", "3", false) + "\n" + city));   // order of the schema
  EXPECT_FALSE(accepts(grammar, block(invoke("other_tool", city))));
}

TEST(ToolGrammar, RawTextMayHoldAnythingButTheMarker) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kRequired);
  for (const char* text : {"a < b && c > d", "</parameter>", "2>&1", "line\nline\n\n</",
                           "\"quoted\" \\n", "<invoke name=\"x\">", "日本é"}) {
    EXPECT_TRUE(accepts(grammar, block(invoke("get_weather", parameter("city", text, true)))))
        << text;
  }
  EXPECT_FALSE(accepts(grammar, block(invoke("get_weather", parameter("city",
                                                                      "a\xFF"
                                                                      "b",
                                                                      true)))));
}

TEST(ToolGrammar, OneCallUnlessParallel) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kRequired, false);
  EXPECT_TRUE(accepts(grammar, block(invoke("now", ""))));
  EXPECT_FALSE(accepts(grammar, block(invoke("now", "") + "\n" + invoke("now", ""))));
}

TEST(ToolGrammar, NamedTakesThatToolOnly) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kNamed, true, "now");
  EXPECT_TRUE(accepts(grammar, block(invoke("now", ""))));
  EXPECT_FALSE(accepts(grammar, block(invoke("get_weather", parameter("city", "Oslo", true)))));
}

TEST(ToolGrammar, AutoIsFreeUntilTheMarker) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kAuto);
  EXPECT_TRUE(accepts(grammar, "Hello, <b>world</b>"));
  EXPECT_TRUE(accepts(grammar, ""));
  EXPECT_TRUE(accepts(grammar, "Let me see." + block(invoke("now", ""))));
  EXPECT_FALSE(accepts(grammar, "Let me see." + block(invoke("nothing", ""))));
  EXPECT_FALSE(accepts(grammar, block(invoke("now", "")) + " and more"));
  EXPECT_FALSE(accepts(grammar, "a \xFF marker without a tag"));
}

TEST(ToolGrammar, NoneHasNoMarker) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kNone);
  EXPECT_TRUE(accepts(grammar, "Hello <b>"));
  EXPECT_FALSE(accepts(grammar, block(invoke("now", ""))));
}

TEST(ToolGrammar, ContentSchemaBesideCalls) {
  const json::Value schema = parse(R"({"type":"object","properties":{"a":{"type":"integer"}},
      "required":["a"],"additionalProperties":false})");
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kAuto, true, "", &schema);
  EXPECT_TRUE(accepts(grammar, R"({"a":1})"));
  EXPECT_TRUE(accepts(grammar, block(invoke("now", ""))));
  EXPECT_FALSE(accepts(grammar, "text"));
  const GrammarPtr none = compile(weather_tools(), ToolChoiceMode::kNone, true, "", &schema);
  EXPECT_TRUE(accepts(none, R"({"a":1})"));
  EXPECT_FALSE(accepts(none, block(invoke("now", ""))));
}

TEST(ToolGrammar, ToolWithoutSchemaTakesAnyParameters) {
  ToolSpec free;
  free.name = "free";
  const GrammarPtr grammar = compile({free}, ToolChoiceMode::kRequired);
  EXPECT_TRUE(accepts(grammar, block(invoke("free", ""))));
  EXPECT_TRUE(accepts(grammar, block(invoke("free", parameter("x", "text", true) + "\n" +
                                                        parameter("y", "[1,{}]", false)))));
  EXPECT_FALSE(accepts(grammar, block(invoke("free", parameter("x", "[1", false)))));
}

TEST(ToolGrammar, ThinkingStaysFreeAndCannotCall) {
  const GrammarPtr grammar = compile(weather_tools(), ToolChoiceMode::kRequired);
  const auto constraint = make_constraint(grammar, {true});
  EXPECT_TRUE(constraint->accept('x'));
  EXPECT_FALSE(constraint->accept(testing::kEos));
  EXPECT_FALSE(constraint->accept(testing::kDsml));
  EXPECT_TRUE(constraint->accept(testing::kThinkEnd));
  EXPECT_FALSE(constraint->accept('x'));
  EXPECT_EQ(testing::text_of(constraint->forced_tokens(64)).substr(0, 16),
            std::string("\n\n<\xFFtool_calls>\n"));
}

TEST(ToolGrammar, ErrorsNameTheTool) {
  ToolSpec bad;
  bad.name = "bad";
  bad.parameters = parse(R"({"type":"object","properties":{"a":{"type":"nothing"}}})");
  const auto compiled =
      compile_tool_calls(byte_vocabulary(), {bad}, {ToolChoiceMode::kAuto, ""}, true);
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.status().message(), ::testing::HasSubstr("tool 'bad'"));
  ToolSpec strict;
  strict.name = "strict";
  strict.strict = true;
  strict.parameters =
      parse(R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})");
  const auto refused =
      compile_tool_calls(byte_vocabulary(), {strict}, {ToolChoiceMode::kAuto, ""}, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("uniqueItems"));
  strict.strict = false;
  const auto taken =
      compile_tool_calls(byte_vocabulary(), {strict}, {ToolChoiceMode::kAuto, ""}, true);
  ASSERT_TRUE(taken.ok());
  ASSERT_EQ((*taken)->unenforced().size(), 1U);
  EXPECT_EQ((*taken)->unenforced()[0].path, "strict#/properties/a");
  const auto unknown =
      compile_tool_calls(byte_vocabulary(), {strict}, {ToolChoiceMode::kNamed, "other"}, true);
  EXPECT_FALSE(unknown.ok());
}

}  // namespace
}  // namespace tandem::grammar
