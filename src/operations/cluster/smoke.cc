#include "operations/cluster/smoke.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "foundation/json/json.h"

namespace tandem::cluster {
namespace {

constexpr std::int64_t kAnswerMs = 600'000;

// One chat completion. ERRORS: kUnavailable; kFailedPrecondition with status and body.
Result<json::Value> ask(const net::Url& url, const SmokeOptions& options, json::Object body) {
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.idle_timeout_ms = kAnswerMs;
  request.headers.emplace_back("Content-Type", "application/json");
  if (!options.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + options.api_key);
  }
  body["temperature"] = 0;
  request.body = json::dump(body);
  TANDEM_ASSIGN(const net::HttpResponse response, net::http_fetch(url, request));
  if (response.status != 200) {
    return failed_precondition("status {}, expected 200: {}", response.status,
                               response.body.substr(0, 300));
  }
  return json::parse(response.body);
}

json::Array one_message(const std::string& text) {
  return {json::Object{{"role", "user"}, {"content", text}}};
}

const json::Value* at(const json::Value& value, std::initializer_list<const char*> path) {
  const json::Value* here = &value;
  for (const char* key : path) {
    if (here != nullptr && here->is_array()) {
      here = here->get_array().empty() ? nullptr : &here->get_array().front();
    }
    here = here == nullptr ? nullptr : json::find(*here, key);
  }
  return here;
}

std::int64_t number(const json::Value* value) {
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

Result<std::string> chat(const net::Url& url, const SmokeOptions& options) {
  TANDEM_ASSIGN(const json::Value reply,
                ask(url, options, {{"messages", one_message("Say hello.")}, {"max_tokens", 32}}));
  const std::int64_t tokens = number(at(reply, {"usage", "completion_tokens"}));
  if (tokens < 1) {
    return data_loss("no token was generated, expected at least one");
  }
  return fmt::format("{} tokens", tokens);
}

Result<std::string> tool_call(const net::Url& url, const SmokeOptions& options) {
  const json::Object city{{"type", "string"}, {"maxLength", 40}};
  const json::Object parameters{{"type", "object"},
                                {"properties", json::Object{{"city", city}}},
                                {"required", json::Array{"city"}}};
  const json::Object tool{
      {"type", "function"},
      {"function", json::Object{{"name", "get_weather"}, {"parameters", parameters}}}};
  TANDEM_ASSIGN(const json::Value reply,
                ask(url, options,
                    {{"messages", one_message("What is the weather in Oslo?")},
                     {"tools", json::Array{tool}},
                     {"tool_choice", "required"},
                     {"reasoning_effort", "none"},
                     {"max_tokens", 400}}));
  const json::Value* function = at(reply, {"choices", "message", "tool_calls", "function"});
  const json::Value* arguments = function == nullptr ? nullptr : json::find(*function, "arguments");
  if (arguments == nullptr || !arguments->is_string()) {
    return data_loss("no tool call, expected a call of get_weather: {}",
                     json::dump(reply).substr(0, 300));
  }
  const std::string text(arguments->get_string());
  const auto parsed = json::parse(text);
  if (!parsed.ok() || json::find(*parsed, "city") == nullptr) {
    return data_loss("arguments {}, expected an object with 'city'", text);
  }
  return "get_weather" + text;
}

std::string long_prompt(std::int64_t words) {
  std::string text = "Read this list.\n";
  for (std::int64_t i = 0; i < words; ++i) {
    text += fmt::format("item {} ", (i * 7919) % 10007);
  }
  return text + "\nHow does the list begin?";
}

Result<std::string> long_context(const net::Url& url, const SmokeOptions& options) {
  const json::Object body{{"messages", one_message(long_prompt(options.long_words / 2))},
                          {"reasoning_effort", "none"},
                          {"max_tokens", 16}};
  TANDEM_ASSIGN(const json::Value first, ask(url, options, body));
  TANDEM_ASSIGN(const json::Value second, ask(url, options, body));
  const json::Value* one = at(first, {"choices", "message"});
  const json::Value* two = at(second, {"choices", "message"});
  if (one == nullptr || two == nullptr || *one != *two) {
    return data_loss("the same greedy request gave two answers: {} and {}",
                     one == nullptr ? "none" : json::dump(*one),
                     two == nullptr ? "none" : json::dump(*two));
  }
  return fmt::format("{} prompt tokens, {} of them cached the second time, equal answers",
                     number(at(second, {"usage", "prompt_tokens"})),
                     number(at(second, {"usage", "prompt_tokens_details", "cached_tokens"})));
}

}  // namespace

std::vector<SmokeStep> run_smoke(const net::Url& url, const SmokeOptions& options) {
  using Step = std::function<Result<std::string>(const net::Url&, const SmokeOptions&)>;
  const std::vector<std::pair<std::string, Step>> all = {
      {"chat", chat}, {"tool call", tool_call}, {"long context", long_context}};
  std::vector<SmokeStep> steps;
  for (const auto& [name, run] : all) {
    const auto start = std::chrono::steady_clock::now();
    const auto result = run(url, options);
    SmokeStep step;
    step.name = name;
    step.ok = result.ok();
    step.detail = result.ok() ? *result : result.status().message();
    step.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tandem::cluster
