#include "foundation/net/http_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <thread>

namespace tandem::net {
namespace {

using boost::asio::ip::tcp;

// Accepts one connection, reads until the blank line, sends `reply`, and closes (or holds).
class OneShotServer {
 public:
  explicit OneShotServer(std::string reply, int hold_ms = 0)
      : acceptor_(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)),
        thread_([this, reply = std::move(reply), hold_ms] {
          tcp::socket socket(io_);
          acceptor_.accept(socket);
          boost::system::error_code error;
          boost::asio::read_until(socket, boost::asio::dynamic_buffer(request_), "\r\n\r\n", error);
          boost::asio::write(socket, boost::asio::buffer(reply), error);
          std::this_thread::sleep_for(std::chrono::milliseconds(hold_ms));
        }) {}

  ~OneShotServer() { thread_.join(); }

  Url url() const {
    return *parse_url("http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) +
                      "/v1/");
  }

  const std::string& request() const { return request_; }

 private:
  boost::asio::io_context io_;
  std::string request_;
  tcp::acceptor acceptor_;
  std::thread thread_;
};

TEST(ParseUrl, AcceptsAndRefuses) {
  const Url url = *parse_url("https://[::1]:8443/v1/");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, "8443");
  EXPECT_EQ(url.prefix, "/v1");
  EXPECT_EQ(parse_url("http://spark").value().port, "80");
  for (const char* bad : {"spark:8000", "ftp://x", "http://", "http://a:b", "http://a:"}) {
    EXPECT_EQ(parse_url(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(HttpFetch, ReadsLengthAndChunkedBodies) {
  {
    const OneShotServer server("HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc");
    const HttpResponse response = *http_fetch(server.url(), {.target = "/models"});
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body, "abc");
    EXPECT_EQ(response.header("x-a"), "b");
    EXPECT_EQ(server.request().substr(0, 24), "GET /v1/models HTTP/1.1\r");
  }
  const OneShotServer server(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  std::string seen;
  const auto response = http_fetch(server.url(), {}, [&seen](std::string_view piece) {
    seen += piece;
    return true;
  });
  EXPECT_TRUE(response.ok());
  EXPECT_EQ(seen, "abcde");
}

TEST(HttpFetch, NamesEachKindOfFailure) {
  {
    const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    const Status status = http_fetch(server.url(), {}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("after 3 bytes"), std::string::npos) << status.message();
  }
  {
    const OneShotServer server("hello\r\n\r\n");
    EXPECT_EQ(http_fetch(server.url(), {}).status().code(), StatusCode::kDataLoss);
  }
  {
    const OneShotServer server("HTTP/1.1 200 OK\r\n", 400);
    EXPECT_EQ(http_fetch(server.url(), {.idle_timeout_ms = 100}).status().code(),
              StatusCode::kDeadlineExceeded);
  }
  {
    const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    const auto stop = [](std::string_view) { return false; };
    EXPECT_EQ(http_fetch(server.url(), {}, stop).status().code(), StatusCode::kCancelled);
  }
  EXPECT_EQ(http_fetch(*parse_url("http://127.0.0.1:1"), {}).status().code(),
            StatusCode::kUnavailable);
}

TEST(HttpFetch, GivesUpWhenTheCallerCancelsASilentServer) {
  std::atomic<bool> cancel{false};
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 600);
  std::jthread later([&cancel] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel = true;
  });
  const auto start = std::chrono::steady_clock::now();
  const auto response = http_fetch(server.url(), {.target = "/models", .cancel = &cancel});
  const auto passed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(response.status().code(), StatusCode::kCancelled) << response.status().to_string();
  EXPECT_LT(passed, std::chrono::milliseconds(550));
}

}  // namespace
}  // namespace tandem::net
