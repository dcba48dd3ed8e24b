#include "operations/bench/bench_report.h"

#include <algorithm>

#include "operations/bench/protocols.h"

namespace tandem::bench {
namespace {

constexpr std::size_t kErrorsShown = 3;

json::Object summary_json(const Summary& summary) {
  return {{"n", summary.n},
          {"median", summary.median},
          {"low", summary.low},
          {"high", summary.high},
          {"p95", summary.p95}};
}

std::string_view end_word(CellEnd end) {
  switch (end) {
    case CellEnd::kComplete:
      return "complete";
    case CellEnd::kStopped:
      return "stopped";
    case CellEnd::kServerGone:
      return "server gone";
  }
  return "";
}

json::Array errors_json(const CellResult& cell) {
  json::Array errors;
  for (const std::string& error : cell.errors) {
    errors.push_back(json::Value(error));
  }
  return errors;
}

json::Object mixed_json(const CellResult& cell) {
  json::Array rounds;
  for (const MixedRound& round : cell.rounds) {
    rounds.push_back(json::Object{{"long_prompt_tokens", round.long_prompt_tokens},
                                  {"long_ttft_s", round.long_ttft_s},
                                  {"worst_gap_s", round.worst_gap_s}});
  }
  return {{"prompt_tokens", cell.cell.mixed_prompt_tokens},
          {"quiet_tokens_per_s", cell.quiet_rate},
          {"kept_share", summary_json(cell.kept())},
          {"rounds", std::move(rounds)}};
}

json::Object cell_json(const CellResult& cell) {
  json::Object out{{"name", cell_name(cell.cell)},
                   {"content", content_name(cell.cell.content)},
                   {"concurrency", cell.cell.concurrency},
                   {"context_tokens", cell.cell.context_tokens},
                   {"warm", cell.cell.warm},
                   {"prompt_tokens", cell.prompt_tokens()},
                   {"cached_tokens", cell.cached_tokens()},
                   {"ttft_s", summary_json(cell.ttft())},
                   {"decode_tokens_per_s", summary_json(cell.decode())},
                   {"gap_median_s", summary_json(cell.gap_median())},
                   {"gap_p99_s", summary_json(cell.gap_p99())},
                   {"tokens_per_arrival", cell.tokens_per_arrival()},
                   {"aggregate_tokens_per_s", cell.aggregate_rate()},
                   {"wall_s", cell.wall_s},
                   {"end", end_word(cell.end)},
                   {"errors", errors_json(cell)}};
  if (cell.drafts.has_value()) {
    out["drafted"] = cell.drafts->drafted;
    out["accepted"] = cell.drafts->accepted;
  }
  if (cell.cell.mixed_prompt_tokens > 0) {
    out["mixed"] = mixed_json(cell);
  }
  return out;
}

std::string mixed_row(const CellResult& cell) {
  const Summary kept = cell.kept();
  double gap = 0;
  double first = 0;
  for (const MixedRound& round : cell.rounds) {
    gap = std::max(gap, round.worst_gap_s);
    first = std::max(first, round.long_ttft_s);
  }
  return fmt::format(
      "{}: streams keep {:.0f}% [{:.0f}, {:.0f}] of {:.1f} tokens/s while the long prompt is read "
      "({} rounds, at most {:.3f} s to its first token); longest silence {:.3f} s",
      cell_name(cell.cell), 100 * kept.median, 100 * kept.low, 100 * kept.high, cell.quiet_rate,
      cell.rounds.size(), first, gap);
}

std::string drafts_text(const CellResult& cell) {
  if (!cell.drafts.has_value()) {
    return "no metric";
  }
  if (cell.drafts->drafted <= 0) {
    return "none";
  }
  return fmt::format("{:.0f}%", 100 * cell.drafts->accepted / cell.drafts->drafted);
}

std::string load_row(const CellResult& cell) {
  const Summary ttft = cell.ttft();
  const Summary decode = cell.decode();
  return fmt::format(
      "{:<9}{:>4}{:>9.0f}{:>9.0f}  {:>8.3f} [{:.3f}, {:.3f}]  {:>7.1f} [{:.1f}, "
      "{:.1f}]  {:>6.1f}{:>8.1f}  {:>8.1f}  {:>9}",
      content_name(cell.cell.content), cell.cell.concurrency, cell.prompt_tokens(),
      cell.cached_tokens(), ttft.median, ttft.low, ttft.high, decode.median, decode.low,
      decode.high, 1000 * cell.gap_median().median, 1000 * cell.gap_p99().median,
      cell.aggregate_rate(), drafts_text(cell));
}

}  // namespace

std::string cell_name(const Cell& cell) {
  const std::string mixed =
      cell.mixed_prompt_tokens > 0 ? fmt::format(" beside {}", cell.mixed_prompt_tokens) : "";
  return fmt::format("{} c={} {} tokens {}{}", content_name(cell.content), cell.concurrency,
                     cell.context_tokens, cell.warm ? "warm" : "cold", mixed);
}

std::string row_heading() {
  return "content  streams prompt   cached  first token, s [95%]    tokens/s a stream [95%]  gap, "
         "ms p99, ms  all streams  drafts accepted";
}

std::string row(const CellResult& cell) {
  std::string out = cell.cell.mixed_prompt_tokens > 0 ? mixed_row(cell) : load_row(cell);
  if (cell.end != CellEnd::kComplete) {
    out += fmt::format("  ({}: {} requests kept)", end_word(cell.end), cell.samples.size());
  }
  for (std::size_t i = 0; i < cell.errors.size() && i < kErrorsShown; ++i) {
    out += "\n    error: " + cell.errors[i];
  }
  if (cell.errors.size() > kErrorsShown) {
    out += fmt::format("\n    and {} more errors", cell.errors.size() - kErrorsShown);
  }
  return out;
}

std::string to_csv(const BenchRun& run) {
  std::string out =
      "content,streams,context_tokens,warm,mixed_prompt_tokens,requests,errors,prompt_tokens,"
      "cached_tokens,ttft_s,ttft_s_low,ttft_s_high,decode_tokens_per_s,decode_low,decode_high,"
      "gap_median_s,gap_p99_s,aggregate_tokens_per_s,drafted,accepted,kept_share,kept_low,"
      "kept_high,end\n";
  for (const CellResult& cell : run.cells) {
    const Summary ttft = cell.ttft();
    const Summary decode = cell.decode();
    const Summary kept = cell.kept();
    out += fmt::format("{},{},{},{},{},{},{},{:.0f},{:.0f},{:.4f},{:.4f},{:.4f},",
                       content_name(cell.cell.content), cell.cell.concurrency,
                       cell.cell.context_tokens, cell.cell.warm, cell.cell.mixed_prompt_tokens,
                       cell.samples.size(), cell.errors.size(), cell.prompt_tokens(),
                       cell.cached_tokens(), ttft.median, ttft.low, ttft.high);
    out += fmt::format("{:.2f},{:.2f},{:.2f},{:.5f},{:.5f},{:.2f},", decode.median, decode.low,
                       decode.high, cell.gap_median().median, cell.gap_p99().median,
                       cell.aggregate_rate());
    out += cell.drafts.has_value()
               ? fmt::format("{:.0f},{:.0f},", cell.drafts->drafted, cell.drafts->accepted)
               : ",,";
    out +=
        kept.n > 0 ? fmt::format("{:.4f},{:.4f},{:.4f},", kept.median, kept.low, kept.high) : ",,,";
    out += fmt::format("{}\n", end_word(cell.end));
  }
  return out;
}

std::string to_json(const BenchRun& run) {
  json::Array cells;
  for (const CellResult& cell : run.cells) {
    cells.push_back(cell_json(cell));
  }
  json::Object scales;
  for (const auto& [content, scale] : run.scales) {
    scales[content_name(content)] =
        json::Object{{"tokens_without_filler", scale.fixed},
                     {"tokens_per_word", scale.per_word},
                     {"counted_by", scale.by_tokenize ? "/tokenize" : "usage"}};
  }
  const LoadOptions& load = run.plan.load;
  return json::dump(json::Object{{"schema_version", 2},
                                 {"url", run.url},
                                 {"model", load.target.model},
                                 {"started_at", run.started_at},
                                 {"end", end_name(run.end)},
                                 {"cells_planned", run.plan.cells.size()},
                                 {"max_tokens", load.shape.max_tokens},
                                 {"temperature", load.shape.temperature},
                                 {"natural", load.shape.natural},
                                 {"seed", load.seed},
                                 {"protocol", run.plan.protocol},
                                 {"rules", measuring_rules()},
                                 {"tokens_per_word", std::move(scales)},
                                 {"cells", std::move(cells)}});
}

}  // namespace tandem::bench
