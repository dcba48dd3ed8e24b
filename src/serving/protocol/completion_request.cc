#include "serving/protocol/completion_request.h"

#include <limits>
#include <optional>
#include <utility>

#include "serving/protocol/chat_fields.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {
namespace {

constexpr std::int64_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr int kMaxLogprobs = 20;
constexpr int kMaxChoices = 128;

std::optional<std::vector<TokenId>> token_list(const json::Array& list) {
  std::vector<TokenId> tokens;
  for (const json::Value& entry : list) {
    if (!entry.is_int64() || entry.get_int64() < 0 ||
        entry.get_int64() > std::numeric_limits<TokenId>::max()) {
      return std::nullopt;
    }
    tokens.push_back(static_cast<TokenId>(entry.get_int64()));
  }
  return tokens;
}

RawPrompt read_prompt(const Fields& body) {
  const json::Value* prompt = body.find("prompt");
  if (prompt != nullptr && prompt->is_array() && prompt->get_array().size() == 1 &&
      !prompt->get_array()[0].is_number()) {
    prompt = &prompt->get_array()[0];
  }
  if (prompt != nullptr && prompt->is_string()) {
    return std::string(prompt->get_string());
  }
  if (prompt != nullptr && prompt->is_array() && !prompt->get_array().empty()) {
    if (auto tokens = token_list(prompt->get_array())) {
      return *std::move(tokens);
    }
    const bool is_batch = !prompt->get_array()[0].is_number();
    body.fail("prompt", is_batch ? "holds several prompts; send one request for each"
                                 : "holds something that is no token id");
    return std::string();
  }
  if (body.errors().ok()) {
    body.fail("prompt", "is missing or empty, expected a string or a list of token ids");
  }
  return std::string();
}

void refuse_what_is_not_here(const Fields& body, const CompletionSettings& settings, int n) {
  if (body.text("suffix").value_or("") != "") {
    body.fail("suffix", "is not supported: this model only continues");
  }
  if (body.integer("best_of").value_or(n) != n) {
    body.fail("best_of", "is not supported beside 'n'");
  }
  if (settings.echo && settings.logprobs >= 0) {
    body.fail("logprobs", "of the prompt are not kept: leave out 'echo' or 'logprobs'");
  }
}

}  // namespace

Parsed<CompletionRequest> parse_completion_request(const json::Value& body) {
  if (!body.is_object()) {
    return bad_field("",
                     fmt::format("the body is {}, expected a JSON object", json::type_name(body)));
  }
  FieldErrors errors;
  const Fields fields(body.get_object(), "", errors);
  CompletionRequest request;
  GenerationTask& task = request.task;
  task.model = fields.text("model").value_or("");
  task.prompt = read_prompt(fields);
  task.sampling = parse_sampling(fields);
  task.stop = parse_stop(fields);
  task.stream = fields.boolean("stream").value_or(false);
  task.max_tokens = fields.integer("max_tokens", 1).value_or(kDefaultMaxTokens);
  task.n = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  task.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  task.include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  task.format = parse_reply_format(fields);
  request.settings.echo = fields.boolean("echo").value_or(false);
  request.settings.logprobs =
      static_cast<int>(fields.integer("logprobs", 0, kMaxLogprobs).value_or(-1));
  task.sampling.n_logprobs = request.settings.logprobs;
  if (const auto options = fields.object("stream_options")) {
    request.settings.include_usage = options->boolean("include_usage").value_or(false);
  }
  refuse_what_is_not_here(fields, request.settings, task.n);
  if (!errors.ok()) {
    return errors.error();
  }
  return request;
}

}  // namespace tandem::protocol
