#include "serving/protocol/request_fields.h"

#include <gtest/gtest.h>

#include <set>

#include "serving/protocol/ids.h"
#include "serving/protocol/openai_fields.h"

namespace tandem::protocol {
namespace {

json::Object object_of(std::string_view text) {
  return json::parse(text).value().get_object();
}

TEST(RequestFields, ReadsTypedMembersAndTreatsNullAsAbsent) {
  const json::Object body =
      object_of(R"({"a":"x","b":true,"c":1.5,"d":3.0,"e":null,"f":["u","v"],"g":{"h":7}})");
  FieldErrors errors;
  const Fields fields(body, "", errors);
  EXPECT_EQ(fields.text("a"), "x");
  EXPECT_EQ(fields.boolean("b"), true);
  EXPECT_EQ(fields.number("c"), 1.5);
  EXPECT_EQ(fields.integer("d"), 3);
  EXPECT_EQ(fields.text("e"), std::nullopt);
  EXPECT_EQ(fields.texts("f"), (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(fields.object("g")->integer("h"), 7);
  EXPECT_TRUE(errors.ok());
}

TEST(RequestFields, TheFirstErrorNamesItsFieldAndStays) {
  const json::Object body = object_of(R"({"list":[{"n":"x"},{"n":5}],"t":9})");
  FieldErrors errors;
  const Fields fields(body, "", errors);
  std::vector<std::optional<std::string>> seen;
  fields.each_object("list", [&seen](const Fields& item) { seen.push_back(item.text("n")); });
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(fields.text("t"), std::nullopt);
  ASSERT_FALSE(errors.ok());
  EXPECT_EQ(errors.error().param, "list[1].n");
  EXPECT_EQ(errors.error().http_status, 400);
  EXPECT_EQ(errors.error().message, "'list[1].n' is integer, expected a string");
}

TEST(RequestFields, RangesAndWordsAreChecked) {
  const json::Object body = object_of(R"({"n":21,"w":"blue","m":1.5,"i":1.5})");
  const auto error_of = [&body](const auto& read) {
    FieldErrors errors;
    read(Fields(body, "", errors));
    return errors.ok() ? std::string() : errors.error().message;
  };
  EXPECT_EQ(error_of([](const Fields& f) { f.integer("n", 0, 20); }),
            "'n' is 21, expected at most 20");
  EXPECT_EQ(error_of([](const Fields& f) { f.integer("n", 22); }),
            "'n' is 21, expected at least 22");
  EXPECT_EQ(error_of([](const Fields& f) {
              f.number("m", {0, 1});
            }),
            "'m' is 1.5, expected a number from 0 to 1");
  EXPECT_EQ(error_of([](const Fields& f) { f.integer("i"); }),
            "'i' is number, expected an integer");
  EXPECT_EQ(error_of([](const Fields& f) {
              f.word("w", {"red", "green"});
            }),
            "'w' is 'blue', expected one of: red, green");
  EXPECT_EQ(error_of([](const Fields& f) { f.required_text("none"); }),
            "'none' is missing, expected a string");
}

ToolChoiceFields choice_of(std::string_view text) {
  const json::Object body = object_of(text);
  FieldErrors errors;
  ToolChoiceFields fields = parse_tool_choice(Fields(body, "", errors), "tool_choice");
  EXPECT_TRUE(errors.ok()) << text << ": " << errors.error().message;
  return fields;
}

TEST(OpenAiFields, ToolChoiceInEveryForm) {
  using grammar::ToolChoiceMode;
  EXPECT_EQ(choice_of("{}").choice.mode, ToolChoiceMode::kAuto);
  EXPECT_EQ(choice_of(R"({"tool_choice":null})").choice.mode, ToolChoiceMode::kAuto);
  EXPECT_EQ(choice_of(R"({"tool_choice":"none"})").choice.mode, ToolChoiceMode::kNone);
  EXPECT_EQ(choice_of(R"({"tool_choice":"required"})").choice.mode, ToolChoiceMode::kRequired);
  for (const char* named : {R"({"tool_choice":{"type":"function","name":"f"}})",
                            R"({"tool_choice":{"type":"function","function":{"name":"f"}}})",
                            R"({"tool_choice":{"type":"custom","name":"f"}})",
                            R"({"tool_choice":{"type":"custom","custom":{"name":"f"}}})"}) {
    const ToolChoiceFields fields = choice_of(named);
    EXPECT_EQ(fields.choice.mode, ToolChoiceMode::kNamed) << named;
    EXPECT_EQ(fields.choice.name, "f") << named;
  }
  for (const char* allowed :
       {R"({"tool_choice":{"type":"allowed_tools","mode":"required","tools":[
             {"type":"function","name":"a"},{"type":"function","function":{"name":"b"}}]}})",
        R"({"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[
             {"type":"function","function":{"name":"a"}},{"type":"function","name":"b"}]}}})"}) {
    const ToolChoiceFields fields = choice_of(allowed);
    EXPECT_EQ(fields.choice.mode, ToolChoiceMode::kRequired) << allowed;
    EXPECT_EQ(fields.allowed, (std::vector<std::string>{"a", "b"})) << allowed;
  }
}

std::string apply(std::string_view choice, std::vector<std::string> tool_names,
                  GenerationTask& task) {
  for (std::string& name : tool_names) {
    task.tools.push_back(make_tool(std::move(name), std::nullopt, nullptr, false));
  }
  FieldErrors errors;
  apply_tool_choice(choice_of(choice), "tool_choice", task, errors);
  return errors.ok() ? std::string() : errors.error().message;
}

TEST(OpenAiFields, ChoicesMustNameToolsThatExist) {
  GenerationTask named;
  EXPECT_EQ(apply(R"({"tool_choice":{"type":"function","name":"zz"}})", {"a"}, named),
            "'tool_choice' names the tool 'zz', which is not in 'tools'");
  GenerationTask required;
  EXPECT_EQ(apply(R"({"tool_choice":"required"})", {}, required),
            "'tool_choice' asks for a tool call, but 'tools' has no tool that can be called");
  GenerationTask none;
  EXPECT_EQ(apply(R"({"tool_choice":"none"})", {}, none), "");
  GenerationTask allowed;
  EXPECT_EQ(apply(R"({"tool_choice":{"type":"allowed_tools","tools":[{"name":"b"}]}})", {"a", "b"},
                  allowed),
            "");
  EXPECT_FALSE(allowed.tools[0].allowed);
  EXPECT_TRUE(allowed.tools[1].allowed);
}

TEST(OpenAiFields, FunctionToolsFlatAndNested) {
  for (
      const char* text :
      {R"({"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true})",
       R"({"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}})"}) {
    const json::Object body = object_of(text);
    FieldErrors errors;
    const std::optional<Tool> tool = parse_function_tool(Fields(body, "tools[0]", errors));
    ASSERT_TRUE(tool.has_value()) << text;
    EXPECT_EQ(tool->spec.name, "f");
    EXPECT_TRUE(tool->spec.strict);
    EXPECT_EQ(json::dump(tool->definition),
              R"({"name":"f","description":"d","parameters":{"type":"object"}})");
  }
  const json::Object bad = object_of(R"({"type":"function","name":"f","parameters":[]})");
  FieldErrors errors;
  EXPECT_FALSE(parse_function_tool(Fields(bad, "tools[0]", errors)).has_value());
  EXPECT_EQ(errors.error().param, "tools[0].parameters");
}

TEST(OpenAiFields, EffortWords) {
  EXPECT_EQ(thinking_of_effort("none")->mode, text::ThinkingMode::kChat);
  EXPECT_EQ(thinking_of_effort("minimal")->effort, text::Effort::kLow);
  EXPECT_EQ(thinking_of_effort("medium")->effort, text::Effort::kHigh);
  EXPECT_EQ(thinking_of_effort("xhigh")->effort, text::Effort::kHigh);
  EXPECT_EQ(thinking_of_effort("ultra")->effort, text::Effort::kMax);
  EXPECT_FALSE(thinking_of_effort("lots").has_value());
}

TEST(Ids, AreLongUniqueAndRepeatableFromSeeds) {
  IdSource a(1, 2);
  IdSource b(1, 2);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = a.make("resp_");
    EXPECT_EQ(id, b.make("resp_"));
    EXPECT_EQ(id.size(), 5U + 32U);
    EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_NE(IdSource::random_seed(), IdSource::random_seed());
}

TEST(ApiError, StatusCodesMapToHttp) {
  EXPECT_EQ(to_api_error(invalid_argument("x"), "p").param, "p");
  EXPECT_EQ(to_api_error(invalid_argument("x")).http_status, 400);
  EXPECT_EQ(to_api_error(unauthenticated("x")).code, "invalid_api_key");
  EXPECT_EQ(to_api_error(not_found("x")).http_status, 404);
  EXPECT_EQ(to_api_error(resource_exhausted("x")).http_status, 429);
  EXPECT_TRUE(to_api_error(resource_exhausted("x")).retry_after_s.has_value());
  EXPECT_EQ(to_api_error(unavailable("x")).http_status, 503);
  EXPECT_EQ(to_api_error(internal_error("x")).type, "server_error");
}

}  // namespace
}  // namespace tandem::protocol
