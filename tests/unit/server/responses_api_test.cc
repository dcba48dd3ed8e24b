#include "serving/server/responses_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/response_events.h"

namespace tandem::server {
namespace {

using protocol::Parsed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ResponsesApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "responses_api_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ResponseStoreOptions options;
    options.file = folder_ / "responses.sqlite";
    store_ = ResponseStore::open(options, clock_).value();
    api_ = std::make_unique<ResponsesApi>(
        store_.get(), ids_, clock_, [this](const Status& status) { reports_.push_back(status); });
  }

  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  Parsed<PreparedReply> create(const std::string& body, ConnectionMemory* memory = nullptr) {
    return api_->create(json::parse(body).value(), "anna", memory);
  }

  // Lets the reply of a request say `text` and returns the id of the response.
  std::string say(const std::string& body, const std::string& text,
                  ConnectionMemory* memory = nullptr,
                  runtime::FinishReason reason = runtime::FinishReason::kStop) {
    Parsed<PreparedReply> prepared = create(body, memory);
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    const text::StreamEvent event{text::StreamEvent::Kind::kContent, text, 0, "", "", false};
    prepared->reply->begin(1);
    prepared->reply->update({0, {&event, 1}, {}});
    protocol::ChoiceEnd end;
    end.reason = reason;
    prepared->reply->end_choice(end);
    return std::string(prepared->reply->body().at("id").get_string());
  }

  static std::size_t n_messages(const Parsed<PreparedReply>& prepared) {
    return std::get<protocol::ChatPrompt>(prepared->task.prompt).messages.size();
  }

  std::filesystem::path folder_;
  ManualClock clock_;
  protocol::IdSource ids_{1, 2};
  std::unique_ptr<ResponseStore> store_;
  std::vector<Status> reports_;
  std::unique_ptr<ResponsesApi> api_;
};

TEST_F(ResponsesApiTest, AStoredResponseCanBeReadContinuedListedReplayedAndDeleted) {
  const std::string id = say(R"({"model":"m","input":"hi"})", "hello");
  EXPECT_EQ(api_->get("anna", id)->at("output").at(0).at("content").at(0).at("text"), "hello");
  EXPECT_EQ(
      n_messages(create(R"({"model":"m","previous_response_id":")" + id + R"(","input":"x"})")),
      3U);
  EXPECT_EQ(api_->input_items("anna", id, {})->at("data").at(0).at("role"), "user");
  const auto events = tandem::testing::read_response_events(*api_->replay("anna", id, -1));
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(json::Value(events.response), *api_->get("anna", id));
  EXPECT_EQ(api_->cancel("anna", id).error().http_status, 400);
  EXPECT_EQ(api_->erase("anna", id)->at("deleted"), true);
  EXPECT_EQ(api_->get("anna", id).error().http_status, 404);
  EXPECT_EQ(api_->erase("anna", id).error().code, "response_not_found");
  EXPECT_EQ(api_->cancel("anna", id).error().http_status, 404);
}

TEST_F(ResponsesApiTest, StoreFalseAndCancelledResponsesLeaveNothing) {
  const std::string quiet = say(R"({"model":"m","input":"hi","store":false})", "hello");
  EXPECT_EQ(api_->get("anna", quiet).error().http_status, 404);
  const std::string gone =
      say(R"({"model":"m","input":"hi"})", "hel", nullptr, runtime::FinishReason::kCancelled);
  EXPECT_EQ(api_->get("anna", gone).error().http_status, 404);
  EXPECT_EQ(store_->bytes(), 0);
}

// A store: false continuation of a stored response is not stored and does not change the parent.
TEST_F(ResponsesApiTest, BranchesOfOneParent) {
  const std::string parent = say(R"({"model":"m","input":"hi"})", "hello");
  const json::Value before = *api_->get("anna", parent);
  const std::string next = R"(,"previous_response_id":")" + parent + R"(","input":"x"})";
  const std::string a = say(R"({"model":"m","store":false)" + next, "a");
  const std::string b = say(R"({"model":"m")" + next, "b");
  EXPECT_EQ(api_->get("anna", a).error().http_status, 404);
  EXPECT_TRUE(api_->get("anna", b).ok());
  EXPECT_EQ(*api_->get("anna", parent), before);
}

TEST_F(ResponsesApiTest, AConnectionContinuesWithoutTheStore) {
  ConnectionMemory memory;
  const std::string first = say(R"({"model":"m","input":"hi","store":false})", "hello", &memory);
  const std::string next =
      R"({"model":"m","store":false,"previous_response_id":")" + first + R"(","input":"x"})";
  EXPECT_EQ(n_messages(create(next, &memory)), 3U);
  const std::string second = say(next, "again", &memory);
  EXPECT_EQ(
      n_messages(create(R"({"model":"m","previous_response_id":")" + second + R"(","input":"y"})",
                        &memory)),
      5U);
  EXPECT_EQ(create(next, nullptr).error().code, "previous_response_not_found");
}

TEST_F(ResponsesApiTest, WithoutAStoreResponsesSayThatTheyAreNotStored) {
  ResponsesApi without(nullptr, ids_, clock_, [](const Status&) {});
  Parsed<PreparedReply> prepared =
      without.create(json::parse(R"({"model":"m","input":"hi"})").value(), "anna");
  prepared->reply->begin(1);
  prepared->reply->end_choice({});
  EXPECT_EQ(prepared->reply->body().at("store"), false);
  EXPECT_THAT(without.get("anna", "resp_x").error().message, HasSubstr("resp_x"));
}

// What the store refuses is told to the operator and to the client.
TEST_F(ResponsesApiTest, AFailureToStoreIsReportedAndShown) {
  Parsed<PreparedReply> prepared = create(R"({"model":"m","input":"hi"})");
  prepared->reply->begin(1);
  prepared->reply->end_choice({});
  prepared->reply->end_choice({});
  EXPECT_EQ(reports_.size(), 1U);
  EXPECT_EQ(prepared->reply->body().at("store"), false);
}

}  // namespace
}  // namespace tandem::server
