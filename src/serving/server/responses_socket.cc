#include "serving/server/responses_socket.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "serving/protocol/sse_frame.h"

namespace tandem::server {
namespace {

constexpr std::size_t kMaxWaitingTurns = 16;
constexpr TimeUs kMaxAgeUs = TimeUs{3600} * 1'000'000;

// {"type": "error", "status", "error": {"type", "code", "message", "param"}}.
json::Object socket_error(const protocol::ApiError& error) {
  json::Object body = protocol::openai_error_body(error);
  json::Object& payload = body["error"].get_object();
  if (payload["code"].is_null()) {
    payload["code"] = error.type;
  }
  return {{"type", "error"}, {"status", error.http_status}, {"error", body["error"]}};
}

class ResponsesSocket;

// The Exchange of one turn: what a job answers becomes messages of the socket.
class TurnExchange final : public http::Exchange {
 public:
  TurnExchange(std::shared_ptr<ResponsesSocket> socket, http::Request request)
      : socket_(std::move(socket)), request_(std::move(request)) {}

  const http::Request& request() const override { return request_; }

  void respond(http::Response response) override;
  void begin_stream(http::Headers /*headers*/) override {}
  void write(std::string piece) override;
  void end_stream(bool keep_alive) override;
  void accept_websocket(http::WebSocketOpen /*open*/) override {
    TANDEM_CHECK(false, "a turn of a WebSocket is no upgrade");
  }
  void on_disconnect(std::function<void()> callback) override;
  void post(std::function<void()> function) override;

 private:
  std::shared_ptr<ResponsesSocket> socket_;
  http::Request request_;
};

class ResponsesSocket : public std::enable_shared_from_this<ResponsesSocket> {
 public:
  ResponsesSocket(ServerContext& context, ResponsesApi& api, const RouteCall& call,
                  http::WebSocketPtr socket)
      : context_(context),
        api_(api),
        owner_(call.owner),
        path_(call.exchange->request().path),
        peer_(call.exchange->request().peer),
        socket_(std::move(socket)),
        opened_us_(context.clock.now_us()) {}

  void on_message(std::string text) {
    if (waiting_.size() >= kMaxWaitingTurns) {
      protocol::ApiError error = protocol::to_api_error(
          resource_exhausted("{} turns wait on this connection already", waiting_.size()));
      send_error(error);
      return;
    }
    waiting_.push_back(std::move(text));
    next_turn();
  }

  void on_close() {
    is_closed_ = true;
    waiting_.clear();
    if (on_disconnect_) {
      std::exchange(on_disconnect_, nullptr)();
    }
  }

  void on_drain() {
    is_draining_ = true;
    waiting_.clear();
    if (!is_busy_) {
      socket_->finish();
    }
  }

  // Of the turn that runs.

  void refuse(const protocol::ApiError& error) {
    memory_.forget(previous_);  // a failed continuation takes its response away
    send_error(error);
    turn_is_over();
  }

  void refuse_with(const http::Response& response) {
    memory_.forget(previous_);
    const Result<json::Value> body = json::parse(response.body);
    const json::Value* error = body.ok() ? json::find(*body, "error") : nullptr;
    json::Object payload =
        error != nullptr && error->is_object() ? error->get_object() : json::Object();
    if (payload["code"].is_null()) {
      payload["code"] = payload["type"];
    }
    send({{"type", "error"}, {"status", response.status}, {"error", std::move(payload)}});
    turn_is_over();
  }

  void write(std::string_view frames) {
    protocol::each_sse_data(frames, [this](std::string_view data) { send_event(data); });
  }

  void end_turn(bool is_whole) {
    if (!is_whole) {
      memory_.forget(previous_);
    }
    turn_is_over();
  }

  void set_on_disconnect(std::function<void()> callback) {
    if (is_closed_) {
      callback();
    } else {
      on_disconnect_ = std::move(callback);
    }
  }

  void post(std::function<void()> function) { socket_->post(std::move(function)); }

 private:
  void next_turn() {
    while (!is_busy_ && !is_closed_ && !waiting_.empty()) {
      const std::string text = std::move(waiting_.front());
      waiting_.pop_front();
      is_busy_ = true;
      previous_.clear();
      start_turn(text);
    }
  }

  void start_turn(const std::string& text) {
    if (context_.clock.now_us() - opened_us_ > kMaxAgeUs) {
      protocol::ApiError error =
          protocol::bad_field("", "this connection is older than 60 minutes; open a new one");
      error.code = "websocket_connection_limit_reached";
      is_draining_ = true;
      waiting_.clear();
      refuse(error);
      return;
    }
    Result<json::Value> body = json::parse(text);
    if (!body.ok() || !body->is_object()) {
      refuse(protocol::bad_field("", "the message is no JSON object"));
      return;
    }
    json::Object& fields = body->get_object();
    const json::Value* type = fields.if_contains("type");
    if (type == nullptr || *type != "response.create") {
      refuse(protocol::bad_field("type",
                                 "'type' is not 'response.create', the only message that "
                                 "this connection takes"));
      return;
    }
    if (const json::Value* previous = fields.if_contains("previous_response_id")) {
      previous_ = previous->is_string() ? std::string(previous->get_string()) : "";
    }
    fields["stream"] = true;
    run(*body);
  }

  void run(const json::Value& body) {
    if (const auto over = context_.limiter.admit_again(owner_)) {
      refuse(*over);
      return;
    }
    protocol::Parsed<PreparedReply> prepared = api_.create(body, owner_, &memory_);
    if (!prepared.ok()) {
      refuse(prepared.error());
      return;
    }
    if (const auto error = check_model(context_, prepared->task.model)) {
      refuse(*error);
      return;
    }
    http::Request request;
    request.method = "POST";
    request.path = path_;
    request.peer = peer_;
    RouteCall call;
    call.exchange = std::make_shared<TurnExchange>(shared_from_this(), std::move(request));
    call.owner = owner_;
    run_task(context_, call, std::move(prepared->task), std::move(prepared->reply),
             context_.ids.make("req_"));
  }

  // The stream's own error event, with the status that this transport wants.
  void send_event(std::string_view data) {
    constexpr std::string_view kError = R"({"type":"error",)";
    if (data.substr(0, kError.size()) != kError) {
      socket_->send(std::string(data));
      return;
    }
    json::Value event = json::parse(data).value();
    event.as_object()["status"] = 500;
    send(event.get_object());
  }

  void send(const json::Object& message) { socket_->send(json::dump(message)); }

  void send_error(const protocol::ApiError& error) { send(socket_error(error)); }

  void turn_is_over() {
    is_busy_ = false;
    on_disconnect_ = nullptr;
    if (is_draining_) {
      socket_->finish();
      return;
    }
    socket_->post([self = shared_from_this()] { self->next_turn(); });
  }

  ServerContext& context_;
  ResponsesApi& api_;
  std::string owner_;
  std::string path_;
  std::string peer_;
  http::WebSocketPtr socket_;
  TimeUs opened_us_;
  ConnectionMemory memory_;
  std::deque<std::string> waiting_;
  std::string previous_;  // what the turn that runs continues from
  bool is_busy_ = false;
  bool is_closed_ = false;
  bool is_draining_ = false;
  std::function<void()> on_disconnect_;
};

void TurnExchange::respond(http::Response response) {
  socket_->refuse_with(response);
}

void TurnExchange::write(std::string piece) {
  socket_->write(piece);
}

void TurnExchange::end_stream(bool keep_alive) {
  socket_->end_turn(keep_alive);
}

void TurnExchange::on_disconnect(std::function<void()> callback) {
  socket_->set_on_disconnect(std::move(callback));
}

void TurnExchange::post(std::function<void()> function) {
  socket_->post(std::move(function));
}

}  // namespace

void accept_responses_socket(ServerContext& context, ResponsesApi& api, const RouteCall& call) {
  if (!call.exchange->request().wants_websocket) {
    protocol::ApiError error = protocol::bad_field(
        "", "GET on this path opens a WebSocket; send POST to create a response");
    error.http_status = 426;
    respond_error(context, *call.exchange, error, {{"Upgrade", "websocket"}});
    return;
  }
  context.metrics.response(101);
  call.exchange->accept_websocket([&context, &api, call](http::WebSocketPtr socket) {
    const auto session = std::make_shared<ResponsesSocket>(context, api, call, std::move(socket));
    http::WebSocketHandlers handlers;
    handlers.on_message = [session](std::string text) { session->on_message(std::move(text)); };
    handlers.on_close = [session] { session->on_close(); };
    handlers.on_drain = [session] { session->on_drain(); };
    return handlers;
  });
}

}  // namespace tandem::server
