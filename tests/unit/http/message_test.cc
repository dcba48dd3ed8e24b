#include "serving/http/message.h"

#include <gtest/gtest.h>

namespace tandem::http {
namespace {

TEST(Message, HeadersAreFoundInAnyCase) {
  Request request;
  request.headers = {{"Content-Type", "a"}, {"content-type", "b"}, {"X-Key", "k"}};
  EXPECT_EQ(request.header("content-TYPE"), "a");
  EXPECT_EQ(request.header("x-key"), "k");
  EXPECT_EQ(request.header("none"), "");
}

TEST(Message, QueryValuesAreDecoded) {
  Request request;
  request.query = "a=1&name=x%20y+z&empty=&flag&bad=%zz&end=%4";
  EXPECT_EQ(request.query_value("a"), "1");
  EXPECT_EQ(request.query_value("name"), "x y z");
  EXPECT_EQ(request.query_value("empty"), "");
  EXPECT_EQ(request.query_value("flag"), "");
  EXPECT_EQ(request.query_value("bad"), "%zz");
  EXPECT_EQ(request.query_value("end"), "%4");
  EXPECT_EQ(request.query_value("missing"), "");
}

TEST(Message, ChunksCarryTheirLength) {
  EXPECT_EQ(chunk("hello"), "5\r\nhello\r\n");
  EXPECT_EQ(chunk(std::string(16, 'x')).substr(0, 4), "10\r\n");
}

TEST(Message, HeadNamesLengthOrChunks) {
  EXPECT_NE(response_head(200, "text/plain", {}, 3, true).find("Content-Length: 3\r\n"),
            std::string::npos);
  const std::string stream = response_head(200, "text/event-stream", {{"A", "b"}}, -1, false);
  EXPECT_NE(stream.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(stream.find("Connection: close\r\n"), std::string::npos);
  EXPECT_NE(stream.find("A: b\r\n"), std::string::npos);
}

}  // namespace
}  // namespace tandem::http
