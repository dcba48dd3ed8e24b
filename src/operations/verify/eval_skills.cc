// Short tasks with one right answer: tool calls, JSON by schema, arithmetic.
#include <algorithm>
#include <array>

#include "foundation/base/random.h"
#include "operations/verify/eval_scenarios.h"
#include "operations/verify/evaluate.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr std::array<const char*, 10> kCities = {"Rome", "Paris", "Oslo",  "Madrid", "Vienna",
                                                 "Lima", "Tokyo", "Cairo", "Dublin", "Athens"};
constexpr std::array<const char*, 10> kNames = {"Anna", "Ben",   "Clara", "David", "Emma",
                                                "Finn", "Helen", "Jack",  "Lucy",  "Oscar"};

// The calls of a reply as [{"name", "arguments"}]; arguments that are no JSON stay a text.
json::Array calls_of(const json::Value& reply) {
  json::Array out;
  const json::Value* calls = at(reply, "choices.0.message.tool_calls");
  if (calls != nullptr && calls->is_array()) {
    for (const json::Value& call : calls->get_array()) {
      const std::string text = text_at(call, "function.arguments");
      auto parsed = json::parse(text);
      out.push_back(json::Object{{"name", text_at(call, "function.name")},
                                 {"arguments", parsed.ok() ? *parsed : json::Value(text)}});
    }
  }
  return out;
}

// Equal, with 5 and 5.0 the same number.
bool same_value(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.to_number<double>() == b.to_number<double>();
  }
  if (a.is_array() && b.is_array()) {
    const json::Array& x = a.get_array();
    const json::Array& y = b.get_array();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_value);
  }
  if (a.is_object() && b.is_object() && a.get_object().size() == b.get_object().size()) {
    for (const auto& member : a.get_object()) {
      const json::Value* other = json::find(b, member.key());
      if (other == nullptr || !same_value(member.value(), *other)) {
        return false;
      }
    }
    return true;
  }
  return a == b;
}

// The same calls, in any order.
bool same_calls(const json::Array& expected, const json::Array& got) {
  return expected.size() == got.size() &&
         std::is_permutation(expected.begin(), expected.end(), got.begin(), same_value);
}

json::Object plain_request(const ApiClient& client, const json::Value& messages, int max_tokens) {
  return {{"model", client.model()},
          {"messages", messages},
          {"temperature", 0},
          {"max_tokens", max_tokens},
          {"chat_template_kwargs", json::Object{{"thinking", false}}}};
}

Result<EvalScore> run_tools(ApiClient& client, const EvalOptions&) {
  EvalScore score;
  const json::Value& set = tool_scenarios();
  for (const json::Value& scenario : at(set, "scenarios")->get_array()) {
    json::Object body = plain_request(client, *at(scenario, "messages"), 400);
    body["tools"] = *at(set, "tools");
    TANDEM_ASSIGN(const ApiReply reply, client.post("/v1/chat/completions", body));
    const json::Array& expected = at(scenario, "calls")->get_array();
    const json::Array got = calls_of(reply.json);
    const bool text = !strip(text_at(reply.json, "choices.0.message.content")).empty();
    const bool good = reply.status == 200 && same_calls(expected, got) && (!got.empty() || text);
    const std::string name = text_at(scenario, "name");
    score.cells[name] = good;
    score.add(good, name + ": " + json::dump(*at(scenario, "messages")), json::dump(expected),
              got.empty() ? reply.brief() : json::dump(got));
  }
  return score;
}

struct SchemaTask {
  std::string question;
  json::Object schema;
  json::Object expected;
};

json::Object object_schema(const json::Object& properties) {
  json::Array required;
  for (const auto& member : properties) {
    required.push_back(json::Value(member.key()));
  }
  return {{"type", "object"},
          {"properties", properties},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

// Four shapes in turn: flat, nested, a list, and one with a choice and bounds.
SchemaTask make_schema_task(Random& random, int number) {
  const std::string name = kNames[random.below(kNames.size())];
  const std::string other = kNames[random.below(kNames.size())];
  const std::string city = kCities[random.below(kCities.size())];
  const auto age = static_cast<std::int64_t>(1 + random.below(99));
  const json::Object text{{"type", "string"}};
  const json::Object integer{{"type", "integer"}, {"minimum", 0}, {"maximum", 150}};
  switch (number % 4) {
    case 0:
      return {fmt::format("{} is {} years old. Return JSON with name and age.", name, age),
              object_schema({{"name", text}, {"age", integer}}),
              {{"name", name}, {"age", age}}};
    case 1:
      return {fmt::format("{} is {} years old and lives in {}. Return JSON with person (name, age) "
                          "and home (city).",
                          name, age, city),
              object_schema({{"person", object_schema({{"name", text}, {"age", integer}})},
                             {"home", object_schema({{"city", text}})}}),
              {{"person", json::Object{{"name", name}, {"age", age}}},
               {"home", json::Object{{"city", city}}}}};
    case 2:
      return {fmt::format("{} came first and {} came second. Return JSON with the list winners in "
                          "this order.",
                          name, other),
              object_schema({{"winners", json::Object{{"type", "array"}, {"items", text}}}}),
              {{"winners", json::Array{json::Value(name), json::Value(other)}}}};
    default: {
      const json::Object state{{"type", "string"}, {"enum", json::Array{"open", "closed"}}};
      return {fmt::format("The shop in {} is closed. Return JSON with city and state.", city),
              object_schema({{"city", text}, {"state", state}}),
              {{"city", city}, {"state", "closed"}}};
    }
  }
}

Result<EvalScore> run_json(ApiClient& client, const EvalOptions& options) {
  EvalScore score;
  Random random(options.seed ^ 12);
  int valid = 0;
  for (int i = 0; i < options.questions; ++i) {
    const SchemaTask task = make_schema_task(random, i);
    const json::Array messages{json::Object{{"role", "user"}, {"content", task.question}}};
    json::Object body = plain_request(client, messages, 200);
    body["response_format"] = json::Object{
        {"type", "json_schema"},
        {"json_schema", json::Object{{"name", "item"}, {"strict", true}, {"schema", task.schema}}}};
    TANDEM_ASSIGN(const ApiReply reply, client.post("/v1/chat/completions", body));
    const std::string text = text_at(reply.json, "choices.0.message.content");
    const auto parsed = json::parse(text);
    const bool obeys = parsed.ok() && schema_breach(task.schema, *parsed).empty();
    valid += obeys ? 1 : 0;
    score.add(obeys && same_value(*parsed, task.expected), task.question, json::dump(task.expected),
              text.empty() ? reply.brief() : text);
  }
  score.cells["obey_the_schema"] = json::Array{valid, options.questions};
  return score;
}

Result<EvalScore> run_arithmetic(ApiClient& client, const EvalOptions& options) {
  EvalScore score;
  Random random(options.seed ^ 13);
  for (int i = 0; i < options.questions; ++i) {
    const auto a = static_cast<std::int64_t>(10 + random.below(90));
    const auto b = static_cast<std::int64_t>(10 + random.below(90));
    const std::string question = fmt::format("What is {} + {}?", a, b);
    json::Object body = plain_request(
        client, json::Array{json::Object{{"role", "user"}, {"content", question}}}, 2'000);
    body["chat_template_kwargs"] = json::Object{{"thinking", true}};
    TANDEM_ASSIGN(const ApiReply reply, client.post("/v1/chat/completions", body));
    const std::string text = text_at(reply.json, "choices.0.message.content");
    const std::string expected = std::to_string(a + b);
    score.add(text.find(expected) != std::string::npos, question, expected,
              text.empty() ? reply.brief() : text);
  }
  return score;
}

}  // namespace

void add_skill_tasks(std::vector<EvalTask>& tasks) {
  tasks.push_back({"skills.tools", "The bundled tool scenarios", run_tools});
  tasks.push_back({"skills.json", "JSON that obeys a schema and is right", run_json});
  tasks.push_back({"skills.arithmetic", "Two-digit sums with thinking", run_arithmetic});
}

}  // namespace tandem::verify
