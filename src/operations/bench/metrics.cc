#include "operations/bench/metrics.h"

#include <charconv>

namespace tandem::bench {
namespace {

// The value of one line if it is the metric `name`, bare or with labels.
std::optional<double> line_value(std::string_view line, std::string_view name) {
  if (line.substr(0, name.size()) != name || line.size() <= name.size() ||
      (line[name.size()] != ' ' && line[name.size()] != '{')) {
    return std::nullopt;
  }
  const std::size_t labels_end = line[name.size()] == '{' ? line.rfind('}') : name.size();
  const std::size_t space =
      labels_end == std::string_view::npos ? labels_end : line.find(' ', labels_end);
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view number = line.substr(space + 1);
  double value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  return parsed.ec == std::errc() ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

std::optional<double> metric_sum(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (const auto value = line_value(text.substr(0, end), name)) {
      sum = sum.value_or(0) + *value;
    }
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return sum;
}

std::optional<DraftCounters> read_draft_counters(const Target& target,
                                                 const std::atomic<bool>& stop) {
  const auto response = fetch_text(target, "/metrics", "", stop);
  if (!response.ok() || response->status != 200) {
    return std::nullopt;
  }
  const auto drafted = metric_sum(response->body, "vllm:spec_decode_num_draft_tokens_total");
  const auto accepted = metric_sum(response->body, "vllm:spec_decode_num_accepted_tokens_total");
  if (!drafted.has_value() || !accepted.has_value()) {
    return std::nullopt;
  }
  return DraftCounters{*drafted, *accepted};
}

}  // namespace tandem::bench
