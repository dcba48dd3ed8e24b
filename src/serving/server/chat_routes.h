// POST /v1/chat/completions and /v1/completions.
#pragma once

#include "serving/server/server_context.h"

namespace tandem::server {

void add_chat_routes(Router& router, ServerContext& context);

}  // namespace tandem::server
