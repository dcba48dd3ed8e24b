// Agreement with recorded answers of the official API: the same first tokens and close
// log-probabilities. Only meaningful where the server runs the same checkpoint.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "operations/verify/evaluate.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

Result<json::Value> read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return not_found("cannot read {}", path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// Log-probabilities by token text; the API writes -9999 for "too small to say".
std::map<std::string, double> official_step(const json::Value& step) {
  std::map<std::string, double> out;
  const json::Value* top = at(step, "top_logprobs");
  if (top != nullptr && top->is_array()) {
    for (const json::Value& entry : top->get_array()) {
      const json::Value* logprob = at(entry, "logprob");
      if (logprob != nullptr && logprob->is_number()) {
        out[text_at(entry, "token.text")] = logprob->to_number<double>();
      }
    }
  }
  return out;
}

// One prompt: right = same token at a step, until the first difference.
Status compare_prompt(ApiClient& client, const json::Value& official, EvalScore& score) {
  json::Object body = at(official, "request")->as_object();
  body["model"] = client.model();
  TANDEM_ASSIGN(const ApiReply reply, client.post("/v1/chat/completions", body));
  const json::Value* ours = at(reply.json, "choices.0.logprobs.content");
  const json::Value* steps = at(official, "steps");
  if (ours == nullptr || !ours->is_array() || steps == nullptr || !steps->is_array()) {
    return failed_precondition("no logprobs in the answer: {}", reply.brief());
  }
  double distance = 0;
  int compared = 0;
  for (std::size_t i = 0; i < steps->get_array().size(); ++i) {
    const std::string expected = text_at(steps->get_array()[i], "token.text");
    const std::string got =
        i < ours->get_array().size() ? text_at(ours->get_array()[i], "token") : "";
    score.add(got == expected, text_at(official, "id"), expected, got);
    if (got != expected) {
      break;
    }
    const auto recorded = official_step(steps->get_array()[i]);
    const json::Value* logprob = at(ours->get_array()[i], "logprob");
    const auto found = recorded.find(expected);
    if (logprob != nullptr && logprob->is_number() && found != recorded.end()) {
      distance += std::fabs(logprob->to_number<double>() - found->second);
      ++compared;
    }
  }
  score.cells[text_at(official, "id")] =
      json::Object{{"logprob_distance", compared > 0 ? distance / compared : -1.0}};
  return ok_status();
}

Result<EvalScore> run_vectors(ApiClient& client, const EvalOptions& options) {
  EvalScore score;
  if (options.vectors_folder.empty()) {
    score.skipped = "no --vectors FOLDER given";
    return score;
  }
  TANDEM_ASSIGN(const json::Value manifest, read_json(options.vectors_folder + "/manifest.json"));
  const std::string recorded_model = text_at(manifest, "model");
  if (client.model().find(recorded_model) == std::string::npos) {
    score.skipped = fmt::format("the vectors were recorded from {}, this server runs {}",
                                recorded_model, client.model());
    return score;
  }
  const json::Value* prompts = at(manifest, "prompts");
  if (prompts == nullptr || !prompts->is_array()) {
    return invalid_argument("{}/manifest.json has no list 'prompts'", options.vectors_folder);
  }
  for (const json::Value& prompt : prompts->get_array()) {
    TANDEM_ASSIGN(const json::Value official,
                  read_json(options.vectors_folder + "/" + text_at(prompt, "official_file")));
    const json::Value* request = at(official, "request");
    if (request == nullptr || !request->is_object()) {
      return invalid_argument("{} has no request", text_at(prompt, "official_file"));
    }
    TANDEM_TRY(compare_prompt(client, official, score));
  }
  return score;
}

}  // namespace

void add_vector_tasks(std::vector<EvalTask>& tasks) {
  tasks.push_back({"vectors", "First tokens of the official API", run_vectors});
}

}  // namespace tandem::verify
