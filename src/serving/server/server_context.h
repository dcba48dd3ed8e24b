// ServerContext: what every route uses. One per server; routes hold a reference.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "foundation/base/clock.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/ids.h"
#include "serving/protocol/reply.h"
#include "serving/server/generation_job.h"
#include "serving/server/router.h"

namespace tandem::server {

struct ServerContext {
  ServerContext(runtime::Engine& engine, const text::Tokenizer& tokenizer,
                protocol::ModelInfo model_info, TimeUs heartbeat_us);

  PrepareParts prepare_parts() { return {tokenizer, model, constraints}; }

  JobParts job_parts() { return {engine, clock, metrics, jobs, limiter, heartbeat_us}; }

  runtime::Engine& engine;
  const text::Tokenizer& tokenizer;
  const Clock& clock;
  protocol::ModelInfo model;
  TimeUs heartbeat_us;
  ConstraintMaker constraints;
  RequestMetrics metrics;
  JobSet jobs;
  RateLimiter limiter;
  protocol::IdSource ids;
  std::atomic<bool> stopping{false};
};

// Answers with an error in the shape of the API that the request's path belongs to.
void respond_error(ServerContext& context, http::Exchange& exchange,
                   const protocol::ApiError& error, http::Headers headers = {});

// Answers 200 with this body.
void respond_json(ServerContext& context, http::Exchange& exchange, const json::Value& body);

// The body as JSON. ERRORS: 400, 415.
protocol::Parsed<json::Value> json_body(const http::Request& request);

// ERRORS: 404 model_not_found if the client names another model than ours. "" is ours.
std::optional<protocol::ApiError> check_model(const ServerContext& context,
                                              const std::string& name);

// Prepares the task and starts its job; answers with the reply's error shape if it is refused.
void run_task(ServerContext& context, const RouteCall& call, protocol::GenerationTask task,
              std::unique_ptr<protocol::Reply> reply, const std::string& id);

}  // namespace tandem::server
