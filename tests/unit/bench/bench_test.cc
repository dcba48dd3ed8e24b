#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "foundation/base/random.h"
#include "operations/bench/bench_compare.h"
#include "operations/bench/bench_report.h"
#include "operations/bench/metrics.h"
#include "operations/bench/protocols.h"

namespace tandem::bench {
namespace {

TEST(Summarise, GivesMedianAndTheOrderStatisticInterval) {
  const Summary one = summarise({3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.low, 3);
  std::vector<double> values;
  for (int i = 1; i <= 10; ++i) {
    values.push_back(i);
  }
  // binomial(10, 1/2): P(X < 2) = 1.07%, P(X < 3) = 5.5%, so the interval is [x2, x9].
  const Summary ten = summarise(values);
  EXPECT_EQ(ten.median, 5.5);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
}

TEST(Summarise, IntervalHoldsTheTrueMedianAboutAsOftenAsItSays) {
  Random random(5);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 15; ++i) {
      const double u = random.uniform();
      values.push_back(u * u * u);  // skewed; true median 1/8
    }
    const Summary summary = summarise(values);
    held += summary.low <= 0.125 && 0.125 <= summary.high ? 1 : 0;
  }
  EXPECT_GE(held, kTrials * 95 / 100 - 20);
}

TEST(Quantile, IsTheSmallestValueThatEnoughDoNotExceed) {
  EXPECT_EQ(quantile({}, 0.99), 0);
  EXPECT_EQ(quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(quantile({3, 1, 2}, 0), 1);
  std::vector<double> values;
  for (int i = 1; i <= 200; ++i) {
    values.push_back(i);
  }
  EXPECT_EQ(quantile(values, 0.99), 198);
  EXPECT_EQ(quantile(values, 0.5), 100);
}

TEST(Compare, NeedsSeparateIntervalsMoreThanNoiseAndEnoughValues) {
  const Summary old{10, 100, 98, 102, 102};
  EXPECT_EQ(compare(old, {10, 101, 100.5, 101.5, 0}, 0.02), Verdict::kSame);
  EXPECT_EQ(compare(old, {10, 110, 90, 130, 0}, 0.02), Verdict::kSame);
  EXPECT_EQ(compare(old, {10, 110, 108, 112, 0}, 0.02), Verdict::kMore);
  EXPECT_EQ(compare(old, {10, 90, 88, 92, 0}, 0.02), Verdict::kLess);
  EXPECT_EQ(compare(old, {3, 90, 88, 92, 0}, 0.02), Verdict::kTooFew);
}

TEST(PromptScale, GivesTheWordsOfALengthAndLearnsFromACount) {
  PromptScale scale{.fixed = 20, .per_word = 1.5};
  EXPECT_EQ(scale.words_for(20), 0);
  EXPECT_EQ(scale.words_for(5), 0);
  EXPECT_EQ(scale.words_for(320), 200);
  scale.correct(1000, 1020);  // one token a word
  EXPECT_EQ(scale.words_for(320), 300);
  scale.correct(10, 2000);  // too short a prompt to learn from
  EXPECT_EQ(scale.words_for(320), 300);
}

TEST(MetricSum, AddsLabelsAndKnowsWhatIsMissing) {
  const std::string text =
      "# HELP a_total x\na_total{k=\"a 9\"} 2\na_total{k=\"b\"} 3.5\na_total_more 7\nb 1\n";
  EXPECT_EQ(metric_sum(text, "a_total"), 5.5);
  EXPECT_EQ(metric_sum(text, "b"), 1);
  EXPECT_FALSE(metric_sum(text, "a").has_value());
}

TEST(Prompts, AreUniqueAndReproducible) {
  std::set<std::string> seen;
  for (const ContentClass content : all_contents()) {
    EXPECT_EQ(parse_content(content_name(content)), content);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const std::string prompt = make_prompt(content, seed, 100);
      EXPECT_EQ(prompt, make_prompt(content, seed, 100));
      EXPECT_TRUE(seen.insert(prompt.substr(0, 24) + std::string(content_name(content))).second);
    }
  }
  EXPECT_FALSE(parse_content("poems").has_value());
}

std::size_t count_words(const std::string& text) {
  std::istringstream in(text);
  return static_cast<std::size_t>(
      std::distance(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()));
}

TEST(Prompts, HaveExactlyTheStatedWordsOfFiller) {
  for (const ContentClass content : all_contents()) {
    const std::size_t bare = count_words(make_prompt(content, 7, 0));
    for (const std::int64_t words : {1, 2, 13, 400}) {
      EXPECT_NEAR(static_cast<double>(count_words(make_prompt(content, 7, words)) - bare),
                  static_cast<double>(words), 2)
          << content_name(content);
    }
  }
}

BenchRun run_with(double total_s, std::size_t requests = 8) {
  BenchRun run;
  run.url = "http://x";
  CellResult cell;
  for (std::size_t i = 0; i < requests; ++i) {
    cell.samples.push_back({.ttft_s = 0.5,
                            .total_s = total_s,
                            .prompt_tokens = 9,
                            .completion_tokens = 11,
                            .arrivals = 11,
                            .gap_median_s = (total_s - 0.5) / 10,
                            .gap_p99_s = (total_s - 0.5) / 5});
  }
  cell.wall_s = 8;
  run.cells.push_back(cell);
  return run;
}

TEST(Report, RoundTripsThroughJsonAndNamesTheBetterRun) {
  const BenchRun slow = run_with(2.5);
  const BenchRun fast = run_with(1.5);
  EXPECT_DOUBLE_EQ(slow.cells[0].decode().median, 5.0);
  EXPECT_DOUBLE_EQ(slow.cells[0].aggregate_rate(), 11.0);
  const Comparison better = *compare_runs(to_json(slow), to_json(fast), 0.02);
  EXPECT_EQ(better.better, 2);
  EXPECT_EQ(better.worse, 0);
  EXPECT_NE(better.text.find("verdict: better (2 better, 0 worse, 1 same"), std::string::npos)
      << better.text;
  EXPECT_EQ(compare_runs(to_json(fast), to_json(slow), 0.02)->worse, 2);
  EXPECT_NE(
      compare_runs(to_json(run_with(2.5, 3)), to_json(fast), 0.02)->text.find("verdict: undecided"),
      std::string::npos);
  EXPECT_FALSE(compare_runs("{}", to_json(fast), 0.02).ok());
  EXPECT_NE(to_csv(slow).find("prose,1,0,false,0,8,0,9,0,0.5000"), std::string::npos)
      << to_csv(slow);
}

TEST(Report, NamesSettingsAndCellsThatDiffer) {
  BenchRun other = run_with(1.5);
  other.plan.load.shape.max_tokens = 7;
  CellResult extra = other.cells[0];
  extra.cell.concurrency = 9;
  other.cells.push_back(extra);
  const std::string text = compare_runs(to_json(run_with(1.5)), to_json(other), 0.02)->text;
  EXPECT_NE(text.find("note: max_tokens differs: 128 and 7"), std::string::npos) << text;
  EXPECT_NE(text.find("note: only the second report has prose c=9"), std::string::npos) << text;
}

TEST(Report, PageIsWholeAndEscapesTheModelName) {
  BenchRun run = run_with(1.5);
  run.plan.load.target.model = "<b>&";
  const std::string page = to_html(run);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;&amp;"), std::string::npos);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_NE(page.find("<polyline"), std::string::npos);
}

TEST(Protocols, PutFiguresBesidePublishedOnesWithTheDifferences) {
  for (const Protocol& protocol : published_protocols()) {
    EXPECT_EQ(find_protocol(protocol.name), &protocol);
    EXPECT_FALSE(protocol.differences.empty()) << protocol.name;
    EXPECT_EQ(protocol.cells().size(), protocol.figures.size());
  }
  const Protocol& recipe = *find_protocol("recipe-128");
  CellResult cell = run_with(1.5).cells[0];
  cell.cell = recipe.cells()[0];
  const std::string text = beside_published(recipe, {cell});
  EXPECT_NE(text.find("wordlist c=1 256 tokens:  decode 10 beside 82.6 (0.12x)"), std::string::npos)
      << text;
  cell.cell.warm = true;  // theirs is cold: it does not correspond
  EXPECT_EQ(beside_published(recipe, {cell}).find("beside 82.6"), std::string::npos);
}

}  // namespace
}  // namespace tandem::bench
