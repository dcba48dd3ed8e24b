#include "serving/server/chat_routes.h"

#include <utility>

#include "serving/protocol/chat_reply.h"
#include "serving/protocol/chat_request.h"
#include "serving/protocol/completion_reply.h"
#include "serving/protocol/completion_request.h"

namespace tandem::server {
namespace {

protocol::ReplyHeader header(const ServerContext& context, const std::string& id) {
  return {id, context.model.name, context.model.fingerprint, context.clock.unix_seconds()};
}

protocol::TokenText token_text(const ServerContext& context) {
  return [&context](TokenId token) { return context.tokenizer.token_bytes(token); };
}

std::string prompt_text(const ServerContext& context, const protocol::GenerationTask& task) {
  const auto& prompt = std::get<protocol::RawPrompt>(task.prompt);
  const auto* text = std::get_if<std::string>(&prompt);
  return text != nullptr ? *text
                         : context.tokenizer.decode(std::get<std::vector<TokenId>>(prompt), true);
}

void chat(ServerContext& context, const RouteCall& call) {
  const auto body = json_body(call.exchange->request());
  if (!body.ok()) {
    respond_error(context, *call.exchange, body.error());
    return;
  }
  auto request = protocol::parse_chat_request(*body);
  if (!request.ok()) {
    respond_error(context, *call.exchange, request.error());
    return;
  }
  if (const auto error = check_model(context, request->task.model)) {
    respond_error(context, *call.exchange, *error);
    return;
  }
  const std::string id = context.ids.make("chatcmpl-");
  auto reply = std::make_unique<protocol::ChatReply>(header(context, id), request->settings,
                                                     request->task.n, token_text(context));
  run_task(context, call, std::move(request->task), std::move(reply), id);
}

void completion(ServerContext& context, const RouteCall& call) {
  const auto body = json_body(call.exchange->request());
  if (!body.ok()) {
    respond_error(context, *call.exchange, body.error());
    return;
  }
  auto request = protocol::parse_completion_request(*body);
  if (!request.ok()) {
    respond_error(context, *call.exchange, request.error());
    return;
  }
  if (const auto error = check_model(context, request->task.model)) {
    respond_error(context, *call.exchange, *error);
    return;
  }
  const std::string id = context.ids.make("cmpl-");
  const std::string echo = request->settings.echo ? prompt_text(context, request->task) : "";
  auto reply = std::make_unique<protocol::CompletionReply>(
      header(context, id), request->settings, request->task.n, token_text(context), echo);
  run_task(context, call, std::move(request->task), std::move(reply), id);
}

}  // namespace

void add_chat_routes(Router& router, ServerContext& context) {
  router.add("POST", "/chat/completions",
             [&context](const RouteCall& call) { chat(context, call); });
  router.add("POST", "/completions",
             [&context](const RouteCall& call) { completion(context, call); });
}

}  // namespace tandem::server
