// Short tasks with one right answer: tool calls, JSON by schema, arithmetic.
#include <array>

#include "foundation/base/random.h"
#include "operations/verify/evaluate.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr std::array<const char*, 10> kCities = {"Rome", "Paris", "Oslo",  "Madrid", "Vienna",
                                                 "Lima", "Tokyo", "Cairo", "Dublin", "Athens"};
constexpr std::array<const char*, 10> kNames = {"Anna", "Ben",   "Clara", "David", "Emma",
                                                "Finn", "Helen", "Jack",  "Lucy",  "Oscar"};

json::Object text_parameter() {
  return {{"type", "string"}};
}

json::Object tool(std::string_view name, std::string_view description,
                  const json::Object& properties) {
  json::Array required;
  for (const auto& member : properties) {
    required.push_back(json::Value(member.key()));
  }
  return {
      {"type", "function"},
      {"function", json::Object{{"name", name},
                                {"description", description},
                                {"parameters", json::Object{{"type", "object"},
                                                            {"properties", properties},
                                                            {"required", std::move(required)}}}}}};
}

const json::Array& tools() {
  static const json::Array all{
      tool("get_weather", "Get the current weather of a city.", {{"city", text_parameter()}}),
      tool("send_message", "Send a message to a person.",
           {{"to", text_parameter()}, {"text", text_parameter()}}),
      tool("add_numbers", "Add two numbers.",
           {{"a", json::Object{{"type", "integer"}}}, {"b", json::Object{{"type", "integer"}}}})};
  return all;
}

struct Scenario {
  std::string user;
  std::string name;
  json::Object arguments;
};

Scenario make_scenario(Random& random) {
  const std::string city = kCities[random.below(kCities.size())];
  const std::string person = kNames[random.below(kNames.size())];
  switch (random.below(3)) {
    case 0:
      return {fmt::format("What is the weather in {}?", city), "get_weather", {{"city", city}}};
    case 1:
      return {fmt::format("Send {} the message \"See you in {}\".", person, city),
              "send_message",
              {{"to", person}, {"text", "See you in " + city}}};
    default: {
      const auto a = static_cast<std::int64_t>(10 + random.below(90));
      const auto b = static_cast<std::int64_t>(10 + random.below(90));
      return {
          fmt::format("Add {} and {} with the tool.", a, b), "add_numbers", {{"a", a}, {"b", b}}};
    }
  }
}

Result<EvalScore> run_tools(ApiClient& client, const EvalOptions& options) {
  EvalScore score;
  Random random(options.seed ^ 11);
  for (int i = 0; i < options.questions; ++i) {
    const Scenario scenario = make_scenario(random);
    const json::Array messages{json::Object{{"role", "user"}, {"content", scenario.user}}};
    TANDEM_ASSIGN(const ApiReply reply,
                  client.post("/v1/chat/completions",
                              {{"model", client.model()},
                               {"messages", messages},
                               {"tools", tools()},
                               {"temperature", 0},
                               {"max_tokens", 300},
                               {"chat_template_kwargs", json::Object{{"thinking", false}}}}));
    const json::Value* message = at(reply.json, "choices.0.message");
    const std::string name =
        message == nullptr ? "" : text_at(*message, "tool_calls.0.function.name");
    const std::string arguments =
        message == nullptr ? "" : text_at(*message, "tool_calls.0.function.arguments");
    const auto parsed = json::parse(arguments);
    const bool good =
        name == scenario.name && parsed.ok() && *parsed == json::Value(scenario.arguments);
    score.add(good, scenario.user, scenario.name + " " + json::dump(scenario.arguments),
              name + " " + arguments + (name.empty() ? reply.brief() : ""));
  }
  return score;
}

json::Object person_schema(const std::string& first, const std::string& second) {
  return {{"type", "object"},
          {"properties",
           json::Object{{first, text_parameter()}, {second, json::Object{{"type", "integer"}}}}},
          {"required", json::Array{json::Value(first), json::Value(second)}},
          {"additionalProperties", false}};
}

Result<EvalScore> run_json(ApiClient& client, const EvalOptions& options) {
  constexpr std::array<const char*, 4> kText = {"name", "city", "owner", "title"};
  constexpr std::array<const char*, 4> kCount = {"age", "year", "count", "size"};
  EvalScore score;
  Random random(options.seed ^ 12);
  for (int i = 0; i < options.questions; ++i) {
    const std::string first = kText[random.below(kText.size())];
    const std::string second = kCount[random.below(kCount.size())];
    const std::string value = kNames[random.below(kNames.size())];
    const auto amount = static_cast<std::int64_t>(random.below(100));
    const json::Object schema = person_schema(first, second);
    const std::string question =
        fmt::format("The {} is {} and the {} is {}. Return JSON with {} and {}.", first, value,
                    second, amount, first, second);
    const json::Object format{
        {"type", "json_schema"},
        {"json_schema", json::Object{{"name", "item"}, {"strict", true}, {"schema", schema}}}};
    TANDEM_ASSIGN(const ApiReply reply,
                  client.post("/v1/chat/completions",
                              {{"model", client.model()},
                               {"messages",
                                json::Array{json::Object{{"role", "user"}, {"content", question}}}},
                               {"response_format", format},
                               {"temperature", 0},
                               {"max_tokens", 200},
                               {"chat_template_kwargs", json::Object{{"thinking", false}}}}));
    const std::string text = text_at(reply.json, "choices.0.message.content");
    const auto parsed = json::parse(text);
    const json::Object expected{{first, value}, {second, amount}};
    const bool good =
        parsed.ok() && schema_breach(schema, *parsed).empty() && *parsed == json::Value(expected);
    score.add(good, question, json::dump(expected), text.empty() ? reply.brief() : text);
  }
  return score;
}

Result<EvalScore> run_arithmetic(ApiClient& client, const EvalOptions& options) {
  EvalScore score;
  Random random(options.seed ^ 13);
  for (int i = 0; i < options.questions; ++i) {
    const auto a = static_cast<std::int64_t>(10 + random.below(90));
    const auto b = static_cast<std::int64_t>(10 + random.below(90));
    const std::string question = fmt::format("What is {} + {}?", a, b);
    TANDEM_ASSIGN(const ApiReply reply,
                  client.post("/v1/chat/completions",
                              {{"model", client.model()},
                               {"messages",
                                json::Array{json::Object{{"role", "user"}, {"content", question}}}},
                               {"temperature", 0},
                               {"max_tokens", 2'000},
                               {"chat_template_kwargs", json::Object{{"thinking", true}}}}));
    const std::string text = text_at(reply.json, "choices.0.message.content");
    const std::string expected = std::to_string(a + b);
    score.add(text.find(expected) != std::string::npos, question, expected,
              text.empty() ? reply.brief() : text);
  }
  return score;
}

}  // namespace

void add_skill_tasks(std::vector<EvalTask>& tasks) {
  tasks.push_back({"skills.tools", "Tool calls with copied arguments", run_tools});
  tasks.push_back({"skills.json", "JSON for asked keys", run_json});
  tasks.push_back({"skills.arithmetic", "Two-digit sums with thinking", run_arithmetic});
}

}  // namespace tandem::verify
