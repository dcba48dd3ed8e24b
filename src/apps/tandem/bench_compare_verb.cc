#include "apps/tandem/bench_compare_verb.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "operations/bench/bench_compare.h"

namespace tandem::apps {
namespace {

struct CompareFlags {
  std::string before;
  std::string after;
  double noise = 0.02;
  bool strict = false;
};

int fail(const Status& status) {
  std::fprintf(stderr, "tandem bench compare: %s\n", status.message().c_str());
  return 2;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return not_found("cannot read {}", path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int run_compare(const CompareFlags& flags) {
  const auto before = read_file(flags.before);
  const auto after = read_file(flags.after);
  if (!before.ok() || !after.ok()) {
    return fail((before.ok() ? after : before).status());
  }
  const auto comparison = bench::compare_runs(*before, *after, flags.noise);
  if (!comparison.ok()) {
    return fail(comparison.status());
  }
  std::printf("%s", comparison->text.c_str());
  return flags.strict && comparison->worse > 0 ? 1 : 0;
}

}  // namespace

void add_bench_compare_verb(CLI::App& parent, int& exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* verb = parent.add_subcommand("compare", "compare two JSON reports, cell by cell");
  verb->add_option("before", flags->before, "report of --json")->required();
  verb->add_option("after", flags->after, "report of --json")->required();
  verb->add_option("--noise", flags->noise, "share of change that counts as noise")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_flag("--strict", flags->strict, "exit 1 if any figure is worse");
  verb->callback([flags, &exit_code] { exit_code = run_compare(*flags); });
}

}  // namespace tandem::apps
