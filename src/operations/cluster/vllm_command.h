// The container commands that engine = "vllm" stands for: the known two-machine vLLM profile, with
// the values that follow from others derived here. SOURCE: recipe.md 1.1, 1.2, 1.5, 1.7.
#pragma once

#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"

namespace tandem::cluster {

inline constexpr const char* kContainer = "tandem-vllm";

enum class Role { kHead, kWorker };

// Largest batch that runs as a captured graph: each sequence verifies its drafts and one token.
std::int64_t graph_capture_size(const VllmConfig& config);

// `docker run -d ...` of one rank, to be run on that rank's machine. `gid_index` is the RoCE GID
// index that was found there; below 0 it is left to NCCL.
// ERRORS: kInvalidArgument (API keys: vLLM takes them only where every user of the machine can
// read them; no cache folder; an unknown thinking mode).
Result<std::vector<std::string>> vllm_command(const ClusterConfig& config, Role role,
                                              int gid_index);

}  // namespace tandem::cluster
