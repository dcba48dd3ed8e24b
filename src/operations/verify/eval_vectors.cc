// Agreement with recorded answers of the official API: the same first tokens and close
// log-probabilities. Only meaningful where the server runs the same checkpoint.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
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

// Sums over the steps of one prompt on which both sides wrote the same tokens before.
struct Agreement {
  int steps = 0;
  double distance = 0;  // of the log-probabilities of the official token
  double loss = 0;      // minus our log-probability of it
  double overlap = 0;   // share of the official best tokens that are among ours
};

// Our log-probability of a token at a step, from its entry or its list of best; nothing if
// unlisted.
std::optional<double> our_logprob(const json::Value& entry, const std::string& token) {
  const json::Value* found = text_at(entry, "token") == token ? at(entry, "logprob") : nullptr;
  const json::Value* top = at(entry, "top_logprobs");
  if (found == nullptr && top != nullptr && top->is_array()) {
    for (const json::Value& best : top->get_array()) {
      found = text_at(best, "token") == token ? at(best, "logprob") : found;
    }
  }
  return found != nullptr && found->is_number() ? std::optional(found->to_number<double>())
                                                : std::nullopt;
}

// Share of the official tokens that carry probability (at most kTopK) that our list has too.
double top_overlap(const std::map<std::string, double>& official, const json::Value& entry) {
  constexpr std::size_t kTopK = 5;
  constexpr double kTooSmall = -100;  // the API writes -9999 for what it does not say
  std::vector<std::pair<double, std::string>> best;
  for (const auto& [token, logprob] : official) {
    if (logprob > kTooSmall) {
      best.emplace_back(-logprob, token);
    }
  }
  std::sort(best.begin(), best.end());
  best.resize(std::min(best.size(), kTopK));
  std::size_t shared = 0;
  for (const auto& [minus_logprob, token] : best) {
    shared += our_logprob(entry, token).has_value() ? 1 : 0;
  }
  return best.empty() ? 1 : static_cast<double>(shared) / static_cast<double>(best.size());
}

// One prompt: right = same token at a step. Steps after the first difference have another prefix
// and are not compared.
Status compare_prompt(ApiClient& client, const json::Value& official, EvalScore& score,
                      Agreement& all) {
  json::Object body = at(official, "request")->as_object();
  body["model"] = client.model();
  TANDEM_ASSIGN(const ApiReply reply, client.post("/v1/chat/completions", body));
  const json::Value* ours = at(reply.json, "choices.0.logprobs.content");
  const json::Value* steps = at(official, "steps");
  if (ours == nullptr || !ours->is_array() || steps == nullptr || !steps->is_array()) {
    return failed_precondition("no logprobs in the answer: {}", reply.brief());
  }
  const std::string id = text_at(official, "id");
  for (std::size_t i = 0; i < steps->get_array().size(); ++i) {
    const json::Value& step = steps->get_array()[i];
    const std::string expected = text_at(step, "token.text");
    if (i >= ours->get_array().size()) {
      score.add(false, id, expected, "the answer ended");
      break;
    }
    const json::Value& entry = ours->get_array()[i];
    const std::string got = text_at(entry, "token");
    score.add(got == expected, id, expected, got);
    const auto recorded = official_step(step);
    const auto theirs = recorded.find(expected);
    if (const auto logprob = our_logprob(entry, expected);
        logprob.has_value() && theirs != recorded.end()) {
      ++all.steps;
      all.distance += std::fabs(*logprob - theirs->second);
      all.loss -= *logprob;
      all.overlap += top_overlap(recorded, entry);
    }
    if (got != expected) {
      break;
    }
  }
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
  if (client.model() != recorded_model && !options.same_checkpoint) {
    score.skipped = fmt::format(
        "the vectors were recorded from {}, this server runs {}; if both are the same checkpoint, "
        "say so with --same-checkpoint",
        recorded_model, client.model());
    return score;
  }
  const json::Value* prompts = at(manifest, "prompts");
  if (prompts == nullptr || !prompts->is_array()) {
    return invalid_argument("{}/manifest.json has no list 'prompts'", options.vectors_folder);
  }
  Agreement all;
  for (const json::Value& prompt : prompts->get_array()) {
    TANDEM_ASSIGN(const json::Value official,
                  read_json(options.vectors_folder + "/" + text_at(prompt, "official_file")));
    const json::Value* request = at(official, "request");
    if (request == nullptr || !request->is_object()) {
      return invalid_argument("{} has no request", text_at(prompt, "official_file"));
    }
    TANDEM_TRY(compare_prompt(client, official, score, all));
  }
  if (all.steps > 0) {
    score.cells = {{"steps_compared", all.steps},
                   {"perplexity_of_official_tokens", std::exp(all.loss / all.steps)},
                   {"mean_logprob_distance", all.distance / all.steps},
                   {"top_5_agreement", all.overlap / all.steps}};
  }
  return score;
}

}  // namespace

void add_vector_tasks(std::vector<EvalTask>& tasks) {
  tasks.push_back({"vectors", "First tokens of the official API", run_vectors});
}

}  // namespace tandem::verify
