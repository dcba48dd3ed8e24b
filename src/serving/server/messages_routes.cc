#include "serving/server/messages_routes.h"

#include <optional>
#include <utility>

#include "serving/protocol/messages_reply.h"
#include "serving/protocol/messages_request.h"

namespace tandem::server {
namespace {

using protocol::GenerationTask;

// Agents name Anthropic's models, also for their small side requests: all of them mean ours.
bool is_claude(const std::string& model) {
  return model.rfind("claude", 0) == 0;
}

// The task, or nothing after an error was answered.
std::optional<GenerationTask> read_task(ServerContext& context, const RouteCall& call,
                                        protocol::MessagesUse use) {
  const auto body = json_body(call.exchange->request());
  if (!body.ok()) {
    respond_error(context, *call.exchange, body.error());
    return std::nullopt;
  }
  auto task = protocol::parse_messages_request(*body, use);
  if (!task.ok()) {
    respond_error(context, *call.exchange, task.error());
    return std::nullopt;
  }
  const auto error = is_claude(task->model) ? std::nullopt : check_model(context, task->model);
  if (error) {
    respond_error(context, *call.exchange, *error);
    return std::nullopt;
  }
  return *std::move(task);
}

void messages(ServerContext& context, const RouteCall& call) {
  std::optional<GenerationTask> task = read_task(context, call, protocol::MessagesUse::kGenerate);
  if (!task) {
    return;
  }
  const std::string id = context.ids.make("req_");
  auto reply = std::make_unique<protocol::MessagesReply>(task->model, id, context.ids);
  run_task(context, call, std::move(*task), std::move(reply), id);
}

void count_tokens(ServerContext& context, const RouteCall& call) {
  const std::optional<GenerationTask> task =
      read_task(context, call, protocol::MessagesUse::kCountTokens);
  if (!task) {
    return;
  }
  const auto prompt = render_prompt(*task, context.prepare_parts());
  if (!prompt.ok()) {
    respond_error(context, *call.exchange, prompt.error());
    return;
  }
  respond_json(context, *call.exchange, json::Object{{"input_tokens", prompt->tokens.size()}});
}

}  // namespace

void add_messages_routes(Router& router, ServerContext& context) {
  router.add("POST", "/messages", [&context](const RouteCall& call) { messages(context, call); });
  router.add("POST", "/messages/count_tokens",
             [&context](const RouteCall& call) { count_tokens(context, call); });
}

}  // namespace tandem::server
