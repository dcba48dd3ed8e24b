#include "apps/tandem/eval_verb.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>

#include "operations/verify/evaluate.h"

namespace tandem::apps {
namespace {

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  if (interrupted.exchange(true)) {
    _exit(130);
  }
}

struct EvalFlags {
  std::string url;
  std::string json_file;
  double at_least = 0;
  verify::EvalOptions options;
};

void show(const verify::EvalScore& score) {
  if (!score.skipped.empty()) {
    std::printf("%-22s skipped: %s\n", score.name.c_str(), score.skipped.c_str());
    return;
  }
  if (!score.failed.empty()) {
    std::printf("%-22s failed: %s\n", score.name.c_str(), score.failed.c_str());
    return;
  }
  std::printf("%-22s %3d of %3d right (%.0f%%) %s\n", score.name.c_str(), score.right, score.total,
              score.total > 0 ? 100.0 * score.right / score.total : 0.0,
              score.cells.empty() ? "" : json::dump(score.cells).c_str());
  std::fflush(stdout);
}

int run_eval(const EvalFlags& flags) {
  const auto url = net::parse_url(flags.url);
  if (!url.ok()) {
    std::fprintf(stderr, "tandem eval: %s\n", url.status().message().c_str());
    return 2;
  }
  verify::EvalOptions options = flags.options;
  options.url = *url;
  if (options.url.prefix == "/v1") {
    options.url.prefix.clear();
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const auto report = verify::run_evaluation(options, show, interrupted);
  if (!report.ok()) {
    std::fprintf(stderr, "tandem eval: %s\n", report.status().message().c_str());
    if (interrupted.load()) {
      return 130;
    }
    switch (report.status().code()) {
      case StatusCode::kUnavailable:
        return 3;
      case StatusCode::kInvalidArgument:
        return 2;
      default:
        return 1;
    }
  }
  if (!flags.json_file.empty()) {
    std::ofstream file(flags.json_file);
    file << verify::eval_to_json(options, *report) << "\n";
    file.close();
    if (!file) {
      std::fprintf(stderr, "tandem eval: cannot write %s\n", flags.json_file.c_str());
      return 1;
    }
  }
  if (interrupted.load()) {
    return 130;
  }
  for (const verify::EvalScore& score : report->scores) {
    if (!score.failed.empty()) {
      return 1;
    }
    if (score.skipped.empty() && score.right < flags.at_least * score.total) {
      return 1;
    }
  }
  return 0;
}

}  // namespace

void add_eval_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* verb = app.add_subcommand("eval", "grade a running server's model on small tasks");
  verb->add_option("url", flags->url, "server address")->required();
  verb->add_option("--model", flags->options.model, "model name; default: the server's first");
  verb->add_option("--api-key", flags->options.api_key, "key, if the server wants one");
  verb->add_option("--only", flags->options.only, "tasks whose name starts with this");
  verb->add_option("--questions", flags->options.questions, "questions per task")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb->add_option("--context", flags->options.context_tokens, "lengths of the context tasks")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--seed", flags->options.seed, "seed of the questions")->capture_default_str();
  verb->add_option("--vectors", flags->options.vectors_folder,
                   "folder with recorded official answers");
  verb->add_flag("--same-checkpoint", flags->options.same_checkpoint,
                 "the vectors were recorded from the checkpoint that this server runs");
  verb->add_option("--at-least", flags->at_least,
                   "exit 1 if a task's share of right answers is lower")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--json", flags->json_file, "write scores and misses");
  verb->callback([flags, &exit_code] { exit_code = run_eval(*flags); });
}

}  // namespace tandem::apps
