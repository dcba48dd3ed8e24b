#include "serving/server/server_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "foundation/obs/log.h"
#include "serving/protocol/messages_reply.h"

namespace tandem::server {

ServerContext::ServerContext(runtime::Engine& engine_in, const text::Tokenizer& tokenizer_in,
                             protocol::ModelInfo model_info, TimeUs heartbeat)
    : engine(engine_in),
      tokenizer(tokenizer_in),
      clock(system_clock()),
      model(std::move(model_info)),
      heartbeat_us(heartbeat),
      constraints(tokenizer_in, engine_in.limits().vocab_size),
      metrics(model.name),
      limiter(clock),
      ids(protocol::IdSource::random_seed(), protocol::IdSource::random_seed()) {}

namespace {

json::Object error_body(ServerContext& context, const http::Request& request,
                        const protocol::ApiError& error) {
  const bool is_messages = request.path.find("/messages") != std::string::npos;
  return is_messages ? protocol::messages_error_body(error, context.ids.make("req_"))
                     : protocol::openai_error_body(error);
}

}  // namespace

void respond_error(ServerContext& context, http::Exchange& exchange,
                   const protocol::ApiError& error, http::Headers headers) {
  http::Response response;
  response.status = error.http_status;
  response.headers = std::move(headers);
  if (error.retry_after_s) {
    response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
  }
  response.body = json::dump(error_body(context, exchange.request(), error));
  context.metrics.response(response.status);
  exchange.respond(std::move(response));
}

void respond_json(ServerContext& context, http::Exchange& exchange, const json::Value& body) {
  http::Response response;
  response.body = json::dump(body);
  context.metrics.response(response.status);
  exchange.respond(std::move(response));
}

protocol::Parsed<json::Value> json_body(const http::Request& request) {
  const std::string_view type = request.header("content-type");
  // Forms are what curl -d says when nobody tells it otherwise.
  if (!type.empty() && type.find("json") == std::string_view::npos &&
      type.find("text/plain") == std::string_view::npos &&
      type.find("x-www-form-urlencoded") == std::string_view::npos) {
    protocol::ApiError error = protocol::bad_field(
        "", fmt::format("Content-Type is '{}', expected application/json", type));
    error.http_status = 415;
    return error;
  }
  auto parsed = json::parse(request.body);
  if (!parsed.ok()) {
    return protocol::bad_field("", "the body is no JSON: " + parsed.status().message());
  }
  return std::move(*parsed);
}

std::optional<protocol::ApiError> check_model(const ServerContext& context,
                                              const std::string& name) {
  if (name.empty() || name == context.model.name) {
    return std::nullopt;
  }
  protocol::ApiError error = protocol::bad_field(
      "model", fmt::format("the model '{}' is not served here; this server has '{}'", name,
                           context.model.name));
  error.http_status = 404;
  error.code = "model_not_found";
  return error;
}

void run_task(ServerContext& context, const RouteCall& call, protocol::GenerationTask task,
              std::unique_ptr<protocol::Reply> reply, const std::string& id) {
  auto prepared = prepare_task(std::move(task), context.prepare_parts());
  if (!prepared.ok()) {
    http::Response response;
    response.status = prepared.error().http_status;
    response.body = json::dump(reply->error_body(prepared.error()));
    context.metrics.response(response.status);
    call.exchange->respond(std::move(response));
    return;
  }
  http::Headers headers{{"x-request-id", id}, {"request-id", id}};  // OpenAI's, Anthropic's name
  if (!prepared->ignored_keywords.empty()) {
    const std::string ignored = fmt::format("{}", fmt::join(prepared->ignored_keywords, ", "));
    obs::log_warning("{} schema keywords that are not enforced: {}", id, ignored);
    headers.emplace_back("x-tandem-ignored-schema-keywords", ignored);
  }
  obs::log_debug("{} {} of key '{}': {} prompt tokens", id, call.exchange->request().path,
                 call.owner, prepared->prompt.size());
  std::make_shared<GenerationJob>(call.exchange, std::move(*prepared), std::move(reply),
                                  context.prepare_parts(), context.job_parts(), id, call.owner)
      ->start(std::move(headers));
}

}  // namespace tandem::server
