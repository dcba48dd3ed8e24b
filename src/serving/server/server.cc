#include "serving/server/server.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "foundation/obs/log.h"
#include "serving/http/http_server.h"
#include "serving/server/api_keys.h"
#include "serving/server/chat_routes.h"
#include "serving/server/info_routes.h"
#include "serving/server/messages_routes.h"
#include "serving/server/responses_routes.h"
#include "serving/server/server_context.h"

namespace tandem::server {
namespace {

constexpr std::int64_t kMemoryStoreBytes = std::int64_t{256} << 20;
constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kDrain = std::chrono::seconds(5);  // for the last bytes of ended streams
constexpr auto kDrainPoll = std::chrono::milliseconds(20);

http::HttpConfig http_config(const ServerConfig& config) {
  http::HttpConfig out;
  out.host = config.host;
  out.port = config.port;
  out.threads = config.threads;
  out.tls_certificate = config.tls_certificate;
  out.tls_key = config.tls_key;
  out.max_connections = config.max_connections;
  return out;
}

ResponseStoreOptions store_options(const ServerConfig& config) {
  ResponseStoreOptions out;
  if (config.state_dir.empty()) {
    out.max_bytes = kMemoryStoreBytes;
  } else {
    out.file = std::filesystem::path(config.state_dir) / "responses.sqlite";
  }
  return out;
}

bool is_loopback(const std::string& host) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

// The key of either API's header; Bearer first (api.md 3.10).
std::string_view key_of(const http::Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = request.header("authorization");
  if (authorization.substr(0, kBearer.size()) == kBearer) {
    return authorization.substr(kBearer.size());
  }
  return request.header("x-api-key");
}

protocol::ApiError wrong_key(bool is_missing) {
  protocol::ApiError error;
  error.http_status = 401;
  error.type = "authentication_error";
  error.code = "invalid_api_key";
  error.message = is_missing ? "no API key: send Authorization: Bearer KEY, or x-api-key: KEY"
                             : "this API key is not known here";
  return error;
}

}  // namespace

class Server::Core {
 public:
  Core(ServerConfig config, runtime::Engine& engine, const text::Tokenizer& tokenizer,
       protocol::ModelInfo model)
      : config_(std::move(config)),
        context_(engine, tokenizer, std::move(model), config_.heartbeat_us),
        http_(http_config(config_),
              [this](http::ExchangePtr exchange) { handle(std::move(exchange)); }) {
    add_info_routes(router_, context_, [this] { return http_.connections(); });
    add_chat_routes(router_, context_);
    add_messages_routes(router_, context_);
  }

  Status start() {
    TANDEM_ASSIGN(keys_, ApiKeys::load(config_.api_keys_file));
    if (!keys_->required() && !is_loopback(config_.host) && !config_.allow_public_without_key) {
      return permission_denied(
          "host = {} can be reached from outside and no API keys are set; set api_keys_file, or "
          "allow_public_without_key if everybody may use this server",
          config_.host);
    }
    TANDEM_ASSIGN(store_, ResponseStore::open(store_options(config_), context_.clock));
    responses_ = std::make_unique<ResponsesApi>(
        store_.get(), context_.ids, context_.clock,
        [](const Status& status) {
          obs::log_error("a response was not stored: {}", status.message());
        },
        [this](TokenId token) { return context_.tokenizer.token_bytes(token); });
    add_responses_routes(router_, context_, *responses_);
    TANDEM_TRY(http_.start());
    ticker_ = std::thread([this] { tick(); });
    return ok_status();
  }

  std::uint16_t port() const { return http_.port(); }

  void stop() {
    if (!ticker_.joinable()) {
      return;
    }
    context_.stopping = true;
    http_.drain();
    context_.jobs.end_all(unavailable("the server is stopping; send the request again later"));
    const auto end = std::chrono::steady_clock::now() + kDrain;
    while (http_.connections() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kDrainPoll);
    }
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    ticker_.join();
    http_.stop();
  }

 private:
  void handle(http::ExchangePtr exchange) {
    const http::Request& request = exchange->request();
    const Router::Match match = router_.find(request.method, request.path);
    if (match.handler == nullptr) {
      refuse_path(*exchange, match.allowed);
      return;
    }
    RouteCall call{exchange, match.id, ""};
    if (keys_->required() && !match.is_public) {
      const std::string_view key = key_of(request);
      const auto owner = keys_->find(key);
      if (!owner) {
        respond_error(context_, *exchange, wrong_key(key.empty()));
        return;
      }
      call.owner = owner->name;
      const auto over = request.method == "POST" ? context_.limiter.admit(*owner) : std::nullopt;
      if (over) {
        respond_error(context_, *exchange, *over);
        return;
      }
    }
    if (context_.stopping && !match.is_public) {
      respond_error(context_, *exchange,
                    protocol::to_api_error(unavailable("the server is stopping")));
      return;
    }
    (*match.handler)(call);
  }

  void refuse_path(http::Exchange& exchange, const std::string& allowed) {
    const http::Request& request = exchange.request();
    protocol::ApiError error = protocol::bad_field("", "");
    error.http_status = allowed.empty() ? 404 : 405;
    error.code = allowed.empty() ? "not_found" : "method_not_allowed";
    error.message = allowed.empty() ? fmt::format("there is no {} here", request.path)
                                    : fmt::format("{} does not take {}, expected {}", request.path,
                                                  request.method, allowed);
    respond_error(context_, exchange, error,
                  allowed.empty() ? http::Headers() : http::Headers{{"Allow", allowed}});
  }

  // Once a second: heartbeats and changed keys.
  void tick() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kTick, [this] { return stopped_; })) {
      lock.unlock();
      context_.jobs.tick();
      keys_->refresh();
      lock.lock();
    }
  }

  ServerConfig config_;
  ServerContext context_;
  Router router_;
  std::unique_ptr<ApiKeys> keys_;
  std::unique_ptr<ResponseStore> store_;
  std::unique_ptr<ResponsesApi> responses_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread ticker_;
  http::HttpServer http_;  // last: its threads use all that stands before it
};

Server::Server(ServerConfig config, runtime::Engine& engine, const text::Tokenizer& tokenizer,
               protocol::ModelInfo model)
    : core_(std::make_unique<Core>(std::move(config), engine, tokenizer, std::move(model))) {}

Server::~Server() {
  core_->stop();
}

Status Server::start() {
  return core_->start();
}

std::uint16_t Server::port() const {
  return core_->port();
}

void Server::stop() {
  core_->stop();
}

}  // namespace tandem::server
