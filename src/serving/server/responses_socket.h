// ResponsesSocket: the Responses API over one WebSocket. SOURCE: OpenResponses 2026-04-24,
// "WebSocket Transport". One turn at a time; turns that come early wait in order.
#pragma once

#include "serving/http/websocket.h"
#include "serving/server/responses_api.h"
#include "serving/server/server_context.h"

namespace tandem::server {

// Makes the request's connection a WebSocket that serves turns until it closes. `context` and `api`
// outlive it.
void accept_responses_socket(ServerContext& context, ResponsesApi& api, const RouteCall& call);

}  // namespace tandem::server
