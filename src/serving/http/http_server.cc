#include "serving/http/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "foundation/obs/log.h"
#include "serving/http/connection.h"

namespace tandem::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // no descriptor left
constexpr auto kStopPoll = std::chrono::milliseconds(10);
constexpr int kStopPolls = 500;

// ERRORS: kInvalidArgument naming the file.
Status load_tls(asio::ssl::context& tls, const HttpConfig& config) {
  error_code error;
  tls.use_certificate_chain_file(config.tls_certificate, error);
  if (error) {
    return invalid_argument("tls_certificate {}: {}; expected a PEM certificate chain",
                            config.tls_certificate, error.message());
  }
  tls.use_private_key_file(config.tls_key, asio::ssl::context::pem, error);
  if (error) {
    return invalid_argument(
        "tls_key {}: {}; expected the PEM private key of the certificate, without a passphrase",
        config.tls_key, error.message());
  }
  return ok_status();
}

}  // namespace

class HttpServer::Core {
 public:
  Core(HttpConfig config, Handler handler)
      : config_(std::move(config)),
        handler_(std::move(handler)),
        acceptor_(asio::make_strand(io_)),
        accept_pause_(acceptor_.get_executor()) {}

  Status start() {
    if (!config_.tls_certificate.empty()) {
      tls_.emplace(asio::ssl::context::tls_server);
      tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1);
      TANDEM_TRY(load_tls(*tls_, config_));
      context_.tls = &*tls_;
    }
    TANDEM_TRY(listen());
    accept();
    for (int i = 0; i < config_.threads; ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
    return ok_status();
  }

  std::uint16_t port() const { return port_; }

  std::int64_t connections() const { return connections_.size(); }

  void drain() {
    draining_ = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
    connections_.for_each([](OpenConnection& connection) { connection.drain(); });
  }

  void stop() {
    if (threads_.empty()) {
      return;
    }
    drain();
    connections_.for_each([](OpenConnection& connection) { connection.close(); });
    work_.reset();
    for (int i = 0; i < kStopPolls && connections_.size() > 0; ++i) {
      std::this_thread::sleep_for(kStopPoll);
    }
    io_.stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

 private:
  Status listen() {
    error_code error;
    const auto address = asio::ip::make_address(config_.host, error);
    if (error) {
      return invalid_argument("host = '{}'; expected an IP address to listen on", config_.host);
    }
    const tcp::endpoint endpoint(address, config_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    }
    if (!error) {
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error == asio::error::address_in_use) {
      return already_exists("port {} on {} is taken by another program", config_.port,
                            config_.host);
    }
    if (error) {
      return invalid_argument("cannot listen on {}:{}: {}", config_.host, config_.port,
                              error.message());
    }
    port_ = acceptor_.local_endpoint().port();
    return ok_status();
  }

  void accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (draining_ || error == asio::error::operation_aborted) {
        return;
      }
      if (error) {
        obs::log_warning("accept: {}", error.message());
        accept_pause_.expires_after(kAcceptPause);
        accept_pause_.async_wait([this](error_code stopped) {
          if (!stopped && !draining_) {
            accept();
          }
        });
        return;
      }
      start_connection(std::move(socket), context_);
      accept();
    });
  }

  HttpConfig config_;
  Handler handler_;
  ConnectionSet connections_;
  std::optional<asio::ssl::context> tls_;
  ConnectionContext context_{config_, handler_, connections_, nullptr};
  asio::io_context io_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{
      asio::make_work_guard(io_)};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  std::uint16_t port_ = 0;
  std::atomic<bool> draining_{false};
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(HttpConfig config, Handler handler)
    : core_(std::make_unique<Core>(std::move(config), std::move(handler))) {}

HttpServer::~HttpServer() {
  core_->stop();
}

Status HttpServer::start() {
  return core_->start();
}

std::uint16_t HttpServer::port() const {
  return core_->port();
}

std::int64_t HttpServer::connections() const {
  return core_->connections();
}

void HttpServer::drain() {
  core_->drain();
}

void HttpServer::stop() {
  core_->stop();
}

}  // namespace tandem::http
