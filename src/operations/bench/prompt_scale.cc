#include "operations/bench/prompt_scale.h"

#include <cmath>
#include <optional>

namespace tandem::bench {
namespace {

constexpr std::int64_t kProbeWords = 400;

// POST /tokenize with a chat, as vLLM and tandem serve have it; nothing if the server has not.
std::optional<std::int64_t> count_by_tokenize(const Target& target, const std::string& prompt,
                                              const std::atomic<bool>& stop) {
  const json::Object body{
      {"model", target.model},
      {"messages", json::Array{json::Object{{"role", "user"}, {"content", prompt}}}},
      {"chat_template_kwargs", json::Object{{"thinking", false}}}};
  const auto response = fetch_text(target, "/tokenize", json::dump(body), stop);
  if (!response.ok() || response->status != 200) {
    return std::nullopt;
  }
  const auto parsed = json::parse(response->body);
  const std::int64_t count = parsed.ok() ? int_member(*parsed, "count") : 0;
  return count > 0 ? std::optional<std::int64_t>(count) : std::nullopt;
}

// The usage of a request for one token; its text, which may be half a character, is not looked at.
Result<std::int64_t> count_by_usage(const Target& target, const std::string& prompt,
                                    const std::atomic<bool>& stop) {
  const json::Object body{
      {"model", target.model},
      {"messages", json::Array{json::Object{{"role", "user"}, {"content", prompt}}}},
      {"max_tokens", 1},
      {"chat_template_kwargs", json::Object{{"thinking", false}}}};
  TANDEM_ASSIGN(const net::HttpResponse response,
                fetch_text(target, "/v1/chat/completions", json::dump(body), stop));
  const auto parsed = json::parse(response.body);
  const json::Value* usage = parsed.ok() ? json::find(*parsed, "usage") : nullptr;
  const std::int64_t count = usage == nullptr ? 0 : int_member(*usage, "prompt_tokens");
  if (response.status != 200 || count == 0) {
    return failed_precondition(
        "cannot count the tokens of a prompt: POST /tokenize gives no count, and POST "
        "/v1/chat/completions gives status {} without usage.prompt_tokens: {}",
        response.status, response.body.substr(0, 300));
  }
  return count;
}

}  // namespace

std::int64_t PromptScale::words_for(std::int64_t tokens) const {
  const double room = static_cast<double>(tokens) - fixed;
  return room <= 0 ? 0 : std::llround(room / per_word);
}

void PromptScale::correct(std::int64_t words, std::int64_t counted) {
  const double of_filler = static_cast<double>(counted) - fixed;
  if (words >= kProbeWords && of_filler > 0) {
    per_word = of_filler / static_cast<double>(words);
  }
}

Result<PromptScale> measure_scale(const Target& target, ContentClass content, std::uint64_t seed,
                                  const std::atomic<bool>& stop) {
  PromptScale scale;
  const std::string bare = make_prompt(content, seed, 0);
  const std::string filled = make_prompt(content, seed + 1, kProbeWords);
  const auto short_count = count_by_tokenize(target, bare, stop);
  const auto long_count = count_by_tokenize(target, filled, stop);
  scale.by_tokenize = short_count.has_value() && long_count.has_value();
  double counted = 0;
  if (scale.by_tokenize) {
    scale.fixed = static_cast<double>(*short_count);
    counted = static_cast<double>(*long_count);
  } else {
    TANDEM_ASSIGN(const std::int64_t first, count_by_usage(target, bare, stop));
    TANDEM_ASSIGN(const std::int64_t second, count_by_usage(target, filled, stop));
    scale.fixed = static_cast<double>(first);
    counted = static_cast<double>(second);
  }
  scale.per_word = (counted - scale.fixed) / kProbeWords;
  if (scale.per_word <= 0) {
    return failed_precondition(
        "the server counts {} tokens for a prompt of {} more words than one of {} tokens", counted,
        kProbeWords, scale.fixed);
  }
  return scale;
}

}  // namespace tandem::bench
