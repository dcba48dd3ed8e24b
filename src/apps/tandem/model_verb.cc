#include "apps/tandem/model_verb.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

#include "foundation/json/json.h"
#include "model/v4/inspect.h"
#include "model/v4/synth.h"

namespace tandem::apps {
namespace {

struct ReadFlags {
  std::string path;
  bool json = false;
  int threads = 2;
};

struct SynthFlags {
  std::string out;
  std::string shape = "tiny";
  std::string draft = "mtp";
  std::string tokenizer;
  int layers = 0;
  int experts = 0;
  std::uint64_t seed = 1;
};

// One line on a terminal, a line every ten seconds elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(const char* what) : what_(what), start_(Clock::now()) {}

  ~ProgressLine() {
    if (terminal_ && shown_) {
      std::fprintf(stderr, "\n");
    }
  }

  void show(std::int64_t done, std::int64_t total) {
    constexpr double kQuietSeconds = 10;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (total <= 0 || (!terminal_ && seconds < last_ + kQuietSeconds)) {
      return;
    }
    last_ = seconds;
    shown_ = true;
    const double gigabytes = static_cast<double>(done) / 1e9;
    std::fprintf(stderr, "%s%s %3.0f%%  %.2f of %.2f GB  %.2f GB/s%s", terminal_ ? "\r" : "", what_,
                 100.0 * static_cast<double>(done) / static_cast<double>(total), gigabytes,
                 static_cast<double>(total) / 1e9, seconds > 0 ? gigabytes / seconds : 0,
                 terminal_ ? "  " : "\n");
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const char* what_;
  Clock::time_point start_;
  double last_ = 0;
  bool shown_ = false;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

int print_report(const v4::ModelReport& report, bool as_json) {
  const std::string text =
      as_json ? json::dump(v4::report_json(report)) + "\n" : v4::report_text(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.problems.empty() ? 0 : 1;
}

int run_check(const ReadFlags& flags) {
  v4::ModelReport report;
  {
    ProgressLine line("check");
    report = v4::check_model(flags.path, flags.threads,
                             [&line](const checkpoint::LoadProgress& progress) {
                               line.show(progress.done_bytes, progress.total_bytes);
                             });
  }
  return print_report(report, flags.json);
}

v4::DraftKind parse_draft(const std::string& word) {
  return word == "mtp"      ? v4::DraftKind::kMtp
         : word == "dspark" ? v4::DraftKind::kDspark
                            : v4::DraftKind::kNone;
}

int run_synth(const SynthFlags& flags) {
  const v4::DraftKind draft = parse_draft(flags.draft);
  v4::SynthOptions options;
  if (flags.shape == "flash") {
    options.config = v4::flash_config(draft, flags.layers > 0 ? flags.layers : 43);
  } else {
    options.config = v4::tiny_config(draft, flags.layers > 0 ? flags.layers : 7);
  }
  if (flags.experts > 0) {
    options.config.n_experts = flags.experts;
  }
  options.seed = flags.seed;
  options.tokenizer = flags.tokenizer;
  Status status;
  {
    ProgressLine line("synth");
    options.progress = [&line](std::int64_t done, std::int64_t total) { line.show(done, total); };
    status = v4::write_synthetic_model(flags.out, options);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "tandem model synth: %s\n", status.message().c_str());
    return 1;
  }
  std::printf("wrote %s; look at it with: tandem model inspect %s\n", flags.out.c_str(),
              flags.out.c_str());
  return 0;
}

void add_read_options(CLI::App& verb, ReadFlags& flags) {
  verb.add_option("path", flags.path,
                  "checkpoint folder, or a Hugging Face cache folder of a model")
      ->required();
  verb.add_flag("--json", flags.json, "print JSON");
}

void add_synth(CLI::App& model, int& exit_code) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App* synth =
      model.add_subcommand("synth", "write a random checkpoint in the official format");
  synth->add_option("out", flags->out, "folder to create")->required();
  synth->add_option("--shape", flags->shape, "tiny, or flash for the real widths")
      ->check(CLI::IsMember({"tiny", "flash"}))
      ->capture_default_str();
  synth->add_option("--layers", flags->layers, "number of layers; default: all of the shape")
      ->check(CLI::Range(1, 4096));
  synth->add_option("--experts", flags->experts, "routed experts of a layer")
      ->check(CLI::Range(1, 65536));
  synth->add_option("--draft", flags->draft, "none, mtp (preview) or dspark (0731)")
      ->check(CLI::IsMember({"none", "mtp", "dspark"}))
      ->capture_default_str();
  synth->add_option("--seed", flags->seed, "the same seed gives the same bytes")
      ->capture_default_str();
  synth->add_option("--tokenizer", flags->tokenizer, "tokenizer.json to copy");
  synth->callback([flags, &exit_code] { exit_code = run_synth(*flags); });
}

}  // namespace

void add_model_verb(CLI::App& app, int& exit_code) {
  CLI::App* model = app.add_subcommand("model", "look at checkpoints, write synthetic ones");
  model->require_subcommand(1);
  auto flags = std::make_shared<ReadFlags>();
  CLI::App* inspect =
      model->add_subcommand("inspect", "config, tensors, bytes per rank; reads headers only");
  add_read_options(*inspect, *flags);
  inspect->callback([flags, &exit_code] {
    exit_code = print_report(v4::inspect_model(flags->path), flags->json);
  });
  CLI::App* check = model->add_subcommand("check", "inspect, and read every byte of every shard");
  add_read_options(*check, *flags);
  check->add_option("--threads", flags->threads, "shards read at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  check->callback([flags, &exit_code] { exit_code = run_check(*flags); });
  add_synth(*model, exit_code);
}

}  // namespace tandem::apps
