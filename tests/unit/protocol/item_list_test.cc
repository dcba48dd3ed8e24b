#include "serving/protocol/item_list.h"

#include <gtest/gtest.h>

#include "serving/protocol/opaque_text.h"
#include "serving/protocol/responses_compact.h"
#include "tests/support/openapi_schemas.h"
#include "tests/unit/protocol/scripted_reply.h"

namespace tandem::protocol {
namespace {

json::Array items(int n) {
  json::Array out;
  for (int i = 0; i < n; ++i) {
    out.push_back(json::Object{{"id", "i" + std::to_string(i)}});
  }
  return out;
}

std::string ids(const json::Object& page) {
  std::string out;
  for (const json::Value& item : page.at("data").get_array()) {
    out += std::string(item.at("id").get_string()) + " ";
  }
  return out + (page.at("has_more").get_bool() ? "..." : "");
}

TEST(ItemList, PagesInBothOrders) {
  EXPECT_EQ(ids(*list_items(items(3), {})), "i2 i1 i0 ");
  EXPECT_EQ(ids(*list_items(items(3), {"2", "asc", ""})), "i0 i1 ...");
  EXPECT_EQ(ids(*list_items(items(3), {"2", "asc", "i1"})), "i2 ");
  EXPECT_EQ(ids(*list_items(items(3), {"1", "desc", "i2"})), "i1 ...");
  const json::Object page = *list_items(items(3), {});
  EXPECT_EQ(page.at("first_id"), "i2");
  EXPECT_EQ(page.at("last_id"), "i0");
  EXPECT_TRUE(list_items({}, {})->at("first_id").is_null());
}

TEST(ItemList, WrongParametersAreNamed) {
  EXPECT_EQ(list_items(items(3), {"0", "", ""}).error().param, "limit");
  EXPECT_EQ(list_items(items(3), {"99999999999", "", ""}).error().param, "limit");
  EXPECT_EQ(list_items(items(3), {"many", "", ""}).error().param, "limit");
  EXPECT_EQ(list_items(items(3), {"", "up", ""}).error().param, "order");
  EXPECT_EQ(list_items(items(3), {"", "", "i9"}).error().param, "after");
}

class NoLookup final : public ResponseLookup {
 public:
  Parsed<json::Array> history(const std::string&) const override { return json::Array(); }

  std::optional<json::Value> item(const std::string&) const override { return std::nullopt; }
};

TEST(Compaction, TheSummaryComesBackAsOneItemThatReadsAsText) {
  IdSource source(1, 2);
  const json::Value body =
      json::parse(R"({"model":"m","input":[{"role":"user","content":"q"}],"tools":7})").value();
  const Parsed<GenerationTask> task = parse_compact_request(body, NoLookup(), source);
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(std::get<ChatPrompt>(task->prompt).mode, text::ThinkingMode::kChat);
  EXPECT_EQ(std::get<ChatPrompt>(task->prompt).messages.size(), 2U);

  const ManualClock clock;
  CompactReply reply(source, clock);
  tandem::testing::Script script;
  script.text = "They asked q.";
  const json::Value compact = tandem::testing::whole(reply, script);
  EXPECT_EQ(tandem::testing::openresponses_problems("CompactResource", compact), "");

  json::Array input = compact.at("output").get_array();
  input.push_back(json::Object{{"role", "user"}, {"content", "go on"}});
  const Parsed<ResponsesRequest> next =
      parse_responses_request(json::Object{{"model", "m"}, {"input", input}}, NoLookup(), source);
  ASSERT_TRUE(next.ok()) << next.error().message;
  const auto& messages = std::get<ChatPrompt>(next->task.prompt).messages;
  EXPECT_EQ(messages.at(0).content, "Summary of the conversation so far:\nThey asked q.");
  EXPECT_EQ(messages.at(1).content, "go on");
}

TEST(Compaction, NeedsAModelAndAConversation) {
  IdSource source(1, 2);
  const auto param = [&source](std::string_view text) {
    return parse_compact_request(json::parse(text).value(), NoLookup(), source).error().param;
  };
  EXPECT_EQ(param(R"({"input":"x"})"), "model");
  EXPECT_EQ(param(R"({"model":"m"})"), "input");
}

}  // namespace
}  // namespace tandem::protocol
