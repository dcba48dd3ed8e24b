#include <cmath>

#include "operations/verify/chat_request.h"
#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/chat/completions";
constexpr const char* kCounting = "Count from 1 to 20.";

Status check_repeatable(GateContext& context) {
  const json::Object body = chat_body(context, kCounting, 80);
  TANDEM_ASSIGN(const ApiReply cold, context.client().post(kPath, body));
  const std::string first = text_at(cold.json, "choices.0.message.content");
  context.check(!first.empty(), "sampling.repeatable.answers", "some text", cold.brief());
  for (int i = 0; i < 3; ++i) {
    TANDEM_ASSIGN(const ApiReply warm, context.client().post(kPath, body));
    context.check_equal("sampling.repeatable.warm_equals_cold", first,
                        text_at(warm.json, "choices.0.message.content"));
  }
  json::Object seeded = body;
  seeded["temperature"] = 1;
  seeded["seed"] = 1234;
  TANDEM_ASSIGN(const ApiReply a, context.client().post(kPath, seeded));
  TANDEM_ASSIGN(const ApiReply b, context.client().post(kPath, seeded));
  context.check_equal("sampling.repeatable.seed", text_at(a.json, "choices.0.message.content"),
                      text_at(b.json, "choices.0.message.content"));
  return ok_status();
}

void check_logprob_entry(GateContext& context, const json::Value& entry) {
  const json::Value* value = at(entry, "logprob");
  const bool number = value != nullptr && value->is_number();
  const double logprob = number ? value->to_number<double>() : 1.0;
  context.check(number && std::isfinite(logprob) && logprob <= 1e-6, "sampling.logprobs.finite",
                "a finite logprob of at most 0", json::dump(entry));
  const json::Value* top = at(entry, "top_logprobs");
  const bool listed = top != nullptr && top->is_array() && top->get_array().size() == 3;
  context.check(listed, "sampling.logprobs.top", "3 top_logprobs", json::dump(entry));
  if (listed && number) {
    const json::Value* best = at(top->get_array().front(), "logprob");
    context.check(
        best != nullptr && best->is_number() && best->to_number<double>() >= logprob - 1e-5,
        "sampling.logprobs.greedy_is_best", "the greedy token is the best of the list",
        json::dump(entry));
  }
}

Status check_logprobs(GateContext& context) {
  json::Object body = chat_body(context, "Reply with exactly READY.", 16);
  body["logprobs"] = true;
  body["top_logprobs"] = 3;
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  const json::Value* entries = at(reply.json, "choices.0.logprobs.content");
  if (!context.check(entries != nullptr && entries->is_array() && !entries->get_array().empty(),
                     "sampling.logprobs.present", "logprobs.content", reply.brief())) {
    return ok_status();
  }
  std::string joined;
  for (const json::Value& entry : entries->get_array()) {
    joined += text_at(entry, "token");
    check_logprob_entry(context, entry);
  }
  context.check_equal("sampling.logprobs.text", text_at(reply.json, "choices.0.message.content"),
                      joined);
  return ok_status();
}

Status check_n(GateContext& context) {
  json::Object body = chat_body(context, kCounting, 24);
  body["n"] = 3;
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  const json::Value* choices = at(reply.json, "choices");
  if (!context.check(choices != nullptr && choices->is_array() && choices->get_array().size() == 3,
                     "sampling.n.count", "3 choices", reply.brief())) {
    return ok_status();
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const json::Value& choice = choices->get_array()[i];
    context.check(
        int_at(choice, "index") == std::optional<std::int64_t>(static_cast<std::int64_t>(i)),
        "sampling.n.index", std::to_string(i), json::dump(choice));
    context.check_equal("sampling.n.greedy_equal", text_at(reply.json, "choices.0.message.content"),
                        text_at(choice, "message.content"));
  }
  return ok_status();
}

Status check_stop(GateContext& context) {
  json::Object body = chat_body(context, kCounting, 80);
  TANDEM_ASSIGN(const ApiReply free_run, context.client().post(kPath, body));
  const std::string whole = text_at(free_run.json, "choices.0.message.content");
  const std::size_t cut = whole.find('5');
  if (cut == std::string::npos) {
    context.skip("the model did not count to 5, so there is nothing to stop at");
    return ok_status();
  }
  body["stop"] = json::Array{"5"};
  TANDEM_ASSIGN(const ApiReply stopped, context.client().post(kPath, body));
  context.check_equal("sampling.stop.cut", whole.substr(0, cut),
                      text_at(stopped.json, "choices.0.message.content"));
  context.check_equal("sampling.stop.finish", "stop",
                      text_at(stopped.json, "choices.0.finish_reason"));

  // A stop string that occurs in the thinking must not end the answer there.
  json::Object thinking =
      chat_body(context, "Think briefly, then reply with exactly REASONED.", 600);
  thinking["chat_template_kwargs"] = json::Object{{"thinking", true}};
  TANDEM_ASSIGN(const ApiReply thought, context.client().post(kPath, thinking));
  const json::Value* message = at(thought.json, "choices.0.message");
  const std::string reasoning = message == nullptr ? "" : reasoning_of(*message);
  const std::string answer = text_at(thought.json, "choices.0.message.content");
  const std::string word = reasoning.substr(0, reasoning.find(' '));
  if (word.size() < 2 || answer.find(word) != std::string::npos) {
    context.value("stop_inside_thinking", "no word occurs in the thinking alone");
    return ok_status();
  }
  thinking["stop"] = json::Array{word};
  TANDEM_ASSIGN(const ApiReply again, context.client().post(kPath, thinking));
  context.check_equal("sampling.stop.not_inside_thinking", answer,
                      text_at(again.json, "choices.0.message.content"));
  return ok_status();
}

Status check_thinking_budget(GateContext& context) {
  json::Object body = chat_body(context, "Think briefly, then reply with exactly REASONED.", 600);
  body["chat_template_kwargs"] = json::Object{{"thinking", true}};
  body["thinking_token_budget"] = 4;
  TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
  context.check(reply.status == 200, "sampling.budget.status", "200", reply.brief());
  const auto reasoning = int_at(reply.json, "usage.completion_tokens_details.reasoning_tokens");
  context.check(reasoning.has_value() && *reasoning <= 5, "sampling.budget.kept",
                "at most 4 thinking tokens and the closing mark", reply.brief());
  context.check(!strip(text_at(reply.json, "choices.0.message.content")).empty(),
                "sampling.budget.answers", "an answer after the cut", reply.brief());
  return ok_status();
}

}  // namespace

void add_sampling_gates(std::vector<Gate>& gates) {
  gates.push_back({"sampling.repeatable", "Greedy and seeded answers repeat; warm equals cold",
                   true, check_repeatable});
  gates.push_back({"sampling.logprobs", "Logprobs are finite, sorted and spell the answer", true,
                   check_logprobs});
  gates.push_back({"sampling.n", "n choices are independent", true, check_n});
  gates.push_back(
      {"sampling.stop", "Stop strings cut exactly, never inside thinking", true, check_stop});
  gates.push_back({"sampling.budget", "The thinking budget is kept and an answer follows", true,
                   check_thinking_budget});
}

}  // namespace tandem::verify
