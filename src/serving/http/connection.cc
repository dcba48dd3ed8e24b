#include "serving/http/connection.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <deque>
#include <optional>
#include <utility>

#include "foundation/json/json.h"
#include "foundation/obs/log.h"
#include "serving/http/websocket_connection.h"

namespace tandem::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using Parser = beast::http::request_parser<beast::http::string_body>;

constexpr std::size_t kReadBytes = 4096;

Request take_request(Parser& parser, std::string peer) {
  auto message = parser.release();
  Request request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  request.query = target.substr(std::min(mark + 1, target.size()));
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  request.peer = std::move(peer);
  return request;
}

std::string error_json(const std::string& message) {
  return json::dump(json::Object{{"error", json::Object{{"message", message},
                                                        {"type", "invalid_request_error"},
                                                        {"param", nullptr},
                                                        {"code", nullptr}}}});
}

// What to tell a client whose request cannot be read; nothing if there is nobody to tell.
std::optional<Response> refusal(error_code error, const HttpConfig& config) {
  namespace http = beast::http;
  Response response;
  if (error == http::error::body_limit) {
    response.status = 413;
    response.body =
        error_json(fmt::format("the body is larger than {} bytes", config.max_body_bytes));
  } else if (error == http::error::header_limit) {
    response.status = 431;
    response.body =
        error_json(fmt::format("the headers are larger than {} bytes", config.max_header_bytes));
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    response.status = 400;
    response.body = error_json("this is no HTTP/1.1 request: " + error.message());
  } else {
    return std::nullopt;
  }
  return response;
}

template <typename Stream>
class Connection final : public OpenConnection,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, const ConnectionContext& context, std::string peer)
      : stream_(std::move(stream)),
        context_(context),
        peer_(std::move(peer)),
        idle_timer_(lowest().get_executor()) {}

  ~Connection() override { context_.connections.remove(this); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      lowest().expires_after(std::chrono::seconds(context_.config.header_timeout_s));
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (!error) {
                                  self->watch();
                                }
                              });
    } else {
      asio::dispatch(lowest().get_executor(), [self = this->shared_from_this()] { self->watch(); });
    }
  }

  void drain() override {
    asio::post(lowest().get_executor(), [self = this->shared_from_this()] {
      self->draining_ = true;
      if (self->state_ == State::kIdle) {
        self->close_now();
      }
    });
  }

  void close() override {
    asio::post(lowest().get_executor(), [self = this->shared_from_this()] { self->close_now(); });
  }

 private:
  enum class State {
    kIdle,       // waits for the first byte of a request
    kReading,    // reads a request
    kAnswering,  // an Exchange is open
    kClosed,
  };

  class ConnectionExchange;

  PlainStream& lowest() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  // One read is always pending between requests and during answers: it brings the first bytes of
  // the next request, or the news that the client has gone.
  void watch() {
    if (watching_ || state_ == State::kClosed) {
      return;
    }
    if (buffer_.size() > 0) {
      if (state_ == State::kIdle) {
        read_header();
      }
      return;  // a pipelined request waits; the client is there
    }
    watching_ = true;
    lowest().expires_never();
    if (state_ == State::kIdle) {
      limit_idle_time();
    }
    stream_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = this->shared_from_this()](error_code error, std::size_t n) {
                              self->watching_ = false;
                              if (error) {
                                self->close_now();
                                return;
                              }
                              self->buffer_.commit(n);
                              if (self->state_ == State::kIdle) {
                                self->read_header();
                              }
                            });
  }

  void read_header() {
    state_ = State::kReading;
    idle_timer_.cancel();
    parser_.emplace();
    parser_->header_limit(context_.config.max_header_bytes);
    parser_->body_limit(context_.config.max_body_bytes);
    lowest().expires_after(std::chrono::seconds(context_.config.header_timeout_s));
    beast::http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](error_code error, std::size_t) {
          if (error) {
            self->refuse(error);
          } else {
            self->read_body();
          }
        });
  }

  void read_body() {
    if (beast::iequals(parser_->get()[beast::http::field::expect], "100-continue")) {
      enqueue("HTTP/1.1 100 Continue\r\n\r\n");
    }
    lowest().expires_after(std::chrono::seconds(context_.config.body_timeout_s));
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, std::size_t) {
                              if (error) {
                                self->refuse(error);
                              } else {
                                self->answer();
                              }
                            });
  }

  void refuse(error_code error) {
    const auto response = refusal(error, context_.config);
    if (!response) {
      close_now();
      return;
    }
    close_after_write_ = true;
    state_ = State::kAnswering;
    enqueue(response_head(response->status, response->content_type, {},
                          static_cast<long long>(response->body.size()), false) +
            response->body);
    finish_if_written();
  }

  void answer() {
    state_ = State::kAnswering;
    answered_ = false;
    is_head_ = parser_->get().method() == beast::http::verb::head;
    can_chunk_ = parser_->get().version() >= 11;
    close_after_write_ = !parser_->get().keep_alive() || draining_;
    const bool may_upgrade = beast::websocket::is_upgrade(parser_->get());
    if (may_upgrade) {
      upgrade_.emplace(parser_->get().base());
    }
    Request request = take_request(*parser_, peer_);
    request.wants_websocket = may_upgrade;
    auto exchange = std::make_shared<ConnectionExchange>(this->shared_from_this(),
                                                         std::move(request), generation_);
    parser_.reset();
    if (!may_upgrade) {
      watch();  // not now: a WebSocket reads for itself
    }
    context_.handler(std::move(exchange));
    upgrade_.reset();
    if (may_upgrade) {
      watch();
    }
  }

  void accept_websocket(std::uint64_t generation, WebSocketOpen open) {
    TANDEM_CHECK(generation == generation_ && !answered_ && upgrade_.has_value(),
                 "a WebSocket needs an open request that asks for one");
    ++generation_;
    answered_ = true;
    state_ = State::kClosed;
    start_websocket(std::move(stream_), context_, peer_, std::move(*upgrade_), std::move(open));
  }

  // Output. All on the strand.

  void enqueue(std::string bytes) {
    if (state_ == State::kClosed) {
      return;
    }
    pending_bytes_ += static_cast<std::int64_t>(bytes.size());
    if (pending_bytes_ >
        context_.config.max_pending_bytes + static_cast<std::int64_t>(bytes.size())) {
      obs::log_warning("client {} reads too slowly: {} bytes wait; connection closed", peer_,
                       pending_bytes_);
      close_now();
      return;
    }
    queue_.push_back(std::move(bytes));
    if (!writing_) {
      write_next();
    }
  }

  void write_next() {
    writing_ = true;
    current_.clear();
    for (std::string& piece : queue_) {
      current_ += piece;
    }
    queue_.clear();
    lowest().expires_after(std::chrono::seconds(context_.config.write_timeout_s));
    asio::async_write(
        stream_, asio::buffer(current_),
        [self = this->shared_from_this()](error_code error, std::size_t) { self->written(error); });
  }

  void written(error_code error) {
    writing_ = false;
    if (error) {
      close_now();
      return;
    }
    pending_bytes_ -= static_cast<std::int64_t>(current_.size());
    if (current_.capacity() > kReadBytes) {
      std::string().swap(current_);
    }
    if (!queue_.empty()) {
      write_next();
      return;
    }
    if (answered_) {
      finish_if_written();
    }
  }

  // The answer is complete: the next request, or the end.
  void finish_if_written() {
    answered_ = true;
    if (writing_ || !queue_.empty() || state_ != State::kAnswering) {
      return;
    }
    ++generation_;
    if (close_after_write_ || draining_) {
      close_now();
      return;
    }
    state_ = State::kIdle;
    if (watching_) {
      limit_idle_time();
    } else {
      watch();
    }
  }

  // A timer of its own: the stream's cannot be changed while a read is pending.
  void limit_idle_time() {
    idle_timer_.expires_after(std::chrono::seconds(context_.config.idle_timeout_s));
    idle_timer_.async_wait([self = this->weak_from_this()](error_code stopped) {
      const auto connection = self.lock();
      if (!stopped && connection && connection->state_ == State::kIdle) {
        connection->close_now();
      }
    });
  }

  void close_now() {
    if (state_ == State::kClosed) {
      return;
    }
    const bool was_answering = state_ == State::kAnswering && !answered_;
    state_ = State::kClosed;
    queue_.clear();
    error_code ignored;
    lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    lowest().close();
    idle_timer_.cancel();
    ++generation_;
    if (was_answering && on_disconnect_) {
      std::exchange(on_disconnect_, nullptr)();
    }
    on_disconnect_ = nullptr;
  }

  // Calls of an Exchange; `generation` tells late calls of an earlier one.

  void respond(std::uint64_t generation, Response response) {
    if (generation != generation_ || answered_) {
      return;
    }
    on_disconnect_ = nullptr;
    std::string bytes = response_head(response.status, response.content_type, response.headers,
                                      static_cast<long long>(response.body.size()),
                                      !close_after_write_ && !draining_);
    if (!is_head_) {
      bytes += response.body;
    }
    enqueue(std::move(bytes));
    finish_if_written();
  }

  void begin_stream(std::uint64_t generation, const Headers& headers) {
    if (generation != generation_ || answered_) {
      return;
    }
    if (!can_chunk_) {
      close_after_write_ = true;
    }
    std::string head =
        response_head(200, "text/event-stream", headers, -1, !close_after_write_ && !draining_);
    if (!can_chunk_) {
      const std::string_view line = "Transfer-Encoding: chunked\r\n";
      head.erase(head.find(line), line.size());
    }
    enqueue(std::move(head));
  }

  void write(std::uint64_t generation, const std::string& piece) {
    if (generation == generation_ && !answered_ && !piece.empty()) {
      enqueue(can_chunk_ ? chunk(piece) : piece);
    }
  }

  void end_stream(std::uint64_t generation, bool keep_alive) {
    if (generation != generation_ || answered_) {
      return;
    }
    on_disconnect_ = nullptr;
    close_after_write_ = close_after_write_ || !keep_alive;
    if (can_chunk_) {
      enqueue(std::string(kLastChunk));
    }
    finish_if_written();
  }

  void set_on_disconnect(std::uint64_t generation, std::function<void()> callback) {
    if (generation != generation_ || state_ == State::kClosed) {
      callback();
    } else if (!answered_) {
      on_disconnect_ = std::move(callback);
    }
  }

  Stream stream_;
  const ConnectionContext& context_;
  std::string peer_;
  asio::steady_timer idle_timer_;
  State state_ = State::kIdle;
  bool watching_ = false;
  bool draining_ = false;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<UpgradeRequest> upgrade_;

  // The open exchange.
  std::uint64_t generation_ = 0;
  bool answered_ = true;
  bool is_head_ = false;
  bool can_chunk_ = true;
  bool close_after_write_ = false;
  std::function<void()> on_disconnect_;

  std::deque<std::string> queue_;
  std::string current_;
  std::int64_t pending_bytes_ = 0;
  bool writing_ = false;
};

template <typename Stream>
class Connection<Stream>::ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, Request request,
                     std::uint64_t generation)
      : connection_(std::move(connection)), request_(std::move(request)), generation_(generation) {}

  const Request& request() const override { return request_; }

  void respond(Response response) override {
    run([response = std::move(response)](Connection& c, std::uint64_t g) mutable {
      c.respond(g, std::move(response));
    });
  }

  void begin_stream(Headers headers) override {
    run([headers = std::move(headers)](Connection& c, std::uint64_t g) {
      c.begin_stream(g, headers);
    });
  }

  void write(std::string piece) override {
    run([piece = std::move(piece)](Connection& c, std::uint64_t g) { c.write(g, piece); });
  }

  void end_stream(bool keep_alive) override {
    run([keep_alive](Connection& c, std::uint64_t g) { c.end_stream(g, keep_alive); });
  }

  void accept_websocket(WebSocketOpen open) override {
    connection_->accept_websocket(generation_, std::move(open));
  }

  void on_disconnect(std::function<void()> callback) override {
    run([callback = std::move(callback)](Connection& c, std::uint64_t g) mutable {
      c.set_on_disconnect(g, std::move(callback));
    });
  }

  void post(std::function<void()> function) override {
    asio::post(connection_->lowest().get_executor(), std::move(function));
  }

 private:
  // On the strand now if this is one of its threads, else soon.
  template <typename Call>
  void run(Call call) {
    asio::dispatch(connection_->lowest().get_executor(),
                   [connection = connection_, generation = generation_,
                    call = std::move(call)]() mutable { call(*connection, generation); });
  }

  std::shared_ptr<Connection> connection_;
  Request request_;
  std::uint64_t generation_;
};

std::string peer_name(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "gone" : endpoint.address().to_string();
}

template <typename Stream>
void launch(Stream stream, const ConnectionContext& context, std::string peer) {
  auto connection =
      std::make_shared<Connection<Stream>>(std::move(stream), context, std::move(peer));
  if (context.connections.add(connection, context.config.max_connections)) {
    connection->start();
  } else {
    obs::log_warning("connection refused: {} are open", context.config.max_connections);
  }
}

}  // namespace

bool ConnectionSet::add(const std::shared_ptr<OpenConnection>& connection, std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  if (static_cast<std::int64_t>(open_.size()) >= limit) {
    return false;
  }
  open_.emplace(connection.get(), connection);
  return true;
}

void ConnectionSet::remove(OpenConnection* connection) {
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
}

std::int64_t ConnectionSet::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(open_.size());
}

void ConnectionSet::for_each(const std::function<void(OpenConnection&)>& visit) const {
  std::vector<std::shared_ptr<OpenConnection>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : open_) {
      if (auto connection = weak.lock()) {
        all.push_back(std::move(connection));
      }
    }
  }
  for (const auto& connection : all) {
    visit(*connection);
  }
}

void start_connection(asio::ip::tcp::socket socket, const ConnectionContext& context) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  std::string peer = peer_name(socket);
  if (context.tls != nullptr) {
    launch(TlsStream(PlainStream(std::move(socket)), *context.tls), context, std::move(peer));
  } else {
    launch(PlainStream(std::move(socket)), context, std::move(peer));
  }
}

}  // namespace tandem::http
