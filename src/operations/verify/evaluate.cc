#include "operations/verify/evaluate.h"

#include "operations/verify/choose_model.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {

void EvalScore::add(bool is_right, std::string_view question, std::string_view expected,
                    std::string_view got) {
  ++total;
  right += is_right ? 1 : 0;
  if (!is_right && misses.size() < 20) {
    misses.push_back(json::Object{
        {"question", shorten(question, 300)}, {"expected", expected}, {"got", shorten(got, 300)}});
  }
}

Result<std::string> ask(ApiClient& client, const std::string& question, int max_tokens) {
  const json::Array messages{json::Object{{"role", "user"}, {"content", question}}};
  TANDEM_ASSIGN(const ApiReply reply,
                client.post("/v1/chat/completions",
                            {{"model", client.model()},
                             {"messages", messages},
                             {"temperature", 0},
                             {"max_tokens", max_tokens},
                             {"chat_template_kwargs", json::Object{{"thinking", false}}}}));
  if (reply.status != 200) {
    return failed_precondition("{}", reply.brief());
  }
  return text_at(reply.json, "choices.0.message.content");
}

std::vector<EvalTask> all_eval_tasks() {
  std::vector<EvalTask> tasks;
  add_context_tasks(tasks);
  add_skill_tasks(tasks);
  add_vector_tasks(tasks);
  return tasks;
}

Result<EvalReport> run_evaluation(const EvalOptions& options,
                                  const std::function<void(const EvalScore&)>& finished,
                                  const std::atomic<bool>& stop) {
  ApiClient client(options.url, options.api_key, options.timeout_ms);
  client.set_cancel(&stop);
  TANDEM_TRY(choose_model(client, options.model));
  EvalReport report{client.model(), {}};
  for (const EvalTask& task : all_eval_tasks()) {
    if (task.name.compare(0, options.only.size(), options.only) != 0) {
      continue;
    }
    EvalScore score;
    if (stop.load()) {
      score.skipped = "interrupted";
    } else {
      auto result = task.run(client, options);
      if (result.ok()) {
        score = std::move(result).value();
      } else {
        (stop.load() ? score.skipped : score.failed) =
            stop.load() ? "interrupted" : result.status().to_string();
      }
    }
    score.name = task.name;
    finished(score);
    report.scores.push_back(std::move(score));
  }
  if (report.scores.empty()) {
    return invalid_argument("no task has a name that starts with '{}'", options.only);
  }
  return report;
}

std::string eval_to_json(const EvalOptions& options, const EvalReport& report) {
  json::Object tasks;
  for (const EvalScore& score : report.scores) {
    tasks[score.name] =
        json::Object{{"right", score.right},   {"total", score.total}, {"skipped", score.skipped},
                     {"failed", score.failed}, {"cells", score.cells}, {"misses", score.misses}};
  }
  return json::dump(json::Object{{"schema_version", 1},
                                 {"model", report.model},
                                 {"seed", options.seed},
                                 {"tasks", std::move(tasks)}});
}

}  // namespace tandem::verify
