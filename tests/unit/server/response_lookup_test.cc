#include "serving/server/response_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::server {
namespace {

using ::testing::HasSubstr;

json::Array items(const std::string& id) {
  return {json::Object{{"id", id}}};
}

TEST(ConnectionMemory, KeepsTheLatestResponseOnly) {
  ConnectionMemory memory;
  EXPECT_EQ(memory.find(""), nullptr);
  memory.remember("r1", items("m1"));
  ASSERT_NE(memory.find("r1"), nullptr);
  EXPECT_TRUE(memory.item("m1").has_value());
  memory.remember("r2", items("m2"));
  EXPECT_EQ(memory.find("r1"), nullptr);
  memory.forget("r1");
  EXPECT_NE(memory.find("r2"), nullptr);
  memory.forget("r2");
  EXPECT_EQ(memory.find("r2"), nullptr);
}

TEST(StoredLookup, MemoryFirstThenTheStoreThenAnErrorWithItsCode) {
  std::string folder = ::testing::TempDir() + "lookup_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const ManualClock clock;
  ResponseStoreOptions options;
  options.file = std::filesystem::path(folder) / "responses.sqlite";
  const auto store = ResponseStore::open(options, clock).value();
  const json::Object response{
      {"id", "r1"}, {"previous_response_id", nullptr}, {"output", items("m1")}};
  ASSERT_TRUE(store->put("anna", response, {}).ok());
  ConnectionMemory memory;
  memory.remember("r2", items("m2"));

  const StoredLookup both(store.get(), "anna", &memory);
  EXPECT_TRUE(both.history("r1").ok());
  EXPECT_TRUE(both.history("r2").ok());
  EXPECT_TRUE(both.item("m1").has_value());
  EXPECT_TRUE(both.item("m2").has_value());
  EXPECT_FALSE(both.item("m3").has_value());
  const protocol::ApiError error = both.history("r3").error();
  EXPECT_EQ(error.code, "previous_response_not_found");
  EXPECT_EQ(error.param, "previous_response_id");
  EXPECT_EQ(error.http_status, 400);

  const StoredLookup of_another(store.get(), "bert");
  EXPECT_EQ(of_another.history("r1").error().code, "previous_response_not_found");
  const StoredLookup without_store(nullptr, "anna");
  EXPECT_THAT(without_store.history("r1").error().message, HasSubstr("stores none"));
  EXPECT_FALSE(without_store.item("m1").has_value());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem::server
