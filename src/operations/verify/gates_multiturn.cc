#include <algorithm>
#include <chrono>
#include <thread>

#include "operations/verify/chat_request.h"
#include "operations/verify/filler.h"
#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/chat/completions";

// Cached tokens that a turn must at least report: what a cache with blocks of 256 tokens and a tail
// of 4096 uncached ones reaches.
std::int64_t cached_floor(std::int64_t prompt_tokens) {
  return std::max<std::int64_t>(0, (prompt_tokens - 4096) / 256 * 256);
}

Status check_multiturn(GateContext& context) {
  const VerifyOptions& options = context.options();
  TANDEM_ASSIGN(const std::string filler,
                filler_of_tokens(context.client(), options.multiturn_prefix_tokens, run_nonce()));
  json::Array messages{
      json::Object{{"role", "user"}, {"content", filler + "\nReply with exactly READY."}}};
  json::Array ratios;
  for (int turn = 1; turn <= options.multiturn_turns; ++turn) {
    json::Object body = chat_body(context, "", 128);
    body["messages"] = messages;
    TANDEM_ASSIGN(const ApiReply reply, context.client().post(kPath, body));
    const std::string name = fmt::format("multiturn.turn_{}", turn);
    const std::string expected = turn == 1 ? "READY" : fmt::format("ACK{}", turn);
    context.check_equal(name + ".answer", expected,
                        strip(text_at(reply.json, "choices.0.message.content")));
    const auto prompt = int_at(reply.json, "usage.prompt_tokens");
    const auto cached = int_at(reply.json, "usage.prompt_tokens_details.cached_tokens");
    if (context.check(prompt.has_value() && cached.has_value(), name + ".usage",
                      "integers prompt_tokens and cached_tokens", reply.brief())) {
      const std::int64_t floor = turn == 1 ? 0 : cached_floor(*prompt);
      context.check(*cached >= floor && *cached <= *prompt, name + ".cached",
                    fmt::format("{} to {} cached tokens", floor, *prompt), reply.brief());
      ratios.push_back(json::Value(static_cast<double>(*cached) /
                                   static_cast<double>(std::max<std::int64_t>(*prompt, 1))));
    }
    messages.push_back(json::Object{{"role", "assistant"}, {"content", expected}});
    messages.push_back(json::Object{
        {"role", "user"}, {"content", fmt::format("Reply with exactly ACK{}.", turn + 1)}});
  }
  context.value("cached_by_prompt", std::move(ratios));
  return ok_status();
}

struct Counters {
  double running = 0;
  double waiting = 0;
  double tokens = 0;
  double success = 0;
  double cache_queries = 0;
  double cache_hits = 0;
};

Result<Counters> read_counters(ApiClient& client) {
  TANDEM_ASSIGN(const ApiReply reply, client.get("/metrics"));
  Counters counters;
  const std::pair<const char*, double*> wanted[] = {
      {"vllm:num_requests_running", &counters.running},
      {"vllm:num_requests_waiting", &counters.waiting},
      {"vllm:generation_tokens_total", &counters.tokens},
      {"vllm:request_success_total", &counters.success},
      {"vllm:prefix_cache_queries_total", &counters.cache_queries},
      {"vllm:prefix_cache_hits_total", &counters.cache_hits}};
  for (const auto& [name, place] : wanted) {
    const auto value = metric_sum(reply.body, name);
    if (!value.has_value()) {
      return failed_precondition("GET /metrics has no {}", name);
    }
    *place = *value;
  }
  return counters;
}

// Polls until `done` holds. Returns the last counters either way.
template <typename Done>
Result<Counters> wait_for(ApiClient& client, std::chrono::milliseconds limit, Done done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    TANDEM_ASSIGN(const Counters counters, read_counters(client));
    if (done(counters) || std::chrono::steady_clock::now() > end) {
      return counters;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Status check_disconnect(GateContext& context) {
  const auto idle = [](const Counters& c) { return c.running == 0 && c.waiting == 0; };
  ApiClient& client = context.client();
  TANDEM_ASSIGN(const Counters before, wait_for(client, std::chrono::seconds(10), idle));
  if (!context.check(idle(before), "disconnect.idle_before", "no other requests",
                     fmt::format("{} running", before.running))) {
    return ok_status();
  }
  json::Object body = chat_body(context, "Write a long numbered list. " + run_nonce(), 4096);
  body["stream"] = true;
  body["ignore_eos"] = true;
  int pieces = 0;
  Counters opened;
  Status polled;
  const StreamReply reply = client.stream(kPath, body, [&](const net::SseEvent&) {
    if (++pieces < 4) {
      return true;
    }
    const auto counters = read_counters(client);
    polled = counters.status();
    if (counters.ok()) {
      opened = *counters;
    }
    return false;
  });
  TANDEM_TRY(polled);
  context.check(reply.transport.code() == StatusCode::kCancelled, "disconnect.opened",
                "a stream that we close", reply.brief());
  context.check(opened.running >= 1, "disconnect.running", "running >= 1 while streaming",
                std::to_string(opened.running));
  TANDEM_ASSIGN(const Counters after, wait_for(client, std::chrono::seconds(30), idle));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  TANDEM_ASSIGN(const Counters last, read_counters(client));
  context.check(idle(after), "disconnect.freed", "running = waiting = 0",
                fmt::format("{} running, {} waiting", after.running, after.waiting));
  context.check(after.tokens - opened.tokens <= 32, "disconnect.bounded",
                "at most 32 further tokens", fmt::format("{}", after.tokens - opened.tokens));
  context.check(after.success == before.success, "disconnect.no_success",
                "an aborted request is no success",
                fmt::format("{} before, {} after", before.success, after.success));
  context.check(opened.tokens >= before.tokens && after.tokens >= opened.tokens,
                "disconnect.monotone", "counters never fall",
                fmt::format("{} {} {}", before.tokens, opened.tokens, after.tokens));
  context.check(last.cache_queries >= before.cache_queries && last.cache_hits >= before.cache_hits,
                "disconnect.cache_monotone", "prefix cache counters never fall",
                fmt::format("queries {} then {}, hits {} then {}", before.cache_queries,
                            last.cache_queries, before.cache_hits, last.cache_hits));
  context.check(last.tokens == after.tokens && last.success == after.success, "disconnect.quiet",
                "counters stand still after idle", fmt::format("{} {}", after.tokens, last.tokens));
  return ok_status();
}

}  // namespace

void add_multiturn_gates(std::vector<Gate>& gates) {
  gates.push_back({"multiturn", "Appended turns reuse the prefix", true, check_multiturn});
  gates.push_back(
      {"disconnect", "A client that leaves frees its sequence", true, check_disconnect});
}

}  // namespace tandem::verify
