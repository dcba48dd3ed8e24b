#include "serving/server/chat_routes.h"

#include <utility>

#include "serving/protocol/chat_reply.h"
#include "serving/protocol/chat_request.h"

namespace tandem::server {
namespace {

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
  protocol::ReplyHeader header{id, context.model.name, context.model.fingerprint,
                               context.clock.unix_seconds()};
  auto reply = std::make_unique<protocol::ChatReply>(
      std::move(header), request->settings, request->task.n,
      [&context](TokenId token) { return context.tokenizer.token_bytes(token); });
  run_task(context, call, std::move(request->task), std::move(reply), id);
}

}  // namespace

void add_chat_routes(Router& router, ServerContext& context) {
  router.add("POST", "/chat/completions",
             [&context](const RouteCall& call) { chat(context, call); });
}

}  // namespace tandem::server
