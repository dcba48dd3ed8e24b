#include <map>

#include "operations/cluster/checks.h"

namespace tandem::cluster {
namespace {

std::map<std::string, std::string> files_of(const std::string& manifest) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines_of(manifest)) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= 3) {
      out[line.substr(words[0].size() + words[1].size() + 2)] = words[1] + " bytes, " + words[0];
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> manifest_command(const std::string& folder) {
  return {"sh", "-c",
          "cd -- \"$0\" || exit 1; for f in *; do [ -f \"$f\" ] || continue; case \"$f\" in "
          "*.safetensors) h=$(head -c 1048576 -- \"$f\" | sha256sum);; "
          "*) h=$(sha256sum < \"$f\");; esac; "
          "echo \"${h%% *} $(stat -Lc %s -- \"$f\") $f\"; done",
          folder};
}

std::vector<std::string> manifest_difference(const std::string& head, const std::string& worker) {
  const auto ours = files_of(head);
  const auto theirs = files_of(worker);
  std::vector<std::string> out;
  for (const auto& file : ours) {
    const auto other = theirs.find(file.first);
    if (other == theirs.end()) {
      out.push_back(fmt::format("{}: missing on the worker", file.first));
    } else if (other->second != file.second) {
      out.push_back(fmt::format("{}: head {}; worker {}", file.first, file.second, other->second));
    }
  }
  for (const auto& file : theirs) {
    if (ours.count(file.first) == 0) {
      out.push_back(fmt::format("{}: missing on the head", file.first));
    }
  }
  return out;
}

void check_same_checkpoint(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  constexpr std::int64_t kTimeoutMs = 30'000;
  std::string manifests[2];
  const NodeUnderTest* nodes[2] = {&head, &worker};
  for (int i = 0; i < 2; ++i) {
    const std::string& folder = nodes[i]->config->model_of(*nodes[i]->node);
    CommandResult result = nodes[i]->system->run(manifest_command(folder), kTimeoutMs);
    if (!result.ok() || result.out.find("config.json") == std::string::npos) {
      out.push_back({"checkpoint", nodes[i]->name, Level::kFail,
                     fmt::format("{} holds no checkpoint", folder), "serving never downloads",
                     fmt::format("copy it to the {} first", nodes[i]->name)});
      return;
    }
    manifests[i] = std::move(result.out);
  }
  const std::vector<std::string> different = manifest_difference(manifests[0], manifests[1]);
  if (different.empty()) {
    out.push_back({"checkpoint", "pair", Level::kPass,
                   fmt::format("{} files, same content on both", lines_of(manifests[0]).size()), "",
                   ""});
    return;
  }
  out.push_back({"checkpoint", "pair", Level::kFail,
                 fmt::format("{} file(s) differ: {}", different.size(), different.front()),
                 "two ranks with different weights give wrong text, not an error",
                 fmt::format("rsync -a --checksum {}/ {}:{}/", head.config->model_of(*head.node),
                             worker.node->ssh, worker.config->model_of(*worker.node))});
}

void check_same_program(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  const std::vector<std::string> command{"sha256sum", "--", head.config->binary};
  const std::string ours = head.system->run(command, 20'000).out.substr(0, 64);
  const std::string theirs = worker.system->run(command, 20'000).out.substr(0, 64);
  if (ours == theirs && !ours.empty()) {
    out.push_back({"binary_digest", "pair", Level::kPass,
                   fmt::format("{} is the same on both", head.config->binary), "", ""});
    return;
  }
  out.push_back(
      {"binary_digest", "pair", Level::kFail,
       fmt::format("{} differs: head {}, worker {}", head.config->binary, ours.substr(0, 12),
                   theirs.empty() ? "none" : theirs.substr(0, 12)),
       "the ranks speak the protocol of exactly one build",
       fmt::format("scp {} {}:{}", head.config->binary, worker.node->ssh, head.config->binary)});
}

void check_same_kernel(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  const std::string ours = read_word(*head.system, "/proc/sys/kernel/osrelease");
  const std::string theirs = read_word(*worker.system, "/proc/sys/kernel/osrelease");
  if (ours == theirs) {
    out.push_back({"kernel", "pair", Level::kPass, "kernel " + ours + " on both", "", ""});
    return;
  }
  out.push_back(
      {"kernel", "pair", Level::kWarn, fmt::format("head runs kernel {}, worker {}", ours, theirs),
       "faults that appear on one machine only are hard to find", "update both machines together"});
}

}  // namespace tandem::cluster
