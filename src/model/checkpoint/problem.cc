#include "model/checkpoint/problem.h"

#include <algorithm>
#include <array>

namespace tandem::checkpoint {
namespace {

constexpr std::array<std::string_view, 13> kKindNames = {
    "unreadable",  "pointer file", "bad header", "truncated", "index mismatch",
    "config",      "missing",      "extra",      "duplicate", "wrong dtype",
    "wrong shape", "bad value",    "split"};

}  // namespace

std::string_view problem_kind_name(ProblemKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

void ProblemList::add(ProblemKind kind, std::string where, std::string message) {
  problems_.push_back({kind, std::move(where), std::move(message)});
}

void ProblemList::append(const ProblemList& other) {
  problems_.insert(problems_.end(), other.problems_.begin(), other.problems_.end());
}

bool ProblemList::has(ProblemKind kind) const {
  return std::any_of(problems_.begin(), problems_.end(),
                     [kind](const Problem& problem) { return problem.kind == kind; });
}

std::string ProblemList::text(std::size_t max_per_kind) const {
  std::string out;
  for (std::size_t k = 0; k < kKindNames.size(); ++k) {
    std::size_t count = 0;
    for (const Problem& problem : problems_) {
      if (static_cast<std::size_t>(problem.kind) != k) {
        continue;
      }
      if (++count <= max_per_kind) {
        out += fmt::format("{}: {}: {}\n", kKindNames[k], problem.where, problem.message);
      }
    }
    if (count > max_per_kind) {
      out += fmt::format("{}: {} more\n", kKindNames[k], count - max_per_kind);
    }
  }
  return out;
}

Status ProblemList::to_status(std::string_view checkpoint) const {
  if (empty()) {
    return ok_status();
  }
  std::string lines = text();
  lines.pop_back();
  return data_loss("{}: {} problem{}\n{}", checkpoint, size(), size() == 1 ? "" : "s", lines);
}

}  // namespace tandem::checkpoint
