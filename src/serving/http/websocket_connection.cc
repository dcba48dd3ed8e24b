#include "serving/http/websocket_connection.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <deque>
#include <utility>

#include "foundation/obs/log.h"

namespace tandem::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <typename Stream>
class WebSocketConnection final : public OpenConnection,
                                  public WebSocket,
                                  public std::enable_shared_from_this<WebSocketConnection<Stream>> {
 public:
  WebSocketConnection(Stream stream, const ConnectionContext& context, std::string peer,
                      UpgradeRequest request, WebSocketOpen open)
      : socket_(std::move(stream)),
        context_(context),
        peer_(std::move(peer)),
        request_(std::move(request)),
        open_(std::move(open)) {}

  ~WebSocketConnection() override { context_.connections.remove(this); }

  WebSocketConnection(const WebSocketConnection&) = delete;
  WebSocketConnection& operator=(const WebSocketConnection&) = delete;

  // REQUIRES: on the stream's strand.
  void start() {
    beast::get_lowest_layer(socket_).expires_never();
    auto timeout = websocket::stream_base::timeout::suggested(beast::role_type::server);
    timeout.keep_alive_pings = true;
    socket_.set_option(timeout);
    socket_.set_option(websocket::stream_base::decorator(
        [](websocket::response_type& response) { response.set("Server", "tandem"); }));
    socket_.read_message_max(context_.config.max_body_bytes);
    socket_.async_accept(request_, [self = this->shared_from_this()](error_code error) {
      if (error) {
        self->end();
        return;
      }
      self->is_open_ = true;
      self->handlers_ = std::exchange(self->open_, nullptr)(self);
      self->read();
    });
  }

  void drain() override {
    post([self = this->shared_from_this()] {
      if (const auto on_drain = self->handlers_.on_drain) {
        on_drain();
      }
    });
  }

  void close() override {
    post([self = this->shared_from_this()] { self->close_now(); });
  }

  void finish() override {
    asio::dispatch(socket_.get_executor(), [self = this->shared_from_this()] {
      self->closing_ = true;
      self->close_if_written();
    });
  }

  void send(std::string text) override {
    asio::dispatch(socket_.get_executor(),
                   [self = this->shared_from_this(), text = std::move(text)]() mutable {
                     self->enqueue(std::move(text));
                   });
  }

  void post(std::function<void()> function) override {
    asio::post(socket_.get_executor(), std::move(function));
  }

 private:
  void read() {
    socket_.async_read(buffer_, [self = this->shared_from_this()](error_code error, std::size_t) {
      if (error) {
        self->end();
        return;
      }
      std::string text = beast::buffers_to_string(self->buffer_.data());
      self->buffer_.consume(self->buffer_.size());
      if (self->is_open_ && !self->closing_) {
        const auto on_message = self->handlers_.on_message;  // it may end the connection
        on_message(std::move(text));
      }
      self->read();
    });
  }

  void enqueue(std::string text) {
    if (!is_open_ || closing_) {
      return;
    }
    pending_bytes_ += static_cast<std::int64_t>(text.size());
    if (pending_bytes_ >
        context_.config.max_pending_bytes + static_cast<std::int64_t>(text.size())) {
      obs::log_warning("client {} reads too slowly: {} bytes wait; connection closed", peer_,
                       pending_bytes_);
      close_now();
      return;
    }
    queue_.push_back(std::move(text));
    if (!writing_) {
      write_next();
    }
  }

  void write_next() {
    writing_ = true;
    current_ = std::move(queue_.front());
    queue_.pop_front();
    socket_.text(true);
    socket_.async_write(
        asio::buffer(current_),
        [self = this->shared_from_this()](error_code error, std::size_t) { self->written(error); });
  }

  void written(error_code error) {
    writing_ = false;
    if (error) {
      end();
      return;
    }
    pending_bytes_ -= static_cast<std::int64_t>(current_.size());
    if (!queue_.empty()) {
      write_next();
    } else {
      close_if_written();
    }
  }

  void close_if_written() {
    if (!closing_ || !is_open_ || writing_ || !queue_.empty()) {
      return;
    }
    is_open_ = false;
    socket_.async_close(websocket::close_code::normal,
                        [self = this->shared_from_this()](error_code) { self->end(); });
  }

  void close_now() {
    error_code ignored;
    beast::get_lowest_layer(socket_).socket().shutdown(asio::ip::tcp::socket::shutdown_both,
                                                       ignored);
    beast::get_lowest_layer(socket_).close();
    end();
  }

  void end() {
    is_open_ = false;
    queue_.clear();
    const WebSocketHandlers last = std::exchange(handlers_, {});
    if (last.on_close) {
      last.on_close();
    }
  }

  websocket::stream<Stream, false> socket_;  // without compression
  const ConnectionContext& context_;
  std::string peer_;
  UpgradeRequest request_;
  WebSocketOpen open_;
  WebSocketHandlers handlers_;
  beast::flat_buffer buffer_;
  bool is_open_ = false;
  bool closing_ = false;

  std::deque<std::string> queue_;
  std::string current_;
  std::int64_t pending_bytes_ = 0;
  bool writing_ = false;
};

template <typename Stream>
void launch(Stream stream, const ConnectionContext& context, std::string peer,
            UpgradeRequest request, WebSocketOpen open) {
  const auto connection = std::make_shared<WebSocketConnection<Stream>>(
      std::move(stream), context, std::move(peer), std::move(request), std::move(open));
  // The connection that it was is still in the set: the limit was checked then.
  context.connections.add(connection, context.config.max_connections + 1);
  connection->start();
}

}  // namespace

void start_websocket(PlainStream stream, const ConnectionContext& context, std::string peer,
                     UpgradeRequest request, WebSocketOpen open) {
  launch(std::move(stream), context, std::move(peer), std::move(request), std::move(open));
}

void start_websocket(TlsStream stream, const ConnectionContext& context, std::string peer,
                     UpgradeRequest request, WebSocketOpen open) {
  launch(std::move(stream), context, std::move(peer), std::move(request), std::move(open));
}

}  // namespace tandem::http
