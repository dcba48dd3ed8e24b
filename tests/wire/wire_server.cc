#include "tests/wire/wire_server.h"

#include <gtest/gtest.h>

#include <utility>

#include "foundation/obs/log.h"

namespace tandem::testing {
namespace {

runtime::EngineLimits limits() {
  runtime::EngineLimits out;
  out.max_context_tokens = 4096;
  out.max_sequences = 64;
  out.max_waiting = 64;
  out.vocab_size = wire_tokenizer().vocab_size();
  return out;
}

protocol::ModelInfo model_info() {
  protocol::ModelInfo info;
  info.name = "deepseek-v4-flash";
  info.fingerprint = "fp_test";
  info.max_context_tokens = limits().max_context_tokens;
  return info;
}

std::string text_of(const std::vector<TokenId>& tokens) {
  return wire_tokenizer().decode(tokens);
}

}  // namespace

WireServer::WireServer(Say say, Change change, server::ServerConfig config)
    : config_(std::move(config)) {
  config_.port = 0;
  engine_ = std::make_unique<ScriptedEngine>(
      [say = std::move(say),
       change = std::move(change)](const runtime::GenerationRequest& request) {
        EngineScript script;
        script.tokens = tokens_of(say(text_of(request.prompt)));
        script.tokens.push_back(wire_tokenizer().special().eos);
        script.steps = {3, 1, 7, 2};
        if (change) {
          change(script);
        }
        return script;
      },
      limits());
  start();
}

WireServer::~WireServer() {
  stop();
}

void WireServer::start() {
  obs::set_log_level("error");
  server_ = std::make_unique<server::Server>(config_, *engine_, wire_tokenizer(), model_info());
  const Status status = server_->start();
  EXPECT_TRUE(status.ok()) << status.to_string();
}

void WireServer::stop() {
  if (server_) {
    server_->stop();
    server_.reset();
  }
}

net::HttpResponse WireServer::fetch(const std::string& method, const std::string& target,
                                    const std::string& body) const {
  net::HttpRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  request.headers = {{"Content-Type", "application/json"}};
  request.idle_timeout_ms = 20'000;
  const auto url = net::parse_url(fmt::format("http://127.0.0.1:{}", port()));
  const Result<net::HttpResponse> response = net::http_fetch(*url, request);
  EXPECT_TRUE(response.ok()) << response.status().to_string();
  return response.ok() ? *response : net::HttpResponse();
}

json::Value WireServer::post_json(const std::string& target, const std::string& body) const {
  const net::HttpResponse response = post(target, body);
  EXPECT_EQ(response.status, 200) << response.body;
  const Result<json::Value> value = json::parse(response.body);
  EXPECT_TRUE(value.ok()) << response.body;
  return value.ok() ? *value : json::Value(json::Object());
}

std::string WireServer::prompt(std::size_t request) const {
  return text_of(engine_->requests().at(request).prompt);
}

TempFolder::TempFolder() : path_(::testing::TempDir() + "wire_XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
}

TempFolder::~TempFolder() {
  std::filesystem::remove_all(path_);
}

}  // namespace tandem::testing
