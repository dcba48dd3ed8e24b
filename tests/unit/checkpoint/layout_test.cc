// Plain folders and the Hugging Face cache layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/v4/open_model.h"
#include "tests/unit/checkpoint/broken_checkpoint.h"

namespace tandem::checkpoint {
namespace {

using test::fs::create_directories;
using test::fs::create_symlink;
using test::fs::path;
using ::testing::HasSubstr;

// models--org--name with blobs/, refs/main and snapshots/REVISION of links to blobs.
class CacheLayout : public ::testing::Test {
 protected:
  CacheLayout() : root_(folder_.path() / "models--org--name") {
    create_directories(root_ / "blobs");
    create_directories(root_ / "refs");
    add_snapshot("abc123");
    test::write_file(root_ / "refs" / "main", "abc123\n");
  }

  void add_snapshot(const std::string& revision) {
    const path snapshot = root_ / "snapshots" / revision;
    create_directories(snapshot);
    int number = 0;
    for (const auto& entry : test::fs::directory_iterator(test::small_checkpoint())) {
      const std::string blob = revision + std::to_string(number++);
      test::fs::copy_file(entry.path(), root_ / "blobs" / blob);
      create_symlink(path("../../blobs") / blob, snapshot / entry.path().filename());
    }
  }

  test::TempFolder folder_;
  path root_;
};

TEST_F(CacheLayout, OpensTheRevisionOfMain) {
  add_snapshot("def456");
  test::write_file(root_ / "refs" / "main", "def456");
  EXPECT_EQ(resolve_checkpoint(root_).value(), root_ / "snapshots" / "def456");
  const auto model = v4::open_model(root_, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto device = device::make_cpu_device();
  EXPECT_TRUE(v4::load_weights(*model, *device, {}).ok());
}

TEST_F(CacheLayout, OpensASnapshotFolderItself) {
  EXPECT_TRUE(v4::open_model(root_ / "snapshots" / "abc123", 1).ok());
}

TEST_F(CacheLayout, OpensTheOnlySnapshotWithoutRefs) {
  test::fs::remove(root_ / "refs" / "main");
  EXPECT_EQ(resolve_checkpoint(root_).value(), root_ / "snapshots" / "abc123");
  add_snapshot("def456");
  EXPECT_THAT(resolve_checkpoint(root_).status().message(),
              HasSubstr("no refs/main, and 2 snapshots with config.json"));
}

TEST_F(CacheLayout, NamesARevisionThatIsNotThere) {
  test::write_file(root_ / "refs" / "main", "gone");
  EXPECT_THAT(resolve_checkpoint(root_).status().message(), HasSubstr("revision 'gone'"));
  test::write_file(root_ / "refs" / "main", "../../elsewhere");
  EXPECT_FALSE(resolve_checkpoint(root_).ok());
}

TEST_F(CacheLayout, NamesAShardWhoseBlobIsGone) {
  const path shard = root_ / "snapshots" / "abc123" / "model-00005-of-00007.safetensors";
  test::fs::remove(test::fs::canonical(shard));
  EXPECT_THAT(v4::open_model(root_, 1).status().message(),
              HasSubstr("unreadable: model-00005-of-00007.safetensors"));
}

}  // namespace
}  // namespace tandem::checkpoint
