#include "operations/verify/chat_request.h"
#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/chat/completions";
constexpr const char* kDraftMetric = "vllm:spec_decode_num_draft_tokens_total";

// Texts of different kinds, so that some drafts are accepted and some are not.
constexpr const char* kPrompts[] = {
    "Write the numbers from one to thirty in digits, one a line.",
    "Write a short story about a lighthouse keeper and his cat.",
    "Write a C++ function that reverses a singly linked list, with comments.",
    "Return a JSON array of ten objects with the keys id and name."};

Result<std::optional<double>> drafted(ApiClient& client) {
  TANDEM_ASSIGN(const ApiReply reply, client.get("/metrics"));
  return metric_sum(reply.body, kDraftMetric);
}

// Where two texts part, with a little of both.
std::string first_difference(std::string_view on, std::string_view off) {
  std::size_t place = 0;
  while (place < on.size() && place < off.size() && on[place] == off[place]) {
    ++place;
  }
  const auto around = [place](std::string_view text) {
    return shorten(text.substr(std::min(text.size(), place > 40 ? place - 40 : 0)), 120);
  };
  return fmt::format("the texts part at byte {}; on: {} | off: {}", place, around(on), around(off));
}

Status compare_answers(GateContext& context, const char* prompt, int number) {
  json::Object body = chat_body(context, prompt, 160);
  TANDEM_ASSIGN(const ApiReply on, context.client().post(kPath, body));
  body["speculation"] = false;
  TANDEM_ASSIGN(const ApiReply off, context.client().post(kPath, body));
  const std::string name = fmt::format("speculation.prompt_{}", number);
  const std::string on_text = text_at(on.json, "choices.0.message.content");
  const std::string off_text = text_at(off.json, "choices.0.message.content");
  context.check(!on_text.empty(), name + ".answers", "some text", on.brief());
  context.check(on_text == off_text, name + ".same_text", "the same text with and without drafts",
                first_difference(on_text, off_text));
  context.check_equal(name + ".same_finish", text_at(on.json, "choices.0.finish_reason"),
                      text_at(off.json, "choices.0.finish_reason"));
  const auto on_tokens = int_at(on.json, "usage.completion_tokens");
  context.check(on_tokens.has_value() && on_tokens == int_at(off.json, "usage.completion_tokens"),
                name + ".same_tokens", fmt::format("{} completion tokens", on_tokens.value_or(-1)),
                off.brief());
  return ok_status();
}

// Skips, with the reason, a server on which the comparison would compare nothing: one that drafts
// nothing, or one that drafts on although the request says speculation: false.
Status check_speculation(GateContext& context) {
  ApiClient& client = context.client();
  TANDEM_ASSIGN(const std::optional<double> before, drafted(client));
  if (!before.has_value()) {
    context.skip(
        fmt::format("GET /metrics has no {}: cannot tell drafts on from off", kDraftMetric));
    return ok_status();
  }
  json::Object body = chat_body(context, kPrompts[0], 48);
  TANDEM_ASSIGN(const ApiReply on, client.post(kPath, body));
  TANDEM_ASSIGN(const std::optional<double> between, drafted(client));
  body["speculation"] = false;
  TANDEM_ASSIGN(const ApiReply off, client.post(kPath, body));
  TANDEM_ASSIGN(const std::optional<double> after, drafted(client));
  if (between.value_or(0) <= *before) {
    context.skip("the server drafted nothing for a request: speculation is off");
  } else if (off.status == 400 || off.status == 422) {
    context.skip("the server refuses the request field speculation: " + off.brief());
  } else if (after.value_or(0) > between.value_or(0)) {
    context.skip("the server ignores the request field speculation: it drafted all the same");
  }
  if (context.skipped()) {
    return ok_status();
  }
  context.check(on.status == 200 && off.status == 200, "speculation.status", "200", off.brief());
  int number = 0;
  for (const char* prompt : kPrompts) {
    TANDEM_TRY(compare_answers(context, prompt, ++number));
  }
  return ok_status();
}

}  // namespace

void add_speculation_gates(std::vector<Gate>& gates) {
  gates.push_back({"speculation", "Greedy answers are the same with drafts on and off", true,
                   check_speculation});
}

}  // namespace tandem::verify
