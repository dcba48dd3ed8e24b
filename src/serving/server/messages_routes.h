// POST /v1/messages and /v1/messages/count_tokens.
#pragma once

#include "serving/server/server_context.h"

namespace tandem::server {

void add_messages_routes(Router& router, ServerContext& context);

}  // namespace tandem::server
