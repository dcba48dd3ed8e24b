#include "foundation/json/json.h"

#include <gtest/gtest.h>

namespace tandem::json {
namespace {

TEST(Json, KeepsKeyOrderAndRoundTrips) {
  const std::string text = R"({"z":1,"a":[true,null,-2,18446744073709551615],"m":"é\n\"\u0001"})";
  const Value value = *parse(text);
  EXPECT_EQ(dump(value), text);
  EXPECT_EQ(dump_python(value),
            R"({"z": 1, "a": [true, null, -2, 18446744073709551615], "m": "é\n\"\u0001"})");
}

// Expected strings are Python 3's repr of the same floats.
TEST(Json, WritesFloatsAsPythonDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"1.0", "1.0"},          {"0.1", "0.1"},
      {"1e16", "1e+16"},       {"123456789.0", "123456789.0"},
      {"0.0001", "0.0001"},    {"0.00001", "1e-05"},
      {"-2.5e-7", "-2.5e-07"}, {"1e22", "1e+22"},
      {"0.0", "0.0"},          {"1e15", "1000000000000000.0"}};
  for (const auto& [in, expected] : cases) {
    EXPECT_EQ(dump_python(*parse(in)), expected) << in;
  }
}

TEST(Json, NamesWhatIsWrong) {
  EXPECT_EQ(parse("{\"a\":").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(parse("[1] x").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(parse("\"\xff\"").status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(parse(std::string(100, '[') + std::string(100, ']')).ok());
  EXPECT_EQ(parse("[1,2]", {.max_depth = 9, .max_bytes = 3}).status().code(),
            StatusCode::kResourceExhausted);
  const Value value = *parse(R"({"n":"x"})");
  EXPECT_EQ(get_int(value.get_object(), "n", "messages[2].").status().message(),
            "messages[2].n is string; expected an integer");
  EXPECT_EQ(get_int(value.get_object(), "k", "").status().message(),
            "k is missing; expected an integer");
}

}  // namespace
}  // namespace tandem::json
