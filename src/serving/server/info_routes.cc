#include "serving/server/info_routes.h"

#include <fmt/format.h>

#include <utility>

#include "serving/protocol/chat_fields.h"
#include "serving/protocol/chat_request.h"
#include "serving/protocol/openai_fields.h"

namespace tandem::server {
namespace {

void root(ServerContext& context, const RouteCall& call) {
  respond_json(context, *call.exchange,
               json::Object{{"server", "tandem"}, {"model", context.model.name}});
}

// 200 only while tokens are generated when they are due; the verdict names what is stuck.
void health(ServerContext& context, const RouteCall& call) {
  const runtime::EngineHealth state = context.engine.health();
  const bool ok = state.ok && !context.stopping;
  constexpr double kPerSecond = 1e6;
  json::Array ranks;
  for (const runtime::RankHealth& rank : state.ranks) {
    ranks.push_back(
        json::Object{{"rank", rank.rank},
                     {"host", rank.host},
                     {"alive", rank.alive},
                     {"last_step_age_s", static_cast<double>(rank.last_step_age_us) / kPerSecond}});
  }
  http::Response response;
  response.status = ok ? 200 : 503;
  response.body = json::dump(
      json::Object{{"status", ok ? "ok" : "unhealthy"},
                   {"verdict", context.stopping ? "the server is stopping" : state.verdict},
                   {"ranks", std::move(ranks)}});
  context.metrics.response(response.status);
  call.exchange->respond(std::move(response));
}

// Keys of both OpenAI's and Anthropic's form in one object (api.md 3.11).
json::Object model_json(const protocol::ModelInfo& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "tandem"},
          {"max_model_len", model.max_context_tokens},
          {"type", "model"},
          {"display_name", model.name}};
}

void models(ServerContext& context, const RouteCall& call) {
  respond_json(context, *call.exchange,
               json::Object{{"object", "list"},
                            {"data", json::Array{model_json(context.model)}},
                            {"has_more", false},
                            {"first_id", context.model.name},
                            {"last_id", context.model.name}});
}

void one_model(ServerContext& context, const RouteCall& call) {
  if (const auto error = check_model(context, call.id)) {
    respond_error(context, *call.exchange, *error);
  } else {
    respond_json(context, *call.exchange, model_json(context.model));
  }
}

// What /tokenize is asked about: a prompt text, or a conversation as chat would render it.
protocol::Parsed<RenderedPrompt> tokens_of(ServerContext& context, const json::Value& body) {
  if (!body.is_object()) {
    return protocol::bad_field("", "the body must be a JSON object");
  }
  protocol::FieldErrors errors;
  const protocol::Fields fields(body.get_object(), "", errors);
  if (const auto prompt = fields.text("prompt")) {
    RenderedPrompt out;
    text::EncodeOptions options;
    options.allow_added_tokens = true;
    out.tokens = context.tokenizer.encode(*prompt, options);
    return out;
  }
  auto request = protocol::parse_chat_request(body);
  if (!request.ok()) {
    return request.error();
  }
  return render_prompt(request->task, context.prepare_parts());
}

void tokenize(ServerContext& context, const RouteCall& call) {
  const auto body = json_body(call.exchange->request());
  if (!body.ok()) {
    respond_error(context, *call.exchange, body.error());
    return;
  }
  const auto rendered = tokens_of(context, *body);
  if (!rendered.ok()) {
    respond_error(context, *call.exchange, rendered.error());
    return;
  }
  json::Array tokens(rendered->tokens.begin(), rendered->tokens.end());
  respond_json(context, *call.exchange,
               json::Object{{"count", rendered->tokens.size()},
                            {"max_model_len", context.model.max_context_tokens},
                            {"tokens", std::move(tokens)}});
}

void detokenize(ServerContext& context, const RouteCall& call) {
  const auto body = json_body(call.exchange->request());
  if (!body.ok()) {
    respond_error(context, *call.exchange, body.error());
    return;
  }
  const json::Value* list = json::find(*body, "tokens");
  if (list == nullptr || !list->is_array()) {
    respond_error(context, *call.exchange,
                  protocol::bad_field("tokens", "tokens: expected an array of token ids"));
    return;
  }
  std::vector<TokenId> tokens;
  for (const json::Value& value : list->get_array()) {
    if (!value.is_int64() || value.get_int64() < 0 ||
        value.get_int64() >= context.tokenizer.vocab_size()) {
      respond_error(context, *call.exchange,
                    protocol::bad_field("tokens", fmt::format("tokens: expected ids from 0 to {}",
                                                              context.tokenizer.vocab_size() - 1)));
      return;
    }
    tokens.push_back(static_cast<TokenId>(value.get_int64()));
  }
  respond_json(context, *call.exchange, json::Object{{"prompt", context.tokenizer.decode(tokens)}});
}

}  // namespace

void add_info_routes(Router& router, ServerContext& context,
                     std::function<std::int64_t()> connections) {
  const auto add = [&](const char* method, const char* pattern, auto function, bool is_public) {
    router.add(
        method, pattern, [&context, function](const RouteCall& call) { function(context, call); },
        is_public);
  };
  add("GET", "/", root, true);
  add("GET", "/health", health, true);
  add("GET", "/models", models, false);
  add("GET", "/models/{id}", one_model, false);
  add("POST", "/tokenize", tokenize, false);
  add("POST", "/detokenize", detokenize, false);
  router.add(
      "GET", "/metrics",
      [&context, connections = std::move(connections)](const RouteCall& call) {
        http::Response response;
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        response.body =
            context.metrics.page(context.engine.stats(), context.engine.health(), connections());
        call.exchange->respond(std::move(response));
      },
      true);
}

}  // namespace tandem::server
