#include "operations/bench/protocols.h"

#include <algorithm>

namespace tandem::bench {
namespace {

using Figures = std::vector<PublishedFigure>;
using enum ContentClass;

// MiaAI-Lab's two-Spark recipe: matrix of 14 August 2026. Decode is the median stream.
Protocol recipe_128() {
  const Figures figures = {
      {kWordList, 256, 1, 82.6, 0.27, 83},    {kWordList, 256, 2, 56.9, 0.40, 101},
      {kWordList, 256, 4, 54.3, 0.84, 174},   {kWordList, 256, 6, 35.9, 1.02, 162},
      {kWordList, 2048, 1, 64.6, 1.20, 65},   {kWordList, 2048, 2, 50.1, 1.85, 68},
      {kWordList, 2048, 4, 29.6, 3.12, 80},   {kWordList, 2048, 6, 20.8, 4.41, 78},
      {kWordList, 8192, 1, 65.9, 4.62, 66},   {kWordList, 8192, 2, 44.2, 6.99, 38},
      {kWordList, 8192, 4, 16.0, 11.8, 31},   {kWordList, 8192, 6, 10.2, 16.6, 29},
      {kWordList, 32768, 1, 62.0, 18.5, 62},  {kWordList, 32768, 2, 39.7, 28.0, 12},
      {kWordList, 32768, 4, 8.7, 46.7, 8.7},  {kWordList, 32768, 6, 8.2, 65.8, 7.9},
      {kWordList, 131072, 1, 74.9, 80.4, 75}, {kWordList, 131072, 2, 36.0, 120, 3.1},
      {kWordList, 131072, 4, 8.4, 200, 2.1},  {kWordList, 131072, 6, 8.6, 282, 1.9}};
  return {"recipe-128",
          "MiaAI-Lab two-Spark recipe, vLLM 0.25.2, k=5, two GB10; 14 August 2026",
          {.max_tokens = 128, .temperature = 0, .natural = false},
          {"theirs is one wave of requests a cell; ours repeats the wave --requests times",
           "their aggregate counts from the first answer token of the wave; ours is all tokens by "
           "wall time, prompts read included",
           "a list of numbered words after one repeated phrase: nearly every draft is accepted, so "
           "these figures say nothing about prose or code"},
          figures};
}

// The same recipe on 1 August 2026: answers that end by themselves, sampled.
Protocol recipe_natural() {
  const Figures figures = {
      {kWordList, 256, 1, 75.4, 0.63, 69.1},    {kWordList, 256, 2, 58.3, 0.81, 104.9},
      {kWordList, 256, 4, 46.8, 1.26, 164.5},   {kWordList, 256, 6, 36.9, 1.42, 191.2},
      {kWordList, 2048, 1, 68.8, 0.81, 62.0},   {kWordList, 2048, 2, 57.0, 1.11, 97.6},
      {kWordList, 2048, 4, 44.0, 1.38, 154.7},  {kWordList, 2048, 6, 34.7, 6.06, 143.7},
      {kWordList, 8192, 1, 73.9, 4.80, 43.7},   {kWordList, 8192, 2, 49.8, 7.51, 56.2},
      {kWordList, 8192, 4, 37.4, 14.50, 72.3},  {kWordList, 8192, 6, 23.6, 18.38, 73.1},
      {kWordList, 32768, 1, 64.0, 22.96, 16.6}, {kWordList, 32768, 2, 41.5, 26.82, 24.8},
      {kWordList, 32768, 4, 17.4, 44.85, 26.7}, {kWordList, 32768, 6, 10.8, 60.75, 27.9},
      {kWordList, 131072, 1, 65.2, 78.75, 5.9}, {kWordList, 131072, 2, 30.9, 111.17, 6.6}};
  return {"recipe-natural",
          "MiaAI-Lab two-Spark recipe, vLLM 0.25.2, k=5, two GB10; 1 August 2026",
          {.max_tokens = 4096, .temperature = 0.6, .natural = true},
          {"theirs samples with top_p 0.95; ours with the server's default top_p",
           "theirs leaves thinking to the server's default; ours is always off",
           "answers end by themselves, theirs after about 512 tokens: compare the rates only if "
           "ours are as long"},
          figures};
}

// Rates by kind of content, single stream, short prompt.
Protocol by_content() {
  const Figures figures = {{kProse, 256, 1, 40.8, 0, 0},
                           {kChat, 256, 1, 43.8, 0, 0},
                           {kCode, 256, 1, 62.1, 0, 0},
                           {kJson, 256, 1, 73.6, 0, 0}};
  return {
      "content",
      "dgpp d8b6868, adaptive drafts up to 5, two GB10; 6 October 2026",
      {.max_tokens = 400, .temperature = 0, .natural = false},
      {"their prompts are not published: only the kind of content is the same",
       "theirs are greedy with thinking off, as ours; the length of their answers is not stated"},
      figures};
}

// Sustained load with unique prompts at temperature 1.
Protocol sustained() {
  const Figures figures = {{kProse, 2048, 1, 62.5, 0, 62.5}, {kProse, 2048, 2, 0, 0, 75.8},
                           {kProse, 2048, 4, 0, 0, 106},     {kProse, 2048, 8, 0, 0, 144},
                           {kProse, 2048, 16, 0, 0, 201},    {kProse, 2048, 32, 0, 0, 275},
                           {kProse, 16384, 1, 58, 0, 58},    {kProse, 16384, 2, 0, 0, 78},
                           {kProse, 16384, 4, 0, 0, 104},    {kProse, 16384, 8, 0, 0, 163},
                           {kProse, 16384, 16, 0, 0, 203},   {kProse, 16384, 32, 0, 0, 307},
                           {kProse, 131072, 1, 53, 0, 53},   {kProse, 131072, 2, 0, 0, 74},
                           {kProse, 131072, 4, 0, 0, 86},    {kProse, 131072, 8, 0, 0, 136}};
  return {"sustained",
          "the ring package, vLLM with DSpark, two GB10, temperature 1; 23 August 2026",
          {.max_tokens = 512, .temperature = 1, .natural = false},
          {"their aggregate is decode only, in the steady part of the run; ours is all tokens by "
           "wall time, prompts read included, so ours is the lower bound",
           "the class of their prompts is not stated; prose is the cautious choice",
           "temperature 1 spreads their cells by 11 to 17 tokens/s (one standard deviation)"},
          figures};
}

std::string one_figure(const char* what, double ours, double theirs, bool less_is_better) {
  if (theirs == 0 || ours == 0) {
    return "";
  }
  return fmt::format("  {} {:.3g} beside {:.3g} ({:.2f}x{})", what, ours, theirs, ours / theirs,
                     less_is_better ? ", less is better" : "");
}

}  // namespace

std::vector<Cell> Protocol::cells() const {
  std::vector<Cell> out;
  for (const PublishedFigure& figure : figures) {
    out.push_back({.content = figure.content,
                   .concurrency = figure.concurrency,
                   .context_tokens = figure.context_tokens});
  }
  return out;
}

const std::vector<Protocol>& published_protocols() {
  static const std::vector<Protocol> all = {recipe_128(), recipe_natural(), by_content(),
                                            sustained()};
  return all;
}

const Protocol* find_protocol(std::string_view name) {
  for (const Protocol& protocol : published_protocols()) {
    if (protocol.name == name) {
      return &protocol;
    }
  }
  return nullptr;
}

std::string measuring_rules() {
  return "Thinking off. Tokens come from the server's usage, never from chunks; a prompt's length "
         "is what usage says.\n"
         "Cold prompts are unique in the run and the seed; warm ones are one prompt again.\n"
         "tokens/s of a stream excludes the first token; 'all streams' is every completion token "
         "by wall time.\n"
         "A gap is the time between two network reads with text; p99 is over one answer.\n"
         "[low, high] is the 95% interval of the median from order statistics (no assumption "
         "about the noise);\n"
         "with fewer than 6 values it is their whole range. Requests of one cell share a server, "
         "so they are not independent.\n"
         "Drafts accepted: the server's own counters before and after the cell.\n";
}

std::string beside_published(const Protocol& protocol, const std::vector<CellResult>& cells) {
  std::string out = fmt::format("Beside {}:\n", protocol.title);
  for (const std::string& difference : protocol.differences) {
    out += "  differs: " + difference + "\n";
  }
  for (const CellResult& result : cells) {
    const auto same = [&result](const PublishedFigure& figure) {
      return figure.content == result.cell.content && !result.cell.warm &&
             result.cell.mixed_prompt_tokens == 0 &&
             figure.concurrency == result.cell.concurrency &&
             figure.context_tokens == result.cell.context_tokens;
    };
    const auto found = std::find_if(protocol.figures.begin(), protocol.figures.end(), same);
    if (found == protocol.figures.end() || result.samples.empty()) {
      continue;
    }
    out += fmt::format("  {} c={} {} tokens:", content_name(found->content), found->concurrency,
                       found->context_tokens);
    out += one_figure("decode", result.decode().median, found->decode, false);
    out += one_figure("first token", result.ttft().median, found->ttft_s, true);
    out += one_figure("all streams", result.aggregate_rate(), found->aggregate, false) + "\n";
  }
  return out;
}

}  // namespace tandem::bench
