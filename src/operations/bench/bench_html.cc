#include <algorithm>
#include <map>

#include "operations/bench/bench_report.h"
#include "operations/bench/plots.h"
#include "operations/bench/protocols.h"

namespace tandem::bench {
namespace {

using Figure = Summary (*)(const CellResult&);

Summary aggregate(const CellResult& cell) {
  const double rate = cell.aggregate_rate();
  return {.n = cell.samples.size(), .median = rate, .low = rate, .high = rate, .p95 = rate};
}

Summary decode(const CellResult& cell) {
  return cell.decode();
}

Summary first_token(const CellResult& cell) {
  return cell.ttft();
}

Summary gap(const CellResult& cell) {
  return cell.gap_p99();
}

// Whether the run varies the figure's x at all; a plot with one x per series says nothing.
bool by_streams(const BenchRun& run) {
  return std::any_of(run.cells.begin(), run.cells.end(), [&run](const CellResult& cell) {
    return cell.cell.concurrency != run.cells.front().cell.concurrency;
  });
}

// One series for each content and prefix, and for each value of what is not on the x axis.
Plot make_plot(const BenchRun& run, const char* title, const char* unit, Figure figure,
               bool x_is_streams) {
  std::map<std::string, PlotSeries> series;
  for (const CellResult& cell : run.cells) {
    if (cell.samples.empty() || cell.cell.mixed_prompt_tokens > 0) {
      continue;
    }
    const std::string other = x_is_streams ? fmt::format("{} tokens", cell.cell.context_tokens)
                                           : fmt::format("c={}", cell.cell.concurrency);
    const std::string label = fmt::format("{} {} {}", content_name(cell.cell.content), other,
                                          cell.cell.warm ? "warm" : "cold");
    const double x =
        x_is_streams ? static_cast<double>(cell.cell.concurrency) : cell.prompt_tokens();
    series[label].label = label;
    series[label].points.push_back({x, figure(cell)});
  }
  Plot plot{title, x_is_streams ? "streams at once" : "prompt tokens", unit, {}};
  for (auto& [label, one] : series) {
    std::sort(one.points.begin(), one.points.end(),
              [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
    plot.series.push_back(std::move(one));
  }
  return plot;
}

constexpr std::string_view kStyle = R"(
body{font:14px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#1b1f24}
svg{max-width:100%;height:auto}svg text{font-size:12px}svg .g{stroke:#d0d7de}
polyline,svg line{stroke-width:1.5}figure{margin:1.5em 0}figcaption{font-weight:600}
pre{background:#f6f8fa;padding:.6em;overflow:auto})";

}  // namespace

std::string to_html(const BenchRun& run) {
  const std::string model = escape_markup(run.plan.load.target.model);
  std::string out = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>bench {}</title>"
      "<style>{}</style>\n<h1>{} at {}</h1><p>started {}, {} ({} of {} cells)</p>\n",
      model, kStyle, model, escape_markup(run.url), run.started_at, end_name(run.end),
      run.cells.size(), run.plan.cells.size());
  const bool streams = by_streams(run);
  const auto plot = [&](const char* title, const char* unit, Figure figure) {
    out += to_svg(make_plot(run, title, unit, figure, streams));
  };
  plot("Decode of one stream", "tokens per second", decode);
  plot("All streams together", "tokens per second", aggregate);
  plot("Time to first token", "seconds", first_token);
  plot("p99 gap between arrivals", "seconds", gap);
  out += "<h2>Rows</h2><pre>" + row_heading() + "\n";
  for (const CellResult& cell : run.cells) {
    out += escape_markup(row(cell)) + "\n";
  }
  out += "</pre><h2>How this was measured</h2><pre>" + escape_markup(measuring_rules()) + "</pre>";
  if (const Protocol* protocol = find_protocol(run.plan.protocol)) {
    out += "<h2>Beside published figures</h2><pre>" +
           escape_markup(beside_published(*protocol, run.cells)) + "</pre>";
  }
  return out + "<h2>CSV</h2><pre>" + to_csv(run) + "</pre></html>\n";
}

}  // namespace tandem::bench
