// What `tandem model inspect` and `check` say about a checkpoint, as text and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "model/checkpoint/problem.h"
#include "model/checkpoint/weight_store.h"
#include "model/v4/open_model.h"

namespace tandem::v4 {

struct GroupTotal {
  std::string name;  // "attention", "draft: attention"
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

struct RankBytes {
  int world = 1;
  bool possible = false;                   // the weights can be shared by this many ranks
  std::vector<std::int64_t> weight_bytes;  // in memory, per rank
};

// Growth of one sequence per token. SOURCE: model.md 4.4.
struct KvBytes {
  std::string format;  // "fp8 rows, fp8 index keys"
  double per_token = 0;
};

struct ModelReport {
  OpenedModel model;
  std::vector<GroupTotal> groups;
  std::vector<RankBytes> ranks;  // for 1 and 2 ranks
  std::vector<KvBytes> kv;
  std::int64_t file_bytes = 0;
  checkpoint::ProblemList problems;
};

// Reads config, index and headers.
ModelReport inspect_model(const std::filesystem::path& path);

// inspect_model(), then all data: bad values and short reads become problems too.
ModelReport check_model(const std::filesystem::path& path, int n_threads,
                        const std::function<void(const checkpoint::LoadProgress&)>& progress);

std::string report_text(const ModelReport& report);
json::Value report_json(const ModelReport& report);

}  // namespace tandem::v4
