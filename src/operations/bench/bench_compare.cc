#include "operations/bench/bench_compare.h"

#include <array>
#include <map>

#include "foundation/json/json.h"
#include "operations/bench/statistics.h"

namespace tandem::bench {
namespace {

struct FigureKind {
  const char* key;   // in a cell of the report; with a dot: in a member object
  const char* word;  // for people
  bool less_is_better;
};

constexpr std::array<FigureKind, 4> kFigures = {{{"decode_tokens_per_s", "decode tokens/s", false},
                                                 {"ttft_s", "first token s", true},
                                                 {"gap_p99_s", "p99 gap s", true},
                                                 {"mixed.kept_share", "share kept", false}}};

using CellMap = std::map<std::string, json::Value>;

Summary read_summary(const json::Value& value) {
  const auto number = [&value](std::string_view key) {
    const json::Value* found = json::find(value, key);
    return found != nullptr && found->is_number() ? found->to_number<double>() : 0.0;
  };
  return {.n = static_cast<std::size_t>(number("n")),
          .median = number("median"),
          .low = number("low"),
          .high = number("high"),
          .p95 = number("p95")};
}

// Nothing (n = 0) if the cell has no such figure.
Summary figure_of(const json::Value& cell, std::string_view key) {
  const std::size_t dot = key.find('.');
  const json::Value* place = &cell;
  if (dot != std::string_view::npos) {
    place = json::find(cell, key.substr(0, dot));
    key = key.substr(dot + 1);
  }
  const json::Value* found = place == nullptr ? nullptr : json::find(*place, key);
  return found == nullptr ? Summary{} : read_summary(*found);
}

Result<CellMap> read_cells(const json::Value& report, const char* which) {
  const json::Value* cells = json::find(report, "cells");
  if (cells == nullptr || !cells->is_array()) {
    return invalid_argument("the {} file is no report of tandem bench --json: no list 'cells'",
                            which);
  }
  CellMap out;
  for (const json::Value& cell : cells->get_array()) {
    const json::Value* name = json::find(cell, "name");
    if (name == nullptr || !name->is_string()) {
      return invalid_argument("the {} file is no report of tandem bench --json: a cell has no name",
                              which);
    }
    out.emplace(std::string(name->get_string()), cell);
  }
  return out;
}

// Settings under which the figures of two runs do not mean the same.
std::string differing_settings(const json::Value& before, const json::Value& after) {
  std::string out;
  for (const char* key : {"model", "max_tokens", "temperature", "natural", "end"}) {
    const json::Value* a = json::find(before, key);
    const json::Value* b = json::find(after, key);
    const std::string old_text = a == nullptr ? "nothing" : json::dump(*a);
    const std::string new_text = b == nullptr ? "nothing" : json::dump(*b);
    if (old_text != new_text) {
      out += fmt::format("note: {} differs: {} and {}\n", key, old_text, new_text);
    }
  }
  return out;
}

class Comparer {
 public:
  explicit Comparer(double noise) : noise_(noise) {}

  void compare_cell(const std::string& name, const json::Value& before, const json::Value& after) {
    for (const FigureKind& kind : kFigures) {
      const Summary a = figure_of(before, kind.key);
      const Summary b = figure_of(after, kind.key);
      if (a.n == 0 || b.n == 0 || (a.median == 0 && b.median == 0)) {
        continue;
      }
      ++figures_;
      out_.text += fmt::format(
          "{:<34} {:<16} {:.4g} [{:.4g}, {:.4g}] -> {:.4g} [{:.4g}, {:.4g}]  {}\n", name, kind.word,
          a.median, a.low, a.high, b.median, b.low, b.high, judge(kind, a, b));
    }
  }

  Comparison finish() {
    const int same = figures_ - out_.better - out_.worse - undecided_;
    std::string verdict = "no difference beyond noise";
    if (out_.better > 0 && out_.worse > 0) {
      verdict = "mixed";
    } else if (out_.better > 0) {
      verdict = "better";
    } else if (out_.worse > 0) {
      verdict = "worse";
    } else if (undecided_ == figures_) {
      verdict = "undecided";
    }
    out_.text += fmt::format(
        "verdict: {} ({} better, {} worse, {} same, {} undecided; better or worse needs intervals "
        "that do not overlap, medians more than {:g}% apart, and {} values on each side)\n",
        verdict, out_.better, out_.worse, same, undecided_, 100 * noise_, kFewestForVerdict);
    return out_;
  }

  void note(const std::string& line) { out_.text += line; }

 private:
  const char* judge(const FigureKind& kind, const Summary& a, const Summary& b) {
    switch (compare(a, b, noise_)) {
      case Verdict::kTooFew:
        ++undecided_;
        return "undecided: too few values";
      case Verdict::kSame:
        return "same";
      case Verdict::kMore:
        return count(!kind.less_is_better);
      case Verdict::kLess:
        return count(kind.less_is_better);
    }
    return "";
  }

  const char* count(bool is_better) {
    ++(is_better ? out_.better : out_.worse);
    return is_better ? "better" : "worse";
  }

  double noise_;
  int figures_ = 0;
  int undecided_ = 0;
  Comparison out_;
};

}  // namespace

Result<Comparison> compare_runs(const std::string& before_json, const std::string& after_json,
                                double noise) {
  TANDEM_ASSIGN(const json::Value before_report, json::parse(before_json));
  TANDEM_ASSIGN(const json::Value after_report, json::parse(after_json));
  TANDEM_ASSIGN(const CellMap before, read_cells(before_report, "first"));
  TANDEM_ASSIGN(const CellMap after, read_cells(after_report, "second"));
  Comparer comparer(noise);
  comparer.note(differing_settings(before_report, after_report));
  int shared = 0;
  for (const auto& [name, cell] : before) {
    const auto now = after.find(name);
    if (now == after.end()) {
      comparer.note("note: only the first report has " + name + "\n");
      continue;
    }
    ++shared;
    comparer.compare_cell(name, cell, now->second);
  }
  for (const auto& [name, cell] : after) {
    if (before.count(name) == 0) {
      comparer.note("note: only the second report has " + name + "\n");
    }
  }
  if (shared == 0) {
    return invalid_argument("the two reports share no cell");
  }
  return comparer.finish();
}

}  // namespace tandem::bench
