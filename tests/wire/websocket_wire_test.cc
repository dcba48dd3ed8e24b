// The Responses API over a WebSocket, as OpenResponses 2026-04-24 describes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>

#include "serving/protocol/sse_frame.h"
#include "tests/support/openapi_schemas.h"
#include "tests/support/response_events.h"
#include "tests/wire/wire_server.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// A client that reads with a deadline.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(io_) {
    const boost::asio::ip::tcp::endpoint server(boost::asio::ip::make_address("127.0.0.1"), port);
    socket_.next_layer().connect(server);
    const timeval deadline{10, 0};
    setsockopt(socket_.next_layer().native_handle(), SOL_SOCKET, SO_RCVTIMEO, &deadline,
               sizeof(deadline));
    socket_.handshake("127.0.0.1", "/v1/responses");
  }

  void send(const std::string& text) { socket_.write(boost::asio::buffer(text)); }

  // The next message; null once the server has closed.
  json::Value read() {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    socket_.read(buffer, error);
    return error ? json::Value()
                 : json::parse(boost::beast::buffers_to_string(buffer.data())).value();
  }

  // All events of one turn up to its terminal one; an error envelope ends it too.
  json::Array read_turn() {
    json::Array turn;
    while (true) {
      turn.push_back(read());
      const std::string type = member(turn.back(), "type");
      if (type.empty() || type == "response.completed" || type == "response.incomplete" ||
          type == "response.failed" ||
          (type == "error" && json::find(turn.back(), "sequence_number") == nullptr)) {
        return turn;
      }
    }
  }

  json::Array turn(const std::string& members) {
    send(R"({"type":"response.create","model":"deepseek-v4-flash",)" + members + "}");
    return read_turn();
  }

  void drop() { socket_.next_layer().close(); }

 private:
  boost::asio::io_context io_;
  boost::beast::websocket::stream<boost::asio::ip::tcp::socket, false> socket_;
};

ResponseEvents checked(const json::Array& turn) {
  std::string frames;
  for (const json::Value& event : turn) {
    frames += protocol::sse_frame(member(event, "type"), event);
  }
  ResponseEvents events = read_response_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  return events;
}

std::string id_of(const json::Array& turn) {
  return member(turn.back().at("response"), "id");
}

void expect_error(const json::Array& turn, const std::string& code, int status) {
  ASSERT_EQ(turn.size(), 1U);
  EXPECT_EQ(openresponses_problems("WebSocketErrorEvent", turn[0]), "");
  EXPECT_EQ(turn[0].at("error").at("code"), json::Value(code));
  EXPECT_EQ(turn[0].at("status").to_number<int>(), status);
}

std::string previous(const std::string& id) {
  return R"("previous_response_id":")" + id + R"(",)";
}

constexpr const char* kPrivate = R"("store":false,)";

TEST(WebSocketWire, TurnsInARowWithTheEventsOfTheStream) {
  WireServer server([](const std::string&) { return "hm</think>Hello!"; });
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    const ResponseEvents events = checked(client.turn(R"("input":"hi")"));
    EXPECT_EQ(events.response.at("status"), "completed");
  }
}

// The connection's own memory: chains without the store, gone with the connection.
TEST(WebSocketWire, StoreFalseChainsLiveAsLongAsTheConnection) {
  WireServer server([](const std::string&) { return "hm</think>cobalt"; });
  Client client(server.port());
  const std::string first = id_of(client.turn(std::string(kPrivate) + R"("input":"remember")"));
  const json::Array second = client.turn(kPrivate + previous(first) + R"("input":"what was it")");
  checked(second);
  EXPECT_THAT(server.prompt(1), HasSubstr("cobalt"));
  EXPECT_EQ(server.fetch("GET", "/v1/responses/" + first).status, 404);
  Client other(server.port());
  expect_error(other.turn(kPrivate + previous(id_of(second)) + R"("input":"and now")"),
               "previous_response_not_found", 400);
  checked(other.turn(std::string(kPrivate) + R"("input":"start again")"));
}

TEST(WebSocketWire, StoredResponsesCanBeContinuedOnAnyConnection) {
  WireServer server([](const std::string&) { return "hm</think>cobalt"; });
  const std::string id = id_of(Client(server.port()).turn(R"("input":"remember")"));
  checked(Client(server.port()).turn(previous(id) + R"("input":"what")"));
  EXPECT_THAT(server.prompt(1), HasSubstr("cobalt"));
}

TEST(WebSocketWire, AFailedContinuationTakesItsResponseAway) {
  WireServer server([](const std::string&) { return "hm</think>ok"; });
  Client client(server.port());
  const std::string id = id_of(client.turn(std::string(kPrivate) + R"("input":"hi")"));
  const json::Array failed =
      client.turn(kPrivate + previous(id) +
                  R"("input":[{"type":"function_call_output","call_id":"none","output":"x"}])");
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].at("status").to_number<int>(), 400);
  expect_error(client.turn(kPrivate + previous(id) + R"("input":"again")"),
               "previous_response_not_found", 400);
}

TEST(WebSocketWire, TurnsThatComeEarlyWaitInOrder) {
  WireServer server([](const std::string&) { return "hm</think>ok"; },
                    [](EngineScript& script) { script.pause_us = 2'000; });
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(R"({"type":"response.create","model":"deepseek-v4-flash","input":"turn )" +
                std::to_string(i) + R"("})");
  }
  for (int i = 0; i < 3; ++i) {
    checked(client.read_turn());
    EXPECT_THAT(server.prompt(static_cast<std::size_t>(i)), HasSubstr("turn " + std::to_string(i)));
  }
}

TEST(WebSocketWire, ErrorsAreEnvelopesAndTheConnectionGoesOn) {
  WireServer server([](const std::string&) { return "hm</think>ok"; });
  Client client(server.port());
  for (const char* text : {"no json", "[1]", R"({"type":"session.update"})",
                           R"({"type":"response.create","model":"deepseek-v4-flash"})",
                           R"({"type":"response.create","model":"other","input":"x"})"}) {
    client.send(text);
    const json::Value error = client.read();
    EXPECT_EQ(openresponses_problems("WebSocketErrorEvent", error), "") << text;
    EXPECT_GE(error.at("status").to_number<int>(), 400) << text;
  }
  checked(client.turn(R"("input":"hi")"));
}

TEST(WebSocketWire, AFailingEngineIsAnErrorAndAFailedResponse) {
  WireServer server([](const std::string&) { return "hm</think>ok"; },
                    [](EngineScript& script) { script.error = unavailable("rank 1 is gone"); });
  Client client(server.port());
  const json::Array turn = client.turn(R"("input":"hi")");
  EXPECT_EQ(checked(turn).response.at("status"), "failed");
  const json::Value& error = turn.at(turn.size() - 2);
  EXPECT_EQ(openresponses_problems("WebSocketErrorEvent", error), "");
}

TEST(WebSocketWire, AClientThatGoesEndsItsSequence) {
  WireServer server([](const std::string&) { return "hm</think>ok"; },
                    [](EngineScript& script) { script.endless = true; });
  Client client(server.port());
  client.send(R"({"type":"response.create","model":"deepseek-v4-flash","input":"hi"})");
  EXPECT_EQ(member(client.read(), "type"), "response.created");
  client.drop();
  EXPECT_TRUE(server.engine().wait_until_idle());
}

TEST(WebSocketWire, AServerThatStopsEndsTurnsAndConnections) {
  WireServer server([](const std::string&) { return "hm</think>ok"; },
                    [](EngineScript& script) { script.endless = true; });
  Client idle(server.port());
  Client busy(server.port());
  busy.send(R"({"type":"response.create","model":"deepseek-v4-flash","input":"hi"})");
  EXPECT_EQ(member(busy.read(), "type"), "response.created");
  std::thread stop([&server] { server.stop(); });
  EXPECT_EQ(member(busy.read_turn().back(), "type"), "response.failed");
  EXPECT_TRUE(busy.read().is_null());
  EXPECT_TRUE(idle.read().is_null());
  stop.join();
}

// Halves of an upgrade are ordinary requests.
TEST(WebSocketWire, OnlyAWholeUpgradeIsOne) {
  WireServer server([](const std::string&) { return "ok"; });
  EXPECT_EQ(server.fetch("GET", "/v1/responses").status, 426);
  net::HttpRequest request;
  request.target = "/v1/responses";
  request.headers = {{"Upgrade", "websocket"}};
  const auto url = net::parse_url(fmt::format("http://127.0.0.1:{}", server.port()));
  EXPECT_EQ(net::http_fetch(*url, request)->status, 426);
  request.headers = {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}};
  EXPECT_GE(net::http_fetch(*url, request)->status, 400);
  EXPECT_EQ(server.fetch("GET", "/v1/models").status, 200);
}

}  // namespace
}  // namespace tandem::testing
