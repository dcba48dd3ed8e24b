// JSON Schema as masks: per keyword, texts that must be accepted and texts that must be refused,
// and random walks judged by an independent validator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/json/json.h"
#include "tests/unit/grammar/independent_validator.h"
#include "tests/unit/grammar/walk.h"

namespace tandem::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

// Texts up to the first nullptr.
struct Case {
  const char* schema;
  const char* valid[6];
  const char* invalid[6];
};

// Plain data: a vector of vectors costs the compiler minutes under the sanitizers.
constexpr Case kCases[] = {
    {R"({"type":"boolean"})", {"true", "false"}, {"null", "1", "\"true\"", "tru"}},
    {R"({"type":"null"})", {"null"}, {"0", "\"\""}},
    {R"({"type":["integer","null"]})", {"-12", "0", "null"}, {"1.5", "01", "+1", "\"1\""}},
    {R"({"type":"number","minimum":-1.5,"exclusiveMaximum":10})",
     {"-1.5", "0", "9.99", "-0.25"},
     {"-1.6", "10", "11", "-2"}},
    {R"({"type":"integer","multipleOf":5,"minimum":0,"maximum":20})",
     {"0", "5", "20"},
     {"3", "25", "-5", "21"}},
    {R"({"type":"string","minLength":2,"maxLength":3})",
     {"\"ab\"", "\"日本é\"", "\"a\\u00e9\""},
     {"\"a\"", "\"abcd\"", "\"\""}},
    {R"({"type":"string","pattern":"^[a-c]+$"})",
     {"\"abc\"", "\"a\""},
     {"\"\"", "\"d\"", "\"ab \""}},
    {R"({"type":"string","format":"date"})",
     {"\"2026-12-01\"", "\"2024-02-29\""},
     {"\"2026-13-01\"", "\"26-1-1\"", "\"2026-02-31\""}},
    {R"({"enum":["a",1,null,{"k":[1]}]})",
     {"\"a\"", "1", "null", "{\"k\":[1]}"},
     {"\"b\"", "2", "{\"k\":[2]}", "{}"}},
    {R"({"const":"x\"y"})", {"\"x\\\"y\""}, {"\"x\"", "\"xy\""}},
    {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})",
     {"[1]", "[1,2]", "[ 1, 2 ]"},
     {"[]", "[1,2,3]", "[\"a\"]"}},
    {R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false})",
     {"[]", "[\"a\"]", "[\"a\",1]"},
     {"[1]", "[\"a\",1,2]"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
           "required":["a"],"additionalProperties":false})",
     {"{\"a\":1}", "{\"a\":1,\"b\":\"x\"}", "{ \"a\": 1 }"},
     {"{}", "{\"b\":\"x\"}", "{\"a\":1,\"c\":2}", "{\"a\":\"1\"}"}},
    {R"({"type":"object","additionalProperties":{"type":"boolean"}})",
     {"{}", "{\"x\":true,\"y\":false}"},
     {"{\"x\":1}"}},
    {R"({"type":"object","patternProperties":{"^n_":{"type":"integer"}},
           "additionalProperties":{"type":"string"}})",
     {"{\"n_a\":1}", "{\"z\":\"s\"}", "{\"n_a\":1,\"z\":\"s\"}"},
     {"{\"n_a\":\"1\"}", "{\"z\":1}"}},
    {R"({"anyOf":[{"type":"string"},{"type":"integer","minimum":3}]})",
     {"\"s\"", "3"},
     {"2", "null"}},
    {R"({"oneOf":[{"type":"integer","maximum":5},{"type":"integer","minimum":3}]})",
     {"2", "6"},
     {"3", "5", "\"a\""}},
    {R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
           "oneOf":[{"required":["a"]},{"required":["b"]}]})",
     {"{\"a\":\"x\"}", "{\"b\":\"x\"}", "{\"a\":\"x\",\"c\":[]}"},
     {"{}", "{\"a\":\"x\",\"b\":\"x\"}", "{\"b\":\"x\",\"a\":\"x\"}",
      "{\"a\":\"x\",\"c\":1,\"b\":\"x\"}"}},
    {R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"number"}},
           "required":["c"],"oneOf":[{"required":["a"]},{"required":["b"]}]})",
     {"{\"a\":\"x\",\"c\":1}", "{\"b\":\"x\",\"c\":1}"},
     {"{\"c\":1}", "{\"a\":\"x\",\"b\":\"x\",\"c\":1}"}},
    {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"object",
           "properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"v":{"type":"string"}}}},
           "oneOf":[{"required":["a"]},{"required":["b"]}]})",
     {"{\"a\":\"x\"}", "{\"b\":{}}"},
     {"{}", "{\"a\":\"x\",\"b\":{\"v\":\"y\"}}"}},
    {R"({"allOf":[{"type":"integer","minimum":2},{"maximum":4}]})", {"2", "4"}, {"1", "5"}},
    {R"({"not":{"type":"string"},"type":["string","integer"]})", {"1"}, {"\"a\""}},
    {R"({"if":{"properties":{"t":{"const":"n"}},"required":["t"]},
           "then":{"properties":{"v":{"type":"integer"}}},
           "else":{"properties":{"v":{"type":"string"}}},
           "type":"object","properties":{"t":{"type":"string"},"v":{}},"required":["t","v"],
           "additionalProperties":false})",
     {"{\"t\":\"n\",\"v\":1}", "{\"t\":\"s\",\"v\":\"x\"}"},
     {"{\"t\":\"n\",\"v\":\"x\"}", "{\"t\":\"s\",\"v\":1}"}},
    {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{
           "kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["kids"],
           "additionalProperties":false}}})",
     {"{\"kids\":[]}", "{\"kids\":[{\"kids\":[{\"kids\":[]}]}]}"},
     {"{}", "{\"kids\":[1]}", "{\"kids\":[{}]}"}},
    {R"({"type":"object","minProperties":1,"maxProperties":2,
           "properties":{"a":{},"b":{},"c":{}},"additionalProperties":false})",
     {"{\"a\":1}", "{\"a\":1,\"c\":[]}"},
     {"{}", "{\"a\":1,\"b\":2,\"c\":3}"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
           "dependentRequired":{"a":["b"]},"additionalProperties":false})",
     {"{}", "{\"b\":1}", "{\"a\":1,\"b\":2}"},
     {"{\"a\":1}"}},
};

GrammarPtr compile(const char* schema, bool strict = false) {
  const auto parsed = json::parse(schema);
  EXPECT_TRUE(parsed.ok()) << schema;
  auto compiled = compile_json_schema(byte_vocabulary(), *parsed, {strict});
  EXPECT_TRUE(compiled.ok()) << schema << ": " << compiled.status().to_string();
  return *compiled;
}

TEST(SchemaGrammar, ValidTextsAreAccepted) {
  for (const Case& one : kCases) {
    const GrammarPtr grammar = compile(one.schema);
    for (int i = 0; i < 6 && one.valid[i] != nullptr; ++i) {
      const char* text = one.valid[i];
      EXPECT_TRUE(accepts(grammar, text)) << one.schema << " refuses " << text;
    }
  }
}

TEST(SchemaGrammar, InvalidTextsAreRefused) {
  for (const Case& one : kCases) {
    const GrammarPtr grammar = compile(one.schema);
    for (int i = 0; i < 6 && one.invalid[i] != nullptr; ++i) {
      const char* text = one.invalid[i];
      EXPECT_FALSE(accepts(grammar, text)) << one.schema << " accepts " << text;
    }
  }
}

// valijson knows draft 7 and 64-bit integers: texts beyond that are not for it to judge.
bool is_judged(const char* schema, const std::string& text) {
  constexpr std::size_t kInt64Digits = 18;
  std::size_t digits = 0;
  std::size_t longest = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    longest = std::max(longest, digits);
  }
  return longest <= kInt64Digits &&
         std::string_view(schema).find("prefixItems") == std::string_view::npos;
}

TEST(SchemaGrammar, RandomWalksEndAndAreValid) {
  Random random(17);
  int ended = 0;
  for (const Case& one : kCases) {
    const GrammarPtr grammar = compile(one.schema);
    for (int i = 0; i < 12; ++i) {
      const auto text = testing::random_walk(grammar, random, 400);
      if (text && is_judged(one.schema, *text)) {
        ++ended;
        EXPECT_TRUE(testing::independent_says_valid(one.schema, *text))
            << one.schema << " gave " << *text;
      }
    }
  }
  EXPECT_GT(ended, static_cast<int>(std::size(kCases)) * 6);
}

TEST(SchemaGrammar, WhiteSpaceIsBounded) {
  const GrammarPtr grammar = compile(R"({"type":"array","items":{"type":"integer"}})");
  EXPECT_TRUE(accepts(grammar, "[\n    1,\n    2\n]"));
  EXPECT_FALSE(accepts(grammar, "[" + std::string(200, ' ') + "1]"));
  EXPECT_FALSE(accepts(grammar, "[\n\n\n\n1]"));
}

TEST(SchemaGrammar, StrictNamesWhatItCannotEnforce) {
  const auto schema =
      json::parse(R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})");
  const auto refused = compile_json_schema(byte_vocabulary(), *schema, {true});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), ::testing::AllOf(::testing::HasSubstr("uniqueItems"),
                                                           ::testing::HasSubstr("#/properties/a")));
  const auto lax = compile_json_schema(byte_vocabulary(), *schema, {false});
  ASSERT_TRUE(lax.ok());
  EXPECT_EQ((*lax)->unenforced().size(), 1U);
}

TEST(SchemaGrammar, ImpossibleSchemasAreRefusedUpFront) {
  for (const char* schema : {R"(false)", R"({"type":"integer","minimum":5,"maximum":4})",
                             R"({"type":"string","minLength":3,"maxLength":1})", R"({"type":12})",
                             R"({"$ref":"#/$defs/none"})", R"({"enum":[]})"}) {
    const auto parsed = json::parse(schema);
    EXPECT_FALSE(compile_json_schema(byte_vocabulary(), *parsed, {false}).ok()) << schema;
  }
}

TEST(SchemaGrammar, JsonObject) {
  const auto compiled = compile_json_object(byte_vocabulary());
  ASSERT_TRUE(compiled.ok());
  EXPECT_TRUE(accepts(*compiled, R"({"a":[1,{"b":null}],"c":"x"})"));
  EXPECT_FALSE(accepts(*compiled, "[1]"));
  EXPECT_FALSE(accepts(*compiled, "{\"a\":}"));
}

}  // namespace
}  // namespace tandem::grammar
