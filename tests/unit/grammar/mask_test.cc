// Masks are exact at every state, and a jump over forced tokens, a rollback and a clone lead to the
// state that plain steps lead to.
#include <gtest/gtest.h>

#include "foundation/json/json.h"
#include "tests/unit/grammar/walk.h"

namespace tandem::grammar {
namespace {

using testing::byte_vocabulary;
using testing::mask_of;
using testing::slow_mask;

std::vector<GrammarPtr> grammars() {
  std::vector<GrammarPtr> all;
  for (const char* text :
       {R"({"type":"object","properties":{"name":{"type":"string","maxLength":5},
            "n":{"type":"number"},"tags":{"type":"array","items":{"enum":["abc","abd",null]}}},
            "required":["name","n"]})",
        R"({"type":"array","items":{"type":"string","pattern":"^(true|tr.x)*$"}})",
        R"({"anyOf":[{"const":"true"},{"type":"boolean"},{"type":"object"}]})"}) {
    all.push_back(*compile_json_schema(byte_vocabulary(), *json::parse(text), {}));
  }
  ToolSpec tool;
  tool.name = "tool";
  tool.parameters = *json::parse(
      R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","string"]}}})");
  all.push_back(
      *compile_tool_calls(byte_vocabulary(), {tool}, {ToolChoiceMode::kRequired, ""}, true));
  all.push_back(*compile_tool_calls(byte_vocabulary(), {tool}, {ToolChoiceMode::kAuto, ""}, true));
  all.push_back(*compile_ebnf(byte_vocabulary(), "root ::= (\"a\" | [^\\x00-\\x1f]{1,3} \"!\")*"));
  return all;
}

TokenId draw(const std::vector<std::uint32_t>& mask, Random& random) {
  std::vector<TokenId> allowed;
  for (TokenId token = 0; token < byte_vocabulary()->size(); ++token) {
    if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0 &&
        token != testing::kEos) {
      allowed.push_back(token);
    }
  }
  return allowed.empty() ? testing::kEos
                         : allowed[static_cast<std::size_t>(random.below(allowed.size()))];
}

TEST(Masks, EqualTheSlowReferenceAtRandomStates) {
  Random random(5);
  for (const GrammarPtr& grammar : grammars()) {
    for (int walk = 0; walk < 12; ++walk) {
      const auto constraint = make_constraint(grammar, {walk % 4 == 0});
      for (int i = 0; i < 60; ++i) {
        const auto mask = mask_of(*constraint);
        ASSERT_EQ(mask, slow_mask(*constraint)) << "walk " << walk << ", token " << i;
        const TokenId token = draw(mask, random);
        ASSERT_TRUE(constraint->accept(token));
        if (token == testing::kEos) {
          break;
        }
      }
    }
  }
}

TEST(Masks, StepEqualsJumpEqualsRollbackAndRedo) {
  Random random(6);
  for (const GrammarPtr& grammar : grammars()) {
    const auto stepped = make_constraint(grammar);
    for (int i = 0; i < 120 && !stepped->is_finished(); ++i) {
      const std::vector<TokenId> forced = stepped->forced_tokens(16);
      const auto jumped = stepped->clone();
      for (const TokenId token : forced) {
        // A forced token is a continuation of the only text that is allowed here.
        ASSERT_TRUE(jumped->accept(token));
      }
      const auto before = mask_of(*jumped);
      jumped->rollback(static_cast<int>(forced.size()));
      ASSERT_EQ(mask_of(*jumped), mask_of(*stepped));
      for (const TokenId token : forced) {
        ASSERT_TRUE(jumped->accept(token));
      }
      ASSERT_EQ(mask_of(*jumped), before);
      // A refused token changes nothing.
      const auto mask = mask_of(*stepped);
      for (TokenId token = 0; token < byte_vocabulary()->size(); token += 7) {
        if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) == 0) {
          ASSERT_FALSE(stepped->accept(token));
        }
      }
      ASSERT_EQ(mask_of(*stepped), mask);
      const TokenId token = forced.empty() ? draw(mask, random) : forced.front();
      ASSERT_TRUE(stepped->accept(token));
      if (token == testing::kEos) {
        break;
      }
    }
  }
}

TEST(Masks, ThinkingIsFreeButCannotEnd) {
  const auto constraint = make_constraint(grammars().front(), {true});
  const auto mask = mask_of(*constraint);
  const auto has = [&mask](TokenId token) {
    return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0;
  };
  EXPECT_TRUE(has('a'));
  EXPECT_TRUE(has(testing::kThinkEnd));
  EXPECT_FALSE(has(testing::kEos));
  EXPECT_FALSE(has(testing::kDsml));
}

TEST(GrammarCache, CompilesOnceAndForgetsTheOldest) {
  GrammarCache cache(2);
  int compiled = 0;
  const auto get = [&](const std::string& key) {
    return *cache.get(key, [&]() -> Result<GrammarPtr> {
      ++compiled;
      return compile_json_object(byte_vocabulary());
    });
  };
  const GrammarPtr a = get("a");
  EXPECT_EQ(get("a"), a);
  get("b");
  get("a");
  get("c");  // b goes
  EXPECT_EQ(compiled, 3);
  EXPECT_EQ(get("a"), a);
  get("b");
  EXPECT_EQ(compiled, 4);
}

}  // namespace
}  // namespace tandem::grammar
