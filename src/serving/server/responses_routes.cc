#include "serving/server/responses_routes.h"

#include <charconv>
#include <optional>
#include <utility>

#include "serving/server/responses_socket.h"

namespace tandem::server {
namespace {

using protocol::Parsed;

// Answers with the value or the error.
void respond(ServerContext& context, const RouteCall& call, const Parsed<json::Value>& value) {
  if (value.ok()) {
    respond_json(context, *call.exchange, *value);
  } else {
    respond_error(context, *call.exchange, value.error());
  }
}

// Starts a prepared request, or answers with why it cannot be.
void start(ServerContext& context, const RouteCall& call, Parsed<PreparedReply> prepared) {
  if (!prepared.ok()) {
    respond_error(context, *call.exchange, prepared.error());
    return;
  }
  if (const auto error = check_model(context, prepared->task.model)) {
    respond_error(context, *call.exchange, *error);
    return;
  }
  run_task(context, call, std::move(prepared->task), std::move(prepared->reply),
           context.ids.make("req_"));
}

// Calls `use` with the body, or answers with why there is none.
template <typename Use>
void with_body(ServerContext& context, const RouteCall& call, Use use) {
  const Parsed<json::Value> body = json_body(call.exchange->request());
  if (body.ok()) {
    use(*body);
  } else {
    respond_error(context, *call.exchange, body.error());
  }
}

void input_tokens(ServerContext& context, ResponsesApi& api, const RouteCall& call,
                  const json::Value& body) {
  const auto task = api.count(body, call.owner);
  if (!task.ok()) {
    respond_error(context, *call.exchange, task.error());
    return;
  }
  const auto prompt = render_prompt(*task, context.prepare_parts());
  if (!prompt.ok()) {
    respond_error(context, *call.exchange, prompt.error());
    return;
  }
  respond_json(
      context, *call.exchange,
      json::Object{{"object", "response.input_tokens"}, {"input_tokens", prompt->tokens.size()}});
}

// The number in "starting_after"; -1 if it is not given. Nothing if it is no number.
std::optional<std::int64_t> starting_after(const http::Request& request) {
  const std::string text = request.query_value("starting_after");
  std::int64_t number = -1;
  const char* const end = text.data() + text.size();
  if (!text.empty() && (std::from_chars(text.data(), end, number).ptr != end || number < 0)) {
    return std::nullopt;
  }
  return number;
}

void replay(ServerContext& context, ResponsesApi& api, const RouteCall& call) {
  const std::optional<std::int64_t> after = starting_after(call.exchange->request());
  if (!after) {
    respond_error(context, *call.exchange,
                  protocol::bad_field("starting_after",
                                      "'starting_after' is no sequence number of an event"));
    return;
  }
  Parsed<std::string> frames = api.replay(call.owner, call.id, *after);
  if (!frames.ok()) {
    respond_error(context, *call.exchange, frames.error());
    return;
  }
  context.metrics.response(200);
  call.exchange->begin_stream({{"Cache-Control", "no-cache"}});
  call.exchange->write(*std::move(frames));
  call.exchange->end_stream();
}

void get(ServerContext& context, ResponsesApi& api, const RouteCall& call) {
  if (call.exchange->request().query_value("stream") == "true") {
    replay(context, api, call);
  } else {
    respond(context, call, api.get(call.owner, call.id));
  }
}

void input_items(ServerContext& context, ResponsesApi& api, const RouteCall& call) {
  const http::Request& request = call.exchange->request();
  const protocol::ItemListQuery query{request.query_value("limit"), request.query_value("order"),
                                      request.query_value("after")};
  respond(context, call, api.input_items(call.owner, call.id, query));
}

}  // namespace

void add_responses_routes(Router& router, ServerContext& context, ResponsesApi& api) {
  router.add("POST", "/responses", [&context, &api](const RouteCall& call) {
    with_body(context, call,
              [&](const json::Value& body) { start(context, call, api.create(body, call.owner)); });
  });
  router.add("GET", "/responses", [&context, &api](const RouteCall& call) {
    accept_responses_socket(context, api, call);
  });
  router.add("POST", "/responses/compact", [&context, &api](const RouteCall& call) {
    with_body(context, call, [&](const json::Value& body) {
      start(context, call, api.compact(body, call.owner));
    });
  });
  router.add("POST", "/responses/input_tokens", [&context, &api](const RouteCall& call) {
    with_body(context, call,
              [&](const json::Value& body) { input_tokens(context, api, call, body); });
  });
  router.add("GET", "/responses/{id}",
             [&context, &api](const RouteCall& call) { get(context, api, call); });
  router.add("DELETE", "/responses/{id}", [&context, &api](const RouteCall& call) {
    respond(context, call, api.erase(call.owner, call.id));
  });
  router.add("POST", "/responses/{id}/cancel", [&context, &api](const RouteCall& call) {
    respond(context, call, api.cancel(call.owner, call.id));
  });
  router.add("GET", "/responses/{id}/input_items",
             [&context, &api](const RouteCall& call) { input_items(context, api, call); });
}

}  // namespace tandem::server
