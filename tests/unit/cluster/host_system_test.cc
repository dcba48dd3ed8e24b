#include "operations/cluster/host_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "operations/cluster/process.h"

namespace tandem::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Process, KeepsBothStreamsAndTheExitCode) {
  const CommandResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 7"}, 5'000);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(run_process({"/no/such/program"}, 5'000).exit_code, 127);
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, 5'000).exit_code, 137);
}

TEST(Process, TheDeadlineEndsGrandchildrenToo) {
  const auto start = std::chrono::steady_clock::now();
  const CommandResult result = run_process({"sh", "-c", "sleep 60 & echo $!; wait"}, 300);
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  const pid_t grandchild = static_cast<pid_t>(std::stoi(result.out));
  for (int i = 0; i < 100 && kill(grandchild, 0) == 0; ++i) {
    usleep(20'000);
  }
  const CommandResult state =
      run_process({"ps", "-o", "stat=", "-p", std::to_string(grandchild)}, 5'000);
  EXPECT_THAT(trimmed(state.out), testing::AnyOf("", testing::StartsWith("Z")));
}

TEST(Process, ABackgroundChildThatKeepsThePipeDoesNotBlock) {
  const auto start = std::chrono::steady_clock::now();
  const CommandResult result = run_process({"sh", "-c", "sleep 3 & echo done"}, 10'000);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Ssh, QuotesEveryWord) {
  EXPECT_EQ(shell_quote("it's $HOME"), "'it'\\''s $HOME'");
  const SshTarget target{"me@spark2", {"-F", "/tmp/config"}, ""};
  const std::vector<std::string> line = ssh_command(target, {"rm", "--", "a b;c"});
  EXPECT_EQ(line.front(), "ssh");
  EXPECT_THAT(line, testing::Contains("BatchMode=yes"));
  EXPECT_THAT(line, testing::Contains("ConnectTimeout=5"));
  EXPECT_EQ(line.back(), "'a b;c'");
}

TEST(Recording, FilesFoldersAndCommands) {
  auto system = RecordedSystem::parse(
      "# a comment\n@ /a/b/one\nline 1\nline 2\n@ /a/c\n\n$ 3 ls -l\nsome output\n");
  ASSERT_TRUE(system.ok());
  EXPECT_EQ(system->read_file("/a/b/one").value(), "line 1\nline 2");
  EXPECT_EQ(system->read_file("/a/c").value(), "");
  EXPECT_EQ(system->read_file("/a/d").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(system->list_dir("/a").value(), ElementsAre("b", "c"));
  EXPECT_FALSE(system->list_dir("/b").ok());
  EXPECT_EQ(system->run({"ls", "-l"}, 0).exit_code, 3);
  EXPECT_EQ(system->run({"ls", "-l"}, 0).out, "some output");
  EXPECT_EQ(system->run({"other"}, 0).exit_code, 127);
  const auto again = RecordedSystem::parse(system->to_text());
  EXPECT_EQ(again.value().to_text(), system->to_text());
  EXPECT_FALSE(RecordedSystem::parse("neither\n").ok());
}

TEST(Recording, RecorderKeepsWhatWasAsked) {
  RecordedSystem source = RecordedSystem::parse("@ /x\n1\n$ 0 id\nroot\n").value();
  RecordedSystem copy = RecordedSystem::parse("").value();
  const auto recorder = make_recorder(source, copy);
  EXPECT_EQ(read_word(*recorder, "/x"), "1");
  recorder->run({"id"}, 0);
  EXPECT_EQ(copy.to_text(), source.to_text());
}

TEST(Local, ReadsUnderARoot) {
  const auto system = make_local_system(TANDEM_SOURCE_DIR);
  EXPECT_THAT(system->read_file("/CMakeLists.txt").value(), HasSubstr("project(tandem"));
  EXPECT_EQ(system->read_file("/no-such-file").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(system->list_dir("/tests/cluster/trees").value(),
              ElementsAre("head.tree", "worker.tree"));
}

}  // namespace
}  // namespace tandem::cluster
