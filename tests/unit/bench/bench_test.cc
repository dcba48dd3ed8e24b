#include <gtest/gtest.h>

#include <set>

#include "foundation/base/random.h"
#include "operations/bench/bench_report.h"

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

TEST(Compare, NeedsSeparateIntervalsAndMoreThanNoise) {
  const Summary old{10, 100, 98, 102, 102};
  EXPECT_EQ(compare(old, {10, 101, 100.5, 101.5, 0}, 0.02), Verdict::kSame);
  EXPECT_EQ(compare(old, {10, 110, 90, 130, 0}, 0.02), Verdict::kSame);
  EXPECT_EQ(compare(old, {10, 110, 108, 112, 0}, 0.02), Verdict::kFaster);
  EXPECT_EQ(compare(old, {10, 90, 88, 92, 0}, 0.02), Verdict::kSlower);
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

BenchRun run_with(double total_s) {
  BenchRun run{.url = "http://x", .model = "m", .started_at = "now", .max_tokens = 11};
  CellResult cell;
  for (int i = 0; i < 8; ++i) {
    cell.samples.push_back(
        {.ttft_s = 0.5, .total_s = total_s, .prompt_tokens = 9, .completion_tokens = 11});
  }
  cell.wall_s = 8;
  run.cells.push_back(cell);
  return run;
}

TEST(Report, RoundTripsThroughJsonAndNamesTheFasterRun) {
  const BenchRun slow = run_with(2.5);
  const BenchRun fast = run_with(1.5);
  EXPECT_DOUBLE_EQ(slow.cells[0].decode().median, 5.0);
  EXPECT_DOUBLE_EQ(slow.cells[0].aggregate_rate(), 11.0);
  const std::string text = *compare_runs(to_json(slow), to_json(fast), 0.02);
  EXPECT_NE(text.find("5.0 -> 10.0 tokens/s (faster)"), std::string::npos) << text;
  EXPECT_NE(text.find("0.500 -> 0.500 s (same)"), std::string::npos) << text;
  EXPECT_FALSE(compare_runs("{}", to_json(fast), 0.02).ok());
  EXPECT_NE(to_csv(slow).find("prose,1,0,false,8,0,9,0.5000"), std::string::npos) << to_csv(slow);
}

}  // namespace
}  // namespace tandem::bench
