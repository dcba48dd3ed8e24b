#include "foundation/net/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <optional>

namespace tandem::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

using ErrorCode = boost::system::error_code;

constexpr auto kCancelPoll = std::chrono::milliseconds(100);

bool is_cancelled(const HttpRequest& request) {
  return request.cancel != nullptr && request.cancel->load();
}

// Runs one asynchronous operation to its end; the stream's own timer bounds it, and the caller's
// cancel flag ends it early.
template <typename Start>
ErrorCode run_one(asio::io_context& io, beast::tcp_stream& stream, const HttpRequest& request,
                  Start start) {
  std::optional<ErrorCode> result;
  start([&result](ErrorCode error, auto&&...) { result = error; });
  io.restart();
  if (request.cancel == nullptr) {
    io.run();
  }
  while (!result.has_value() && !io.stopped()) {
    io.run_for(kCancelPoll);
    if (is_cancelled(request)) {
      stream.cancel();
    }
  }
  return result.value_or(asio::error::operation_aborted);
}

Status describe(const ErrorCode& error, const Url& url, std::string_view doing) {
  if (error == asio::error::operation_aborted) {
    return cancelled("{}:{}: given up while {}", url.host, url.port, doing);
  }
  if (error == beast::error::timeout) {
    return deadline_exceeded("{}:{}: timed out while {}", url.host, url.port, doing);
  }
  if (error.category() == http::make_error_code(http::error::end_of_stream).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return data_loss("{}:{}: not HTTP while {}: {}", url.host, url.port, doing, error.message());
  }
  return unavailable("{}:{}: {} failed: {}", url.host, url.port, doing, error.message());
}

http::request<http::string_body> make_request(const Url& url, const HttpRequest& request) {
  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(url.prefix + request.target);
  message.version(11);
  message.set(http::field::host, url.host + ":" + url.port);
  message.set(http::field::user_agent, "tandem");
  message.set(http::field::connection, "close");
  for (const auto& [name, value] : request.headers) {
    message.set(name, value);
  }
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

// The exchange after the connection stands, over TCP or TLS.
template <typename Stream>
class Exchange {
 public:
  Exchange(asio::io_context& io, Stream& stream, const Url& url, const HttpRequest& request)
      : io_(io), stream_(stream), url_(url), request_(request) {
    parser_.body_limit(boost::none);
  }

  Result<HttpResponse> run(const BodySink& sink) {
    http::request<http::string_body> message = make_request(url_, request_);
    arm();
    ErrorCode error =
        step([&](auto done) { http::async_write(stream_, message, std::move(done)); });
    if (error) {
      return describe(error, url_, "sending the request");
    }
    arm();
    error = step(
        [&](auto done) { http::async_read_header(stream_, buffer_, parser_, std::move(done)); });
    if (error) {
      return describe(error, url_, "waiting for the response");
    }
    HttpResponse response;
    response.status = static_cast<int>(parser_.get().result_int());
    for (const auto& field : parser_.get()) {
      response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    TANDEM_TRY(read_body(response, sink));
    return response;
  }

 private:
  template <typename Start>
  ErrorCode step(Start start) {
    return run_one(io_, beast::get_lowest_layer(stream_), request_, std::move(start));
  }

  void arm() {
    beast::get_lowest_layer(stream_).expires_after(
        std::chrono::milliseconds(request_.idle_timeout_ms));
  }

  Status read_body(HttpResponse& response, const BodySink& sink) {
    std::size_t received = 0;
    char piece[16384];
    while (!parser_.is_done()) {
      parser_.get().body().data = piece;
      parser_.get().body().size = sizeof(piece);
      arm();
      ErrorCode error = step(
          [&](auto done) { http::async_read_some(stream_, buffer_, parser_, std::move(done)); });
      if (error == http::error::need_buffer) {
        error = {};
      }
      const std::string_view data(piece, sizeof(piece) - parser_.get().body().size);
      received += data.size();
      if (!data.empty() && sink != nullptr && !sink(data)) {
        return cancelled("the reader closed the stream after {} bytes", received);
      }
      if (sink == nullptr) {
        response.body += data;
      }
      if (error) {
        return describe(error, url_, fmt::format("reading the body after {} bytes", received));
      }
    }
    return ok_status();
  }

  asio::io_context& io_;
  Stream& stream_;
  const Url& url_;
  const HttpRequest& request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
};

Status connect(asio::io_context& io, beast::tcp_stream& stream, const Url& url,
               const HttpRequest& request) {
  tcp::resolver resolver(io);
  ErrorCode error;
  const auto endpoints = resolver.resolve(url.host, url.port, error);
  if (error) {
    return unavailable("cannot resolve {}: {}", url.host, error.message());
  }
  stream.expires_after(std::chrono::milliseconds(request.connect_timeout_ms));
  error = run_one(io, stream, request,
                  [&](auto done) { stream.async_connect(endpoints, std::move(done)); });
  if (error) {
    return describe(error, url, "connecting");
  }
  return ok_status();
}

Result<HttpResponse> fetch_tls(asio::io_context& io, const Url& url, const HttpRequest& request,
                               const BodySink& sink) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  ErrorCode error;
  context.set_default_verify_paths(error);
  if (!request.ca_file.empty()) {
    context.load_verify_file(request.ca_file, error);
    if (error) {
      return not_found("cannot read the CA file {}: {}", request.ca_file, error.message());
    }
  }
  context.set_verify_mode(asio::ssl::verify_peer);
  beast::ssl_stream<beast::tcp_stream> stream(io, context);
  stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
  TANDEM_TRY(connect(io, beast::get_lowest_layer(stream), url, request));
  error = run_one(io, beast::get_lowest_layer(stream), request, [&](auto done) {
    stream.async_handshake(asio::ssl::stream_base::client, std::move(done));
  });
  if (error) {
    return describe(error, url, "the TLS handshake");
  }
  return Exchange(io, stream, url, request).run(sink);
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  Url url;
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) {
    return invalid_argument("'{}' is not a URL; expected something like http://127.0.0.1:8000",
                            text);
  }
  url.scheme = std::string(text.substr(0, mark));
  if (url.scheme != "http" && url.scheme != "https") {
    return invalid_argument("'{}': expected http:// or https://", text);
  }
  std::string_view rest = text.substr(mark + 3);
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    std::string_view prefix = rest.substr(slash);
    while (!prefix.empty() && prefix.back() == '/') {
      prefix.remove_suffix(1);
    }
    url.prefix = std::string(prefix);
    rest = rest.substr(0, slash);
  }
  url.port = url.scheme == "https" ? "443" : "80";
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    url.port = std::string(rest.substr(colon + 1));
    rest = rest.substr(0, colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  }
  url.host = std::string(rest);
  if (url.host.empty() || url.port.empty() ||
      url.port.find_first_not_of("0123456789") != std::string::npos) {
    return invalid_argument("'{}': expected a host and a numeric port", text);
  }
  return url;
}

std::string HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (beast::iequals(key, name)) {
      return value;
    }
  }
  return {};
}

Result<HttpResponse> http_fetch(const Url& url, const HttpRequest& request, const BodySink& sink) {
  asio::io_context io;
  if (url.scheme == "https") {
    return fetch_tls(io, url, request, sink);
  }
  beast::tcp_stream stream(io);
  TANDEM_TRY(connect(io, stream, url, request));
  return Exchange(io, stream, url, request).run(sink);
}

}  // namespace tandem::net
