// What a client asks before it generates: /, /health, /models, /metrics, /tokenize, /detokenize.
#pragma once

#include <cstdint>
#include <functional>

#include "serving/server/server_context.h"

namespace tandem::server {

// `connections`: how many clients are connected now.
void add_info_routes(Router& router, ServerContext& context,
                     std::function<std::int64_t()> connections);

}  // namespace tandem::server
