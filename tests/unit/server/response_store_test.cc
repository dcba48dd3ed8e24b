#include "serving/server/response_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace tandem::server {
namespace {

using ::testing::HasSubstr;

class ResponseStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "response_store_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.file = folder_ / "state" / "responses.sqlite";
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<ResponseStore> open() {
    Result<std::unique_ptr<ResponseStore>> store = ResponseStore::open(options_, clock_);
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    return store.ok() ? std::move(*store) : nullptr;
  }

  // A response with one output message that says `text`.
  static json::Object response(const std::string& id, const std::string& text,
                               const std::string& previous = "") {
    return {{"id", id},
            {"previous_response_id", previous.empty() ? json::Value() : json::Value(previous)},
            {"status", "completed"},
            {"output", json::Array{json::Object{{"id", "msg_of_" + id}, {"text", text}}}}};
  }

  static json::Array input(const std::string& id) {
    return {json::Object{{"id", "in_of_" + id}, {"type", "message"}}};
  }

  static void put(ResponseStore& store, const std::string& id, const std::string& previous = "",
                  const std::string& owner = "anna") {
    const Status status = store.put(owner, response(id, "text of " + id, previous), input(id));
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  // Ids of the items of a chain, or the error.
  static std::string chain(ResponseStore& store, const std::string& id,
                           const std::string& owner = "anna") {
    const Result<json::Array> items = store.history(owner, id);
    if (!items.ok()) {
      return std::string(status_code_name(items.status().code()));
    }
    std::string out;
    for (const json::Value& item : *items) {
      out += std::string(item.at("id").get_string()) + " ";
    }
    return out;
  }

  // Whether any file of the store holds the bytes.
  bool on_disk(std::string_view bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(options_.file.parent_path())) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string all((std::istreambuf_iterator<char>(file)), {});
      if (all.find(bytes) != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  std::filesystem::path folder_;
  ResponseStoreOptions options_;
  ManualClock clock_;
};

TEST_F(ResponseStoreTest, ChainsBranchesAndItems) {
  const auto store = open();
  put(*store, "r1");
  put(*store, "r2", "r1");
  put(*store, "r3a", "r2");
  put(*store, "r3b", "r2");
  EXPECT_EQ(chain(*store, "r3a"), "in_of_r1 msg_of_r1 in_of_r2 msg_of_r2 in_of_r3a msg_of_r3a ");
  EXPECT_EQ(chain(*store, "r3b"), "in_of_r1 msg_of_r1 in_of_r2 msg_of_r2 in_of_r3b msg_of_r3b ");
  EXPECT_EQ(json::Value(*store->get("anna", "r2")),
            json::Value(response("r2", "text of r2", "r1")));
  EXPECT_EQ(json::Value(*store->input_items("anna", "r2")), json::Value(input("r2")));
  EXPECT_EQ(store->item("anna", "msg_of_r3a")->at("text"), "text of r3a");
  EXPECT_EQ(store->item("anna", "in_of_r1")->at("type"), "message");
  EXPECT_EQ(store->item("anna", "msg_of_r9").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(chain(*store, "r9"), "NOT_FOUND");
}

TEST_F(ResponseStoreTest, OwnersDoNotSeeEachOther) {
  const auto store = open();
  put(*store, "r1");
  EXPECT_EQ(chain(*store, "r1", "bert"), "NOT_FOUND");
  EXPECT_EQ(store->get("bert", "r1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store->item("bert", "msg_of_r1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store->erase("bert", "r1").code(), StatusCode::kNotFound);
  EXPECT_TRUE(store->get("anna", "r1").ok());
}

TEST_F(ResponseStoreTest, ARestartKeepsEverything) {
  put(*open(), "r1");
  put(*open(), "r2", "r1");
  EXPECT_EQ(chain(*open(), "r2"), "in_of_r1 msg_of_r1 in_of_r2 msg_of_r2 ");
}

TEST_F(ResponseStoreTest, ADeletedResponseLeavesNothing) {
  auto store = open();
  put(*store, "r1");
  put(*store, "r2", "r1");
  EXPECT_TRUE(store->erase("anna", "r1").ok());
  EXPECT_EQ(store->erase("anna", "r1").code(), StatusCode::kNotFound);
  EXPECT_EQ(store->item("anna", "msg_of_r1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(chain(*store, "r2"), "NOT_FOUND");  // never a silent restart in the middle
  EXPECT_TRUE(store->erase("anna", "r2").ok());
  EXPECT_EQ(store->bytes(), 0);
  store.reset();
  EXPECT_FALSE(on_disk("text of r1"));
}

TEST_F(ResponseStoreTest, AgeCountsFromTheLastUseOfTheChain) {
  options_.max_age_s = 100;
  const auto store = open();
  put(*store, "r1");
  put(*store, "other");
  clock_.advance_us(80'000'000);
  put(*store, "r2", "r1");
  clock_.advance_us(80'000'000);
  put(*store, "new");
  EXPECT_EQ(chain(*store, "r2"), "in_of_r1 msg_of_r1 in_of_r2 msg_of_r2 ");
  EXPECT_EQ(chain(*store, "other"), "NOT_FOUND");
}

TEST_F(ResponseStoreTest, BytesAreBounded) {
  options_.max_bytes = 3'000;
  const auto store = open();
  for (int i = 0; i < 100; ++i) {
    put(*store, "r" + std::to_string(i));
    EXPECT_LE(store->bytes(), options_.max_bytes);
  }
  EXPECT_EQ(chain(*store, "r0"), "NOT_FOUND");
  EXPECT_EQ(chain(*store, "r99"), "in_of_r99 msg_of_r99 ");
}

// The child reports every response that it stored; the parent kills it at some point and finds
// all of them again.
TEST_F(ResponseStoreTest, AKilledProcessLosesNoStoredResponse) {
  for (int round = 0; round < 3; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Result<std::unique_ptr<ResponseStore>> store = ResponseStore::open(options_, clock_);
      for (int i = 0; store.ok(); ++i) {
        const std::string id = fmt::format("r{}_{}", round, i);
        if (!(*store)->put("anna", response(id, std::string(2'000, 'x')), input(id)).ok() ||
            write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) {
          break;
        }
      }
      _exit(1);
    }
    close(pipe_ends[1]);
    int last = -1;
    while (last < 50 * (round + 1)) {
      ASSERT_EQ(read(pipe_ends[0], &last, sizeof(last)), static_cast<ssize_t>(sizeof(last)));
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (read(pipe_ends[0], &last, sizeof(last)) == sizeof(last)) {
    }
    close(pipe_ends[0]);
    const auto store = open();
    for (int i = 0; i <= last; ++i) {
      EXPECT_TRUE(store->get("anna", fmt::format("r{}_{}", round, i)).ok()) << i << " of " << last;
    }
  }
}

TEST_F(ResponseStoreTest, ASecondServerIsTurnedAway) {
  const auto store = open();
  put(*store, "r1");
  const auto second = ResponseStore::open(options_, clock_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr("another server uses it"));
  EXPECT_THAT(second.status().message(), HasSubstr("responses.sqlite"));
}

TEST_F(ResponseStoreTest, ADamagedFileIsNamed) {
  std::filesystem::create_directories(options_.file.parent_path());
  std::ofstream(options_.file) << std::string(8'192, 'z');
  const auto store = ResponseStore::open(options_, clock_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(store.status().message(), HasSubstr("move it away"));
}

TEST_F(ResponseStoreTest, DamageInTheMiddleIsAnErrorNotACrash) {
  {
    const auto store = open();
    for (int i = 0; i < 50; ++i) {
      put(*store, "r" + std::to_string(i));
    }
  }
  {
    std::fstream file(options_.file, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4'096);
    file << std::string(20'000, '\xFF');
  }
  const auto store = ResponseStore::open(options_, clock_);
  const Status status = store.ok() ? (*store)->get("anna", "r1").status() : store.status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
}

TEST_F(ResponseStoreTest, AnotherFormatIsRefused) {
  put(*open(), "r1");
  {
    auto database = SqliteDatabase::open(options_.file);
    ASSERT_TRUE((*database)->run("PRAGMA user_version=7").ok());
  }
  const auto store = ResponseStore::open(options_, clock_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ResponseStoreTest, OthersCannotReadTheFile) {
  const auto store = open();
  struct stat info {};
  ASSERT_EQ(stat(options_.file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace tandem::server
