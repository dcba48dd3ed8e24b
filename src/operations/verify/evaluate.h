// Graded tasks: how often a server's model is right, where a gate asks whether the server is right.
// Every task is made from a seed, so that two servers get the same questions.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "operations/verify/api_client.h"

namespace tandem::verify {

struct EvalOptions {
  net::Url url;
  std::string api_key;
  std::string model;  // "": the server's first model
  std::int64_t timeout_ms = 1'800'000;
  std::uint64_t seed = 42;
  int questions = 20;  // per task and length
  std::vector<std::int64_t> context_tokens = {1'024, 4'096};
  std::string vectors_folder;    // official logprob vectors; "": skipped
  bool same_checkpoint = false;  // the user vouches that the vectors fit, whatever the names
  std::string only;              // tasks whose name starts with this
};

struct EvalScore {
  std::string name;
  int right = 0;
  int total = 0;
  std::string skipped;  // reason, if it was not run
  std::string failed;   // the error that ended it, if the server broke off
  json::Object cells;   // finer figures, for example by length and depth
  json::Array misses;   // {question, expected, got}, at most 20

  void add(bool is_right, std::string_view question, std::string_view expected,
           std::string_view got);
};

struct EvalTask {
  std::string name;
  std::string title;
  std::function<Result<EvalScore>(ApiClient&, const EvalOptions&)> run;
};

std::vector<EvalTask> all_eval_tasks();

struct EvalReport {
  std::string model;
  std::vector<EvalScore> scores;
};

// Runs the chosen tasks; `finished` sees each score. ERRORS: those of choosing a model;
// kInvalidArgument if no task has the name of `only`.
Result<EvalReport> run_evaluation(const EvalOptions& options,
                                  const std::function<void(const EvalScore&)>& finished,
                                  const std::atomic<bool>& stop);

std::string eval_to_json(const EvalOptions& options, const EvalReport& report);

// Families of tasks.
void add_context_tasks(std::vector<EvalTask>& tasks);
void add_skill_tasks(std::vector<EvalTask>& tasks);
void add_vector_tasks(std::vector<EvalTask>& tasks);

// One greedy answer without thinking, or the error.
Result<std::string> ask(ApiClient& client, const std::string& question, int max_tokens);

}  // namespace tandem::verify
