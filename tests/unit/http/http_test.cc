// The HTTP server over real sockets: framing, limits, clients that leave, and the end.
#include "serving/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "foundation/net/http_client.h"

namespace tandem::http {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A flag that threads wait for.
class Event {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }

  bool wait(milliseconds time = milliseconds(10'000)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// A client that sees bytes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    timeval timeout{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }

  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  ~RawClient() { leave(); }

  void leave() {
    if (fd_ >= 0) {
      close(fd_);
      fd_ = -1;
    }
  }

  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Reads until the text holds `end` or the server closes.
  std::string read_until(std::string_view end) {
    while (text_.find(end) == std::string::npos && read_some()) {
    }
    const std::size_t found = text_.find(end);
    const std::size_t n = found == std::string::npos ? text_.size() : found + end.size();
    const std::string out = text_.substr(0, n);
    text_.erase(0, n);
    return out;
  }

  std::string read_to_end() {
    while (read_some()) {
    }
    return std::exchange(text_, {});
  }

 private:
  bool read_some() {
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) {
      return false;
    }
    text_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int fd_;
  std::string text_;
};

std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(more) + "\r\n";
}

std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more) + "\r\n" + std::string(body);
}

class Http : public ::testing::Test {
 protected:
  void start(HttpConfig config = {}) {
    server_ = std::make_unique<HttpServer>(config, [this](ExchangePtr exchange) {
      const std::string path = exchange->request().path;
      if (path == "/echo") {
        Response response;
        response.content_type = "text/plain";
        response.body = exchange->request().method + " " + exchange->request().body;
        exchange->respond(std::move(response));
      } else if (path == "/stream") {
        exchange->begin_stream({{"Cache-Control", "no-cache"}});
        exchange->write("one");
        exchange->write("two");
        exchange->end_stream(exchange->request().query != "break");
      } else if (path == "/wait") {
        exchange->on_disconnect([this] { left_.set(); });
        {
          const std::lock_guard lock(mutex_);
          waiting_ = exchange;
        }
        arrived_.set();
      } else {
        flood(exchange);
      }
    });
    const Status started = server_->start();
    ASSERT_TRUE(started.ok()) << started.to_string();
  }

  // Writes without end to a client that may not read.
  void flood(const ExchangePtr& exchange) {
    exchange->on_disconnect([this] {
      stop_flood_ = true;
      left_.set();
    });
    exchange->begin_stream({});
    flood_ = std::thread([this, exchange] {
      while (!stop_flood_) {
        exchange->write(std::string(4096, 'x'));
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  }

  void TearDown() override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.reset();
    }
    if (server_) {
      server_->stop();
    }
    stop_flood_ = true;
    if (flood_.joinable()) {
      flood_.join();
    }
  }

  ExchangePtr waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  std::unique_ptr<HttpServer> server_;
  Event arrived_;
  Event left_;
  std::mutex mutex_;
  ExchangePtr waiting_;
  std::atomic<bool> stop_flood_{false};
  std::thread flood_;
};

TEST_F(Http, KeepsAConnectionAndAnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(server_->port());
  client.send(post("/echo", "a") + post("/echo", "bb") + get("/echo"));
  EXPECT_THAT(client.read_until("POST a"), HasSubstr("Connection: keep-alive"));
  client.read_until("POST bb");
  client.read_until("GET ");
  client.send(post("/echo", "again"));
  EXPECT_THAT(client.read_until("POST again"), HasSubstr("200 OK"));
}

TEST_F(Http, ClosesWhenAsked) {
  start();
  RawClient client(server_->port());
  client.send(get("/echo", "Connection: close\r\n"));
  EXPECT_THAT(client.read_to_end(), HasSubstr("Connection: close"));
}

TEST_F(Http, HeadHasNoBody) {
  start();
  RawClient client(server_->port());
  client.send("HEAD /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, HasSubstr("Content-Length: 5"));
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(Http, StreamsInChunks) {
  start();
  RawClient client(server_->port());
  client.send(get("/stream"));
  const std::string answer = client.read_until("0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("text/event-stream"));
  EXPECT_THAT(answer, HasSubstr("3\r\none\r\n3\r\ntwo\r\n"));
  client.send(get("/echo"));  // the connection lives on
  EXPECT_THAT(client.read_until("GET "), HasSubstr("200 OK"));
}

TEST_F(Http, ABrokenStreamClosesTheConnection) {
  start();
  RawClient client(server_->port());
  client.send(get("/stream?break"));
  EXPECT_THAT(client.read_to_end(), HasSubstr("two"));
}

TEST_F(Http, OldClientsGetAStreamWithoutChunks) {
  start();
  RawClient client(server_->port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nonetwo"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("chunked")));
}

TEST_F(Http, ExpectContinueIsAnswered) {
  start();
  RawClient client(server_->port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  client.send("ok");
  EXPECT_THAT(client.read_until("POST ok"), HasSubstr("200 OK"));
}

TEST_F(Http, LimitsAreNamed) {
  HttpConfig config;
  config.max_body_bytes = 100;
  config.max_header_bytes = 1000;
  start(config);
  RawClient body(server_->port());
  body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
  const std::string too_long = body.read_to_end();
  EXPECT_THAT(too_long, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(too_long, HasSubstr("larger than 100 bytes"));
  RawClient header(server_->port());
  header.send(get("/echo", "X: " + std::string(2000, 'x') + "\r\n"));
  EXPECT_THAT(header.read_to_end(), StartsWith("HTTP/1.1 431"));
  RawClient noise(server_->port());
  noise.send("this is no request\r\n\r\n");
  EXPECT_THAT(noise.read_to_end(), StartsWith("HTTP/1.1 400"));
}

TEST_F(Http, SlowHeadersAndIdleConnectionsAreClosed) {
  HttpConfig config;
  config.header_timeout_s = 1;
  config.idle_timeout_s = 1;
  start(config);
  RawClient slow(server_->port());
  slow.send("GET /echo HTT");
  RawClient idle(server_->port());
  idle.send(get("/echo"));
  idle.read_until("GET ");
  EXPECT_EQ(slow.read_to_end(), "");
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST_F(Http, AClientThatLeavesIsNoticedWhileNothingIsWritten) {
  start();
  RawClient client(server_->port());
  client.send(get("/wait"));
  ASSERT_TRUE(arrived_.wait());
  client.leave();
  EXPECT_TRUE(left_.wait());
  waiting()->respond({});  // too late: dropped
}

TEST_F(Http, ACallbackSetAfterTheClientLeftIsCalledAtOnce) {
  start();
  RawClient client(server_->port());
  client.send(get("/wait"));
  ASSERT_TRUE(arrived_.wait());
  const ExchangePtr exchange = waiting();
  client.leave();
  ASSERT_TRUE(left_.wait());
  Event again;
  exchange->on_disconnect([&again] { again.set(); });
  EXPECT_TRUE(again.wait());
}

TEST_F(Http, ALateAnswerFromAnotherThreadArrives) {
  start();
  RawClient client(server_->port());
  client.send(get("/wait"));
  ASSERT_TRUE(arrived_.wait());
  std::thread([this] {
    Response response;
    response.body = "late";
    waiting()->respond(std::move(response));
  }).join();
  EXPECT_THAT(client.read_until("late"), HasSubstr("200 OK"));
}

TEST_F(Http, AClientThatDoesNotReadIsDropped) {
  HttpConfig config;
  config.max_pending_bytes = 64 * 1024;
  start(config);
  RawClient client(server_->port());
  client.send(get("/flood"));
  EXPECT_TRUE(left_.wait());
}

TEST_F(Http, TakenPortAndBadAddressAreNamed) {
  start();
  HttpConfig config;
  config.port = server_->port();
  HttpServer second(config, [](const ExchangePtr&) {});
  const Status taken = second.start();
  EXPECT_EQ(taken.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(taken.message(), HasSubstr(std::to_string(config.port)));
  HttpConfig bad;
  bad.host = "not-an-address";
  EXPECT_EQ(HttpServer(bad, [](const ExchangePtr&) {}).start().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(Http, StopClosesWaitingClients) {
  start();
  RawClient client(server_->port());
  client.send(get("/wait"));
  ASSERT_TRUE(arrived_.wait());
  {
    const std::lock_guard lock(mutex_);
    waiting_.reset();
  }
  server_->stop();
  EXPECT_TRUE(left_.wait());
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(Http, ServesManyConnectionsAtOnce) {
  start();
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this, &good] {
      RawClient client(server_->port());
      for (int k = 0; k < 20; ++k) {
        client.send(k % 2 == 0 ? post("/echo", "x") : get("/stream"));
        const std::string answer = client.read_until(k % 2 == 0 ? "POST x" : "0\r\n\r\n");
        good += answer.find("200 OK") != std::string::npos ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(good, 16 * 20);
}

TEST_F(Http, SpeaksTls) {
  const auto folder = std::filesystem::temp_directory_path() / "tandem_http_tls_test";
  std::filesystem::create_directories(folder);
  const std::string key = (folder / "key.pem").string();
  const std::string certificate = (folder / "certificate.pem").string();
  const std::string command =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
      "subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + certificate + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  HttpConfig config;
  config.tls_certificate = certificate;
  config.tls_key = key;
  start(config);
  net::Url url{"https", "127.0.0.1", std::to_string(server_->port()), ""};
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/echo";
  request.body = "secret";
  request.ca_file = certificate;
  const auto answer = net::http_fetch(url, request);
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  EXPECT_EQ(answer->body, "POST secret");
  request.ca_file.clear();
  EXPECT_FALSE(net::http_fetch(url, request).ok()) << "an unknown certificate was trusted";
  config.tls_key = certificate;  // holds no key
  const Status wrong = HttpServer(config, [](const ExchangePtr&) {}).start();
  EXPECT_THAT(wrong.message(), HasSubstr("tls_key"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem::http
