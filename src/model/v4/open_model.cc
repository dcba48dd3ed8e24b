#include "model/v4/open_model.h"

#include <string_view>

#include "model/checkpoint/accounting.h"
#include "model/v4/tensor_table.h"

namespace tandem::v4 {
namespace {

using checkpoint::ProblemKind;
using checkpoint::ProblemList;

void add_lines(ProblemKind kind, const std::string& where, std::string_view text,
               ProblemList& problems) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    problems.add(kind, where, std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// config.json with the draft kind that the tensors show, or nothing.
bool read_config(OpenedModel& model, ProblemList& problems) {
  const Result<std::string> text = checkpoint::read_text_file(model.files.root / "config.json");
  if (!text.ok()) {
    const bool pointer = text.status().code() == StatusCode::kDataLoss;
    problems.add(pointer ? ProblemKind::kPointerFile : ProblemKind::kUnreadable, "config.json",
                 text.status().message());
    return false;
  }
  Result<ModelConfig> config = parse_config(*text);
  if (!config.ok()) {
    add_lines(ProblemKind::kConfig, "config.json", config.status().message(), problems);
    return false;
  }
  std::vector<std::string> names;
  for (const checkpoint::TensorLocation& tensor : model.files.tensors) {
    names.push_back(tensor.name);
  }
  names.insert(names.end(), model.files.unreadable.begin(), model.files.unreadable.end());
  model.config = std::move(config).value();
  const Status status = resolve_draft(model.config, names);
  if (!status.ok()) {
    add_lines(ProblemKind::kConfig, "config.json", status.message(), problems);
    return false;
  }
  return true;
}

}  // namespace

OpenedModel examine_model(const std::filesystem::path& path, int world, ProblemList& problems) {
  OpenedModel model;
  const Result<std::filesystem::path> root = checkpoint::resolve_checkpoint(path);
  if (!root.ok()) {
    problems.add(ProblemKind::kUnreadable, path.string(), root.status().message());
    return model;
  }
  model.files = checkpoint::scan_checkpoint(*root, problems);
  model.has_config = read_config(model, problems);
  if (!model.has_config) {
    return model;
  }
  model.table = make_tensor_table(model.config);
  checkpoint::check_tensors(model.files, model.table, problems);
  const Status status = check_world(model.config, world);
  if (!status.ok()) {
    problems.add(ProblemKind::kSplit, "config.json", status.message());
  } else {
    checkpoint::check_split(model.table, world, problems);
  }
  return model;
}

Result<OpenedModel> open_model(const std::filesystem::path& path, int world) {
  TANDEM_TRY(checkpoint::resolve_checkpoint(path).status());
  ProblemList problems;
  OpenedModel model = examine_model(path, world, problems);
  TANDEM_TRY(problems.to_status(path.string()));
  return model;
}

Result<checkpoint::WeightStore> load_weights(const OpenedModel& model, device::Device& device,
                                             const checkpoint::LoadOptions& options) {
  return checkpoint::WeightStore::load(model.files, model.table, device, options);
}

}  // namespace tandem::v4
