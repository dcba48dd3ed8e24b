#include "model/v4/inspect.h"

#include <array>

#include "compute/tensor/row_format.h"
#include "model/checkpoint/accounting.h"

namespace tandem::v4 {
namespace {

using checkpoint::kTensorGroupCount;
using checkpoint::TensorGroup;
using checkpoint::TensorSpec;

// Main layers first, then what the draft stages have.
std::vector<GroupTotal> group_totals(const OpenedModel& model) {
  std::array<std::array<GroupTotal, kTensorGroupCount>, 2> totals;
  for (const TensorSpec& spec : model.table) {
    const std::size_t draft = spec.layer >= model.config.n_layers ? 1 : 0;
    GroupTotal& total = totals[draft][static_cast<std::size_t>(spec.group)];
    ++total.tensors;
    total.bytes += spec.bytes();
  }
  std::vector<GroupTotal> used;
  for (std::size_t draft = 0; draft < 2; ++draft) {
    for (std::size_t group = 0; group < kTensorGroupCount; ++group) {
      GroupTotal total = totals[draft][group];
      if (total.tensors == 0) {
        continue;
      }
      const auto kind = static_cast<TensorGroup>(group);
      const std::string_view name =
          kind == TensorGroup::kDraft ? "projections and heads" : tensor_group_name(kind);
      total.name = draft == 1 ? fmt::format("draft: {}", name) : std::string(name);
      used.push_back(std::move(total));
    }
  }
  return used;
}

RankBytes rank_bytes(const OpenedModel& model, int world) {
  RankBytes result;
  result.world = world;
  result.possible = check_world(model.config, world).ok();
  for (int rank = 0; rank < world && result.possible; ++rank) {
    const auto uses = checkpoint::plan_weights(model.table, rank, world);
    if (!uses.ok()) {
      result.possible = false;
      break;
    }
    std::int64_t bytes = 0;
    for (const device::MemoryUse& use : *uses) {
      bytes += use.bytes;
    }
    result.weight_bytes.push_back(bytes);
  }
  return result;
}

std::vector<KvBytes> kv_bytes(const ModelConfig& config) {
  struct Format {
    const char* name;
    double row;        // bytes of a 512-wide row
    double index_key;  // bytes of a 128-wide key
  };
  constexpr double kFp8Row = 584;
  constexpr Format kFormats[] = {{"float32 rows and index keys", 2048, 512},
                                 {"bf16 rows and index keys", 1024, 256},
                                 {"fp8 rows, bf16 index keys", kFp8Row, 256},
                                 {"fp8 rows, fp8 index keys", kFp8Row, 132},
                                 {"fp8 rows, mxfp4 index keys", kFp8Row, 68}};
  std::vector<KvBytes> list;
  const double n_csa = config.n_layers_with(4);
  const double n_hca = config.n_layers_with(128);
  for (const Format& format : kFormats) {
    list.push_back(
        {format.name, n_csa * (format.row + format.index_key) / 4 + n_hca * format.row / 128});
  }
  return list;
}

std::string gigabytes(std::int64_t bytes) {
  constexpr std::int64_t kMega = 1000000;
  return bytes < 1000 * kMega ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                              : fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string config_text(const ModelConfig& config) {
  std::string out = fmt::format(
      "layers     {} ({} window, {} CSA ratio 4, {} HCA ratio 128), {} with token experts\n"
      "hidden     {} x {} streams, {} heads of {}, q rank {}, {} output groups of rank {}\n"
      "experts    {} routed, {} per token, 1 shared, width {}\n"
      "indexer    {} heads of {}, top {}\n"
      "vocabulary {}, context {} tokens\n",
      config.n_layers, config.n_layers_with(0), config.n_layers_with(4), config.n_layers_with(128),
      config.n_hash_layers, config.hidden, config.hc_mult, config.n_heads, tensor::kHeadDim,
      config.q_lora, config.o_groups, config.o_lora, config.n_experts, config.expert_top_k,
      config.moe_inter, config.index_heads, tensor::kIndexDim, config.index_top_k,
      config.vocab_size, config.max_positions);
  switch (config.draft) {
    case DraftKind::kNone:
      return out + "drafter    none\n";
    case DraftKind::kMtp:
      return out + "drafter    MTP, one block (preview)\n";
    case DraftKind::kDspark:
      return out + fmt::format("drafter    DSpark, {} stages, {} slots (0731 or -DSpark)\n",
                               config.n_draft_layers, config.dspark_block_size);
  }
  return out;
}

std::string totals_text(const ModelReport& report) {
  std::string out = fmt::format("\n{:<32} {:>9} {:>18}\n", "tensors", "count", "bytes");
  GroupTotal sum;
  for (const GroupTotal& group : report.groups) {
    out += fmt::format("{:<32} {:>9} {:>18}\n", group.name, group.tensors, group.bytes);
    sum.tensors += group.tensors;
    sum.bytes += group.bytes;
  }
  out += fmt::format("{:<32} {:>9} {:>18}\n\n", "expected by config.json", sum.tensors, sum.bytes);
  for (const RankBytes& ranks : report.ranks) {
    out += fmt::format("weights on {} rank{}: ", ranks.world, ranks.world == 1 ? "" : "s");
    out += ranks.possible ? fmt::format("{} each\n", gigabytes(ranks.weight_bytes.front()))
                          : std::string("not possible\n");
  }
  for (const KvBytes& kv : report.kv) {
    out += fmt::format("KV per token, {}: {:.0f} bytes\n", kv.format, kv.per_token);
  }
  return out;
}

}  // namespace

ModelReport inspect_model(const std::filesystem::path& path) {
  ModelReport report;
  report.model = examine_model(path, 1, report.problems);
  for (const checkpoint::ShardFile& shard : report.model.files.shards) {
    report.file_bytes += static_cast<std::int64_t>(shard.bytes);
  }
  if (report.model.has_config) {
    report.groups = group_totals(report.model);
    report.ranks = {rank_bytes(report.model, 1), rank_bytes(report.model, 2)};
    report.kv = kv_bytes(report.model.config);
  }
  return report;
}

ModelReport check_model(const std::filesystem::path& path, int n_threads,
                        const std::function<void(const checkpoint::LoadProgress&)>& progress) {
  ModelReport report = inspect_model(path);
  if (report.model.has_config) {
    checkpoint::check_values(report.model.files, report.model.table, n_threads, progress,
                             report.problems);
  }
  return report;
}

std::string report_text(const ModelReport& report) {
  std::string out = fmt::format("{}\n{} shards, {} tensors, {}\n", report.model.files.root.string(),
                                report.model.files.shards.size(), report.model.files.tensors.size(),
                                gigabytes(report.file_bytes));
  if (report.model.has_config) {
    out += config_text(report.model.config) + totals_text(report);
  }
  if (report.problems.empty()) {
    return out + "\nno problems\n";
  }
  const std::size_t n = report.problems.size();
  return out + fmt::format("\n{} problem{}\n", n, n == 1 ? "" : "s") + report.problems.text();
}

json::Value report_json(const ModelReport& report) {
  json::Object out;
  out["path"] = report.model.files.root.string();
  out["shards"] = report.model.files.shards.size();
  out["tensors"] = report.model.files.tensors.size();
  out["file_bytes"] = report.file_bytes;
  if (report.model.has_config) {
    out["draft"] = draft_kind_name(report.model.config.draft);
    out["draft_layers"] = report.model.config.n_draft_layers;
    out["config"] = config_to_json(report.model.config);
    json::Array groups;
    for (const GroupTotal& group : report.groups) {
      groups.push_back(
          json::Object{{"name", group.name}, {"tensors", group.tensors}, {"bytes", group.bytes}});
    }
    out["groups"] = std::move(groups);
    json::Array ranks;
    for (const RankBytes& entry : report.ranks) {
      ranks.push_back(json::Object{
          {"ranks", entry.world},
          {"possible", entry.possible},
          {"weight_bytes", json::Array(entry.weight_bytes.begin(), entry.weight_bytes.end())}});
    }
    out["ranks"] = std::move(ranks);
    json::Array kv;
    for (const KvBytes& entry : report.kv) {
      kv.push_back(json::Object{{"format", entry.format}, {"bytes_per_token", entry.per_token}});
    }
    out["kv"] = std::move(kv);
  }
  json::Array problems;
  for (const checkpoint::Problem& problem : report.problems.all()) {
    problems.push_back(json::Object{{"kind", checkpoint::problem_kind_name(problem.kind)},
                                    {"where", problem.where},
                                    {"message", problem.message}});
  }
  out["problems"] = std::move(problems);
  return out;
}

}  // namespace tandem::v4
