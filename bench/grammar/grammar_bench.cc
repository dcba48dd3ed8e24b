// Structured output on the MaskBench sample with a real 128K vocabulary, on one core:
//   grammar_bench --data SAMPLE.tar.zst --tokenizer tokenizer.json [--only NAME] [--ratchet OUT]
//                 [--list CATEGORY] [--against RATCHET] [--step N --first K]
// --against fails if a schema's category is worse than the file says.
// --smoke judges three small schemas with a built-in vocabulary and prints nothing else.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "bench/grammar/maskbench.h"

namespace tandem::grammar {
namespace {

void print_percentiles(const char* name, std::vector<float> values) {
  if (values.empty()) {
    return;
  }
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const float v : values) {
    sum += v;
  }
  std::printf("%s us: n %zu avg %.1f", name, values.size(),
              sum / static_cast<double>(values.size()));
  for (const double p : {0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999}) {
    const auto at = static_cast<std::size_t>(p * static_cast<double>(values.size() - 1));
    std::printf("  p%g %.1f", p * 100, static_cast<double>(values[at]));
  }
  std::printf("  max %.1f\n", static_cast<double>(values.back()));
}

int smoke() {
  const VocabularyPtr vocabulary = small_vocabulary();
  MaskbenchCase test;
  test.schema = *json::parse(
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]})");
  test.instances = {{true, *json::parse(R"({"a":3})")},
                    {false, *json::parse(R"({"a":2})")},
                    {false, *json::parse("{}")}};
  const Verdict verdict = judge(vocabulary, test);
  std::printf("smoke: %s\n", verdict.category.c_str());
  return verdict.category == "pass" ? 0 : 1;
}

// Higher is better: a refusal up front is honest, a false accept is a lie.
int rank_of(std::string_view category) {
  return category == "pass" ? 3 : category == "refused" ? 2 : category == "false_reject" ? 1 : 0;
}

// Prints every schema that got worse, and says which new ones the file lacks. Number of both.
int compare(const json::Object& found, const std::string& path) {
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto expected = json::parse(text);
  if (!expected.ok() || !expected->is_object()) {
    std::printf("%s cannot be read\n", path.c_str());
    return 1;
  }
  int worse = 0;
  for (const auto& member : found) {
    const std::string name(member.key());
    const std::string category(member.value().get_string());
    const json::Value* before = json::find(*expected, name);
    const std::string was = before == nullptr ? "(not listed)" : std::string(before->get_string());
    if (before == nullptr || rank_of(category) < rank_of(was)) {
      std::printf("worse: %s is %s, was %s\n", name.c_str(), category.c_str(), was.c_str());
      ++worse;
    }
  }
  if (found.size() < expected->get_object().size()) {
    std::printf("worse: %zu schemas are listed, %zu were judged\n", expected->get_object().size(),
                found.size());
    ++worse;
  }
  return worse;
}

int run(const std::map<std::string, std::string>& flags) {
  const auto flag = [&](const char* name) {
    const auto it = flags.find(name);
    return it == flags.end() ? std::string() : it->second;
  };
  Result<VocabularyPtr> vocabulary = read_vocabulary(flag("--tokenizer"), 129280);
  Result<std::vector<MaskbenchCase>> cases = read_maskbench(flag("--data"));
  if (!vocabulary.ok() || !cases.ok()) {
    const Status& wrong = vocabulary.ok() ? cases.status() : vocabulary.status();
    std::fprintf(stderr, "%s\n", wrong.to_string().c_str());
    return 2;
  }
  std::map<std::string, int> counts;
  std::vector<float> masks;
  std::vector<float> compiles;
  json::Object ratchet;
  // Every Nth schema, to compare with a slow peer (peer.mjs).
  const std::size_t step = flag("--step").empty() ? 1 : std::stoul(flag("--step"));
  const std::size_t first = flag("--first").empty() ? 0 : std::stoul(flag("--first"));
  for (std::size_t i = first; i < cases->size(); i += step) {
    const MaskbenchCase& test = (*cases)[i];
    if (!flag("--only").empty() && test.name != flag("--only")) {
      continue;
    }
    const Verdict verdict = judge(*vocabulary, test);
    ++counts[verdict.category];
    ratchet[test.name] = verdict.category;
    masks.insert(masks.end(), verdict.mask_us.begin(), verdict.mask_us.end());
    compiles.push_back(static_cast<float>(verdict.compile_us));
    if (flag("--list") == verdict.category || !flag("--only").empty()) {
      std::printf("%s %s: %s\n", verdict.category.c_str(), test.name.c_str(),
                  verdict.detail.c_str());
    }
    const float slowest = verdict.mask_us.empty()
                              ? 0.0F
                              : *std::max_element(verdict.mask_us.begin(), verdict.mask_us.end());
    if (flag("--list") == "slow" && (slowest > 1000 || verdict.compile_us > 10000)) {
      std::printf("slow %s: compile %.0f us, slowest mask %.0f us\n", test.name.c_str(),
                  verdict.compile_us, static_cast<double>(slowest));
    }
  }
  for (const auto& [category, count] : counts) {
    std::printf("%s %d\n", category.c_str(), count);
  }
  print_percentiles("mask", std::move(masks));
  print_percentiles("compile", std::move(compiles));
  if (!flag("--ratchet").empty()) {
    std::ofstream out(flag("--ratchet"));
    out << "{\n";
    std::size_t left = ratchet.size();
    for (const auto& entry : ratchet) {
      out << json::dump(json::Value(entry.key())) << ": " << json::dump(entry.value())
          << (--left > 0 ? ",\n" : "\n");
    }
    out << "}\n";
  }
  if (!flag("--against").empty()) {
    return compare(ratchet, flag("--against")) == 0 ? 0 : 1;
  }
  return counts["false_accept"] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::grammar

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--smoke") {
      return tandem::grammar::smoke();
    }
    if (i + 1 < argc) {
      flags[argv[i]] = argv[i + 1];
      ++i;
    }
  }
  return tandem::grammar::run(flags);
}
