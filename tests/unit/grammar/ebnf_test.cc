// GBNF and regular expressions: what they accept, refuse and complain about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/grammar/walk.h"

namespace tandem::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

GrammarPtr ebnf(std::string_view text) {
  auto compiled = compile_ebnf(byte_vocabulary(), text);
  EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
  return *compiled;
}

std::string ebnf_error(std::string_view text) {
  const auto compiled = compile_ebnf(byte_vocabulary(), text);
  return compiled.ok() ? "" : compiled.status().message();
}

TEST(Ebnf, AlternativesGroupsAndReferences) {
  const GrammarPtr grammar = ebnf(
      "# a greeting\n"
      "root ::= (\"hello\" | 'bye') \" \" name \"!\"?\n"
      "name ::= [A-Z] [a-z]+\n"
      "       | \"world\"\n");
  EXPECT_TRUE(accepts(grammar, "hello Ada"));
  EXPECT_TRUE(accepts(grammar, "bye world!"));
  EXPECT_FALSE(accepts(grammar, "hello ada"));
  EXPECT_FALSE(accepts(grammar, "hello A"));
  EXPECT_FALSE(accepts(grammar, "hello world!!"));
}

TEST(Ebnf, Repetition) {
  const GrammarPtr grammar = ebnf("root ::= \"a\"{2} \"b\"{1,} (\"c\" \"d\"){0,2} \"e\"*");
  EXPECT_TRUE(accepts(grammar, "aab"));
  EXPECT_TRUE(accepts(grammar, "aabbbcdcdee"));
  EXPECT_FALSE(accepts(grammar, "ab"));
  EXPECT_FALSE(accepts(grammar, "aaab"));
  EXPECT_FALSE(accepts(grammar, "aabcdcdcd"));
  EXPECT_FALSE(accepts(grammar, "aabc"));
}

TEST(Ebnf, ClassesEscapesAndUnicode) {
  const GrammarPtr grammar = ebnf("root ::= [^a-c\\n\\]-]+ \"\\x41\\u00e9\" . \"\\\"\"");
  EXPECT_TRUE(accepts(grammar, "xyzA\xC3\xA9\xE6\x97\xA5\""));
  EXPECT_TRUE(accepts(grammar,
                      "\xF0\x9F\x98\x80"
                      "A\xC3\xA9-\""));
  EXPECT_FALSE(accepts(grammar, "xaA\xC3\xA9-\""));
  EXPECT_FALSE(accepts(grammar, "x-A\xC3\xA9-\""));
}

TEST(Ebnf, Recursion) {
  const GrammarPtr grammar = ebnf("root ::= \"(\" root? \")\" | \"[]\"");
  EXPECT_TRUE(accepts(grammar, "((()))"));
  EXPECT_TRUE(accepts(grammar, "(([]))"));
  EXPECT_FALSE(accepts(grammar, "(()"));
}

TEST(Ebnf, ErrorsNameTheLine) {
  EXPECT_THAT(ebnf_error("root ::= a\n"), ::testing::HasSubstr("'a' is used but not defined"));
  EXPECT_THAT(ebnf_error("x ::= \"a\"\n"), ::testing::HasSubstr("no rule named root"));
  EXPECT_THAT(ebnf_error("root ::= \"a\"\nroot ::= \"b\"\n"), ::testing::HasSubstr("line 2"));
  EXPECT_THAT(ebnf_error("root ::= (\"a\""), ::testing::HasSubstr("ends inside a group"));
  EXPECT_THAT(ebnf_error("root ::= \"a"), ::testing::HasSubstr("ends inside a literal"));
  EXPECT_THAT(ebnf_error("root ::= \"a\"{3,1}"), ::testing::HasSubstr("3 to 1"));
  EXPECT_THAT(ebnf_error("root ::= \"\\q\""), ::testing::HasSubstr("unknown escape"));
  EXPECT_THAT(ebnf_error("root ::= root \"a\" | \"b\""), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(ebnf_error("root ::= \"a\" ]"), ::testing::HasSubstr("unexpected"));
  EXPECT_THAT(ebnf_error("hello"), ::testing::HasSubstr("expected a rule"));
}

TEST(Ebnf, DeepNestingAndRepetitionAreBounded) {
  std::string deep = "root ::= ";
  for (int i = 0; i < 150; ++i) {
    deep += "(";
  }
  deep += "\"a\"";
  for (int i = 0; i < 150; ++i) {
    deep += ")";
  }
  EXPECT_TRUE(accepts(ebnf(deep), "a"));
  EXPECT_THAT(ebnf_error("root ::= ((\"a\"{1000}){1000}){1000}"),
              ::testing::HasSubstr("more than"));
}

TEST(Regex, WholeText) {
  const auto compiled = compile_regex(byte_vocabulary(), "(yes|no)[0-9]{2,3}");
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  EXPECT_TRUE(accepts(*compiled, "yes12"));
  EXPECT_TRUE(accepts(*compiled, "no123"));
  EXPECT_FALSE(accepts(*compiled, "yes1"));
  EXPECT_FALSE(accepts(*compiled, "a yes12"));
  EXPECT_FALSE(compile_regex(byte_vocabulary(), "(a").ok());
  EXPECT_FALSE(compile_regex(byte_vocabulary(), "(a)\\1").ok());
}

}  // namespace
}  // namespace tandem::grammar
