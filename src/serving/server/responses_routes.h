// /v1/responses and what hangs below it.
#pragma once

#include "serving/server/responses_api.h"
#include "serving/server/server_context.h"

namespace tandem::server {

// `api` outlives the router.
void add_responses_routes(Router& router, ServerContext& context, ResponsesApi& api);

}  // namespace tandem::server
