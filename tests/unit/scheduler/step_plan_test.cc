#include "engine/scheduler/step_plan.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace tandem::scheduler {
namespace {

ControlMessage step_message() {
  ControlMessage message;
  message.kind = MessageKind::kStep;
  message.step.saves = {{2, 256, 1}};
  message.step.cleared_slots = {0, 3};
  message.step.assignments = {{1, 4, {7, 8, 9}}, {2, 0, {}}};
  message.step.restores = {{1, 1'048'448, 5}};
  message.step.segments = {{77, 1, 5'000'000'000, {1, 2, 3}, 2, 3}, {78, 2, 0, {4}, 0, 0}};
  return message;
}

ControlMessage draft_message() {
  ControlMessage message;
  message.kind = MessageKind::kDraft;
  message.draft.segments = {{3, 2, 129'279, 5, 9'000'000'000, 0.75F, ~0ULL}};
  return message;
}

TEST(MessageChain, EveryKindComesBackAsItWas) {
  MessageChain sender;
  MessageChain receiver;
  ControlMessage heartbeat;
  ControlMessage shutdown;
  shutdown.kind = MessageKind::kShutdown;
  for (const ControlMessage& message :
       {step_message(), draft_message(), heartbeat, shutdown, step_message()}) {
    const auto received = receiver.decode(sender.encode(message));
    ASSERT_TRUE(received.ok()) << received.status().to_string();
    EXPECT_EQ(*received, message);
    EXPECT_EQ(sender.hash(), receiver.hash());
  }
  EXPECT_EQ(receiver.n_messages(), 5U);
}

TEST(MessageChain, AnyDamagedByteIsFound) {
  MessageChain sender;
  const std::vector<std::uint8_t> bytes = sender.encode(step_message());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[i] ^= 0x10;
    MessageChain receiver;
    const auto received = receiver.decode(damaged);
    ASSERT_FALSE(received.ok()) << "byte " << i;
    EXPECT_EQ(received.status().code(), StatusCode::kDataLoss);
    EXPECT_TRUE(receiver.decode(bytes).ok()) << "a refused message must not change the state";
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    MessageChain receiver;
    EXPECT_FALSE(receiver.decode(std::span(bytes).first(n)).ok()) << "cut to " << n;
  }
}

TEST(MessageChain, LostRepeatedAndForeignMessagesAreFound) {
  MessageChain sender;
  const auto first = sender.encode(step_message());
  const auto second = sender.encode(draft_message());
  MessageChain lost;
  EXPECT_NE(lost.decode(second).status().message().find("a message was lost"), std::string::npos);
  MessageChain repeated;
  ASSERT_TRUE(repeated.decode(first).ok());
  EXPECT_FALSE(repeated.decode(first).ok());
  // Another history with the same second message.
  MessageChain other;
  other.encode(draft_message());
  const auto other_second = other.encode(draft_message());
  EXPECT_NE(repeated.decode(other_second).status().message().find("drifted"), std::string::npos);
}

TEST(MessageChain, RandomBytesAreRefused) {
  Random random(11);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::uint8_t> bytes(random.below(200));
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random.below(256));
    }
    MessageChain chain;
    EXPECT_FALSE(chain.decode(bytes).ok());
  }
}

}  // namespace
}  // namespace tandem::scheduler
