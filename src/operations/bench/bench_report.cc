#include "operations/bench/bench_report.h"

#include <algorithm>
#include <map>

#include "foundation/json/json.h"

namespace tandem::bench {
namespace {

std::string cell_name(const Cell& cell) {
  return fmt::format("{} c={} words={}{}", content_name(cell.content), cell.concurrency,
                     cell.context_words, cell.repeat_prompt ? " warm" : "");
}

json::Object summary_json(const Summary& summary) {
  return {{"n", summary.n},
          {"median", summary.median},
          {"low", summary.low},
          {"high", summary.high},
          {"p95", summary.p95}};
}

Summary read_summary(const json::Value& value) {
  Summary out;
  const auto number = [&value](std::string_view key) {
    const json::Value* found = json::find(value, key);
    return found != nullptr && found->is_number() ? found->to_number<double>() : 0.0;
  };
  out.n = static_cast<std::size_t>(number("n"));
  out.median = number("median");
  out.low = number("low");
  out.high = number("high");
  out.p95 = number("p95");
  return out;
}

struct CellFigures {
  Summary decode;
  Summary ttft;
};

Result<std::map<std::string, CellFigures>> read_cells(const std::string& text) {
  TANDEM_ASSIGN(const json::Value report, json::parse(text));
  const json::Value* cells = json::find(report, "cells");
  if (cells == nullptr || !cells->is_array()) {
    return invalid_argument("no bench report: it has no list 'cells'");
  }
  std::map<std::string, CellFigures> out;
  for (const json::Value& cell : cells->get_array()) {
    const json::Value* name = json::find(cell, "name");
    const json::Value* decode = json::find(cell, "decode_tokens_per_s");
    const json::Value* ttft = json::find(cell, "ttft_s");
    if (name == nullptr || !name->is_string() || decode == nullptr || ttft == nullptr) {
      return invalid_argument("no bench report: a cell lacks name, decode_tokens_per_s or ttft_s");
    }
    out[std::string(name->get_string())] = {read_summary(*decode), read_summary(*ttft)};
  }
  return out;
}

std::string_view verdict_word(Verdict verdict, bool less_is_better) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kFaster:
      return less_is_better ? "slower" : "faster";
    case Verdict::kSlower:
      return less_is_better ? "faster" : "slower";
  }
  return "";
}

// A bar plot of one figure over all cells.
std::string bars(const BenchRun& run, const std::string& title,
                 double (*figure)(const CellResult&)) {
  double top = 0;
  for (const CellResult& cell : run.cells) {
    top = std::max(top, figure(cell));
  }
  const std::size_t height = 24 * run.cells.size() + 30;
  std::string out = fmt::format(
      "<h2>{}</h2><svg viewBox=\"0 0 760 {}\" width=\"760\" height=\"{}\" role=\"img\">\n", title,
      height, height);
  for (std::size_t i = 0; i < run.cells.size(); ++i) {
    const double value = figure(run.cells[i]);
    const double width = top > 0 ? 420 * value / top : 0;
    const std::size_t y = 24 * i;
    out += fmt::format(
        "<text x=\"0\" y=\"{}\">{}</text><rect x=\"240\" y=\"{}\" width=\"{:.1f}\" height=\"16\" "
        "fill=\"#4269d0\"/><text x=\"{:.1f}\" y=\"{}\">{:.3g}</text>\n",
        y + 14, cell_name(run.cells[i].cell), y + 2, width, 246 + width, y + 14, value);
  }
  return out + "</svg>\n";
}

}  // namespace

std::string protocol_notes() {
  return "Greedy, thinking off, ignore_eos, a fixed number of tokens per answer, prompts unique by "
         "a "
         "leading note unless 'warm'.\nTokens come from the server's usage; decode rate excludes "
         "the "
         "first token; intervals are 95% of the median.\nUnlike the published recipe benchmarks "
         "the "
         "filler is not one repeated phrase and answers are not a list of numbered words:\nboth "
         "raise "
         "draft acceptance. Compare only cells of the same class.\n";
}

std::string to_csv(const BenchRun& run) {
  std::string out =
      "content,concurrency,context_words,warm,requests,errors,prompt_tokens,ttft_s_median,"
      "ttft_s_low,ttft_s_high,decode_tokens_per_s_median,decode_low,decode_high,"
      "aggregate_tokens_per_s,drafted,accepted,interrupted\n";
  for (const CellResult& cell : run.cells) {
    const Summary ttft = cell.ttft();
    const Summary decode = cell.decode();
    out += fmt::format(
        "{},{},{},{},{},{},{:.0f},{:.4f},{:.4f},{:.4f},{:.2f},{:.2f},{:.2f},{:.2f},{:.0f},{:.0f},{}"
        "\n",
        content_name(cell.cell.content), cell.cell.concurrency, cell.cell.context_words,
        cell.cell.repeat_prompt, cell.samples.size(), cell.errors.size(), cell.prompt_tokens(),
        ttft.median, ttft.low, ttft.high, decode.median, decode.low, decode.high,
        cell.aggregate_rate(), cell.drafted, cell.accepted, cell.interrupted);
  }
  return out;
}

std::string to_json(const BenchRun& run) {
  json::Array cells;
  for (const CellResult& cell : run.cells) {
    json::Array errors;
    for (const std::string& error : cell.errors) {
      errors.push_back(json::Value(error));
    }
    cells.push_back(json::Object{{"name", cell_name(cell.cell)},
                                 {"content", content_name(cell.cell.content)},
                                 {"concurrency", cell.cell.concurrency},
                                 {"context_words", cell.cell.context_words},
                                 {"warm", cell.cell.repeat_prompt},
                                 {"prompt_tokens", cell.prompt_tokens()},
                                 {"ttft_s", summary_json(cell.ttft())},
                                 {"decode_tokens_per_s", summary_json(cell.decode())},
                                 {"aggregate_tokens_per_s", cell.aggregate_rate()},
                                 {"wall_s", cell.wall_s},
                                 {"drafted", cell.drafted},
                                 {"accepted", cell.accepted},
                                 {"interrupted", cell.interrupted},
                                 {"errors", std::move(errors)}});
  }
  return json::dump(json::Object{{"schema_version", 1},
                                 {"url", run.url},
                                 {"model", run.model},
                                 {"started_at", run.started_at},
                                 {"max_tokens", run.max_tokens},
                                 {"protocol", protocol_notes()},
                                 {"cells", std::move(cells)}});
}

std::string to_html(const BenchRun& run) {
  std::string out = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>bench {}</title>"
      "<style>body{{font:14px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto}}"
      "svg text{{font-size:13px}}pre{{background:#f6f8fa;padding:.6em;overflow:auto}}</style>\n"
      "<h1>{} at {}</h1><p>{}</p><pre>{}</pre>\n",
      run.model, run.model, run.url, run.started_at, protocol_notes());
  out += bars(run, "Decode, tokens per second and stream (median)",
              [](const CellResult& cell) { return cell.decode().median; });
  out += bars(run, "All streams together, tokens per second",
              [](const CellResult& cell) { return cell.aggregate_rate(); });
  out += bars(run, "Time to first token, seconds (median)",
              [](const CellResult& cell) { return cell.ttft().median; });
  return out + "<h2>Rows</h2><pre>" + to_csv(run) + "</pre></html>\n";
}

Result<std::string> compare_runs(const std::string& before_json, const std::string& after_json,
                                 double noise) {
  TANDEM_ASSIGN(const auto before, read_cells(before_json));
  TANDEM_ASSIGN(const auto after, read_cells(after_json));
  std::string out;
  for (const auto& [name, old] : before) {
    const auto now = after.find(name);
    if (now == after.end()) {
      continue;
    }
    const CellFigures& figures = now->second;
    out += fmt::format(
        "{:<28} decode {:.1f} -> {:.1f} tokens/s ({})   first token {:.3f} -> {:.3f} s ({})\n",
        name, old.decode.median, figures.decode.median,
        verdict_word(compare(old.decode, figures.decode, noise), false), old.ttft.median,
        figures.ttft.median, verdict_word(compare(old.ttft, figures.ttft, noise), true));
  }
  if (out.empty()) {
    return invalid_argument("the two reports share no cell");
  }
  return out;
}

}  // namespace tandem::bench
