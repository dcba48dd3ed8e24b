#include <algorithm>

#include "foundation/base/random.h"
#include "operations/verify/chat_request.h"
#include "operations/verify/filler.h"
#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr const char* kPath = "/v1/chat/completions";

// A needle at a depth (0 = start, 1 = end) of a haystack that really has the stated length.
Result<std::string> haystack(GateContext& context, std::int64_t tokens, double depth,
                             const std::string& needle) {
  TANDEM_ASSIGN(std::string filler,
                filler_of_tokens(context.client(), tokens - std::min<std::int64_t>(60, tokens / 25),
                                 run_nonce()));
  std::size_t place =
      filler.find(". ", static_cast<std::size_t>(depth * static_cast<double>(filler.size() - 2)));
  place = place == std::string::npos ? filler.size() : place + 2;
  filler.insert(place, needle);
  return filler;
}

Status check_recall(GateContext& context) {
  Random random(42);
  json::Object cells;
  for (const std::int64_t tokens : context.options().recall_tokens) {
    for (const double depth : {0.1, 0.5, 0.9}) {
      const std::string code = std::to_string(10'000 + random.below(90'000));
      TANDEM_ASSIGN(const std::string hay,
                    haystack(context, tokens, depth, fmt::format("The secret code is {}. ", code)));
      TANDEM_ASSIGN(
          const ApiReply reply,
          context.client().post(
              kPath, chat_body(context,
                               hay + "\nWhat is the secret code? Reply with the code only.", 32)));
      const std::string cell = fmt::format("{}@{:.1f}", tokens, depth);
      const auto prompt = int_at(reply.json, "usage.prompt_tokens").value_or(0);
      context.check(prompt >= tokens * 97 / 100 && prompt <= tokens * 103 / 100 + 64,
                    "recall.length." + cell, fmt::format("about {} prompt tokens", tokens),
                    std::to_string(prompt));
      const std::string answer = text_at(reply.json, "choices.0.message.content");
      const bool found = answer.find(code) != std::string::npos;
      context.check(found, "recall.found." + cell, code, answer);
      cells[cell] = found;
    }
  }
  context.value("cells", std::move(cells));
  return ok_status();
}

// Signs of broken decoding in plain prose: control bytes, U+FFFD, turn marks, long repetition.
std::string garble(std::string_view text) {
  if (text.find("\xEF\xBF\xBD") != std::string_view::npos) {
    return "U+FFFD";
  }
  if (text.find("\xEF\xBD\x9C") != std::string_view::npos) {
    return "markup of the model";
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') {
      return fmt::format("control byte {}", static_cast<int>(c));
    }
  }
  for (std::size_t period = 1; period <= 40; ++period) {
    std::size_t run = 0;
    for (std::size_t i = period; i < text.size(); ++i) {
      run = text[i] == text[i - period] ? run + 1 : 0;
      if (run >= 120 + period * 3) {
        return fmt::format("a text of {} bytes repeated over {} bytes", period, run);
      }
    }
  }
  return {};
}

Status check_garble(GateContext& context) {
  for (const std::int64_t tokens : context.options().recall_tokens) {
    TANDEM_ASSIGN(const std::string filler,
                  filler_of_tokens(context.client(), tokens, run_nonce()));
    TANDEM_ASSIGN(const ApiReply reply,
                  context.client().post(
                      kPath, chat_body(context, filler + "\nReply with exactly READY.", 200)));
    const std::string text = text_at(reply.json, "choices.0.message.content");
    const std::string name = "garble." + std::to_string(tokens);
    context.check(!strip(text).empty(), name + ".answers", "some text", reply.brief());
    const std::string sign = garble(text);
    context.check(sign.empty(), name + ".clean", "clean text", sign + " in " + text);
  }
  return ok_status();
}

}  // namespace

void add_recall_gates(std::vector<Gate>& gates) {
  gates.push_back({"recall", "A needle is found at every length and depth", false, check_recall});
  gates.push_back({"garble", "No garbled text at depth", true, check_garble});
}

std::vector<Gate> all_gates() {
  std::vector<Gate> gates;
  add_catalog_gates(gates);
  add_responses_gates(gates);
  add_chat_gates(gates);
  add_messages_gates(gates);
  add_sampling_gates(gates);
  add_multiturn_gates(gates);
  add_recall_gates(gates);
  add_deep_gates(gates);
  add_speculation_gates(gates);
  return gates;
}

}  // namespace tandem::verify
