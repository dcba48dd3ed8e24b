#include "operations/cluster/gid.h"

#include <gmock/gmock.h>

#include "tests/unit/cluster/trees.h"

namespace tandem::cluster {
namespace {

using ::testing::HasSubstr;

bool selects(const char* selector, const char* device, int port) {
  return parse_hca_selector(selector).selects(device, port);
}

TEST(Selector, GrammarOfNccl) {
  EXPECT_TRUE(selects("", "roceA", 1));
  EXPECT_TRUE(selects("roce", "roceA", 1));    // prefix
  EXPECT_FALSE(selects("=roce", "roceA", 1));  // exact
  EXPECT_TRUE(selects("=devA,devB", "devB", 1));
  EXPECT_FALSE(selects("^devB", "devB", 1));
  EXPECT_TRUE(selects("^devB", "devA", 1));
  EXPECT_TRUE(selects("^=dev", "devA", 1));
  EXPECT_TRUE(selects("devA:1", "devA", 1));
  EXPECT_FALSE(selects("devA:2", "devA", 1));
  EXPECT_TRUE(selects("devA:", "devA", 7));
  EXPECT_TRUE(selects("devA:1:0:2", "devA", 1));
  EXPECT_TRUE(selects(",,devA", "devA", 1));
  EXPECT_FALSE(selects("roce*", "roceA", 1));  // literal
}

TEST(Selector, PortNumbersNeverBecomeAny) {
  EXPECT_TRUE(selects("devA:08", "devA", 8));
  EXPECT_TRUE(selects("devA:010", "devA", 10));
  EXPECT_TRUE(selects("devA: +3x", "devA", 3));
  EXPECT_FALSE(selects("devA:abc", "devA", 1));
  EXPECT_FALSE(selects("devA:-1", "devA", 1));
  EXPECT_FALSE(selects("devA:18446744073709551615", "devA", 1));
  EXPECT_FALSE(selects("devA:12345678901234567890", "devA", 1));
}

TEST(Selector, LimitsOfNccl) {
  std::string many;
  for (int i = 0; i < 40; ++i) {
    many += "dev" + std::to_string(100 + i) + ",";
  }
  EXPECT_EQ(parse_hca_selector(many).names.size(), 32U);
  EXPECT_EQ(parse_hca_selector(std::string(100, 'a')).names[0].name.size(), 63U);
}

// Case D-01.
TEST(Gid, EachNodeHasItsOwnIndex) {
  Pair pair;
  EXPECT_EQ(resolve_gid(pair.head_system, {}, "192.168.100.1").value().index, 3);
  EXPECT_EQ(resolve_gid(pair.worker_system, {}, "192.168.100.2").value().index, 5);
}

std::string gid_path(const std::string& device, const std::string& kind, int index) {
  return fmt::format("/sys/class/infiniband/{}/ports/1/{}/{}", device, kind, index);
}

void move_gid(RecordedSystem& system, const std::string& device, int from, int to) {
  for (const char* kind : {"gids", "gid_attrs/types", "gid_attrs/ndevs"}) {
    system.set_file(gid_path(device, kind, to),
                    system.read_file(gid_path(device, kind, from)).value());
    system.remove(gid_path(device, kind, from));
  }
}

TEST(Gid, FollowsAMovedIndex) {
  Pair pair;
  move_gid(pair.head_system, "rocep1s0f1", 3, 4);
  move_gid(pair.head_system, "roceP2p1s0f1", 3, 4);
  EXPECT_EQ(resolve_gid(pair.head_system, {}, "192.168.100.1").value().index, 4);
}

TEST(Gid, OnlyAVersionOneEntryIsNotUsable) {
  Pair pair;
  pair.head_system.remove(gid_path("rocep1s0f1", "gids", 3));
  const auto choice =
      resolve_gid(pair.head_system, parse_hca_selector("=rocep1s0f1"), "192.168.100.1");
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.status().message(), HasSubstr("no RoCE v2 GID for 192.168.100.1"));
  EXPECT_THAT(choice.status().message(), HasSubstr("rocep1s0f1:1"));
}

void add_gid(RecordedSystem& system, const std::string& device, int index) {
  for (const char* kind : {"gids", "gid_attrs/types", "gid_attrs/ndevs"}) {
    system.set_file(gid_path(device, kind, index),
                    system.read_file(gid_path(device, kind, 3)).value());
  }
}

TEST(Gid, TwoDevicesShareOneIndex) {
  Pair pair;  // {3,5} and {5,7} -> 5
  add_gid(pair.head_system, "rocep1s0f1", 5);
  add_gid(pair.head_system, "roceP2p1s0f1", 5);
  move_gid(pair.head_system, "roceP2p1s0f1", 3, 7);
  EXPECT_EQ(resolve_gid(pair.head_system, {}, "192.168.100.1").value().index, 5);
}

TEST(Gid, NoCommonIndexNamesBothSets) {
  Pair pair;  // {3} and {4}
  move_gid(pair.head_system, "roceP2p1s0f1", 3, 4);
  const auto choice = resolve_gid(pair.head_system, {}, "192.168.100.1");
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(choice.status().message(), HasSubstr("rocep1s0f1:1 {3}"));
  EXPECT_THAT(choice.status().message(), HasSubstr("roceP2p1s0f1:1 {4}"));
}

TEST(Gid, AnUnreadableStateKeepsThePort) {
  Pair pair;
  pair.head_system.remove("/sys/class/infiniband/rocep1s0f1/ports/1/state");
  EXPECT_EQ(resolve_gid(pair.head_system, {}, "192.168.100.1").value().ports.size(), 2U);
}

// Case D-02: the head's cable is in port 1, the worker's in port 0.
TEST(Ports, EachNodeUsesItsOwnActivePorts) {
  Pair pair;
  const auto head = resolve_gid(pair.head_system, {}, "192.168.100.1").value();
  const auto worker = resolve_gid(pair.worker_system, {}, "192.168.100.2").value();
  ASSERT_EQ(head.ports.size(), 2U);  // two rails, the dark sibling does not count
  EXPECT_EQ(head.ports[1].device, "rocep1s0f1");
  EXPECT_EQ(worker.ports[1].device, "rocep1s0f0");
  EXPECT_EQ(worker.ports[1].netdevs, std::vector<std::string>{"enp1s0f0np0"});
}

TEST(Ports, SelectingOnlyADarkPortNamesIt) {
  Pair pair;
  const auto choice =
      resolve_gid(pair.head_system, parse_hca_selector("=rocep1s0f0"), "192.168.100.1");
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.status().message(), HasSubstr("rocep1s0f0:1 (state DOWN"));
  EXPECT_FALSE(resolve_gid(pair.head_system, parse_hca_selector("roce*"), "1.2.3.4").ok());
}

}  // namespace
}  // namespace tandem::cluster
