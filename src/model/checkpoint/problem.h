// ProblemList: everything that is wrong with a checkpoint, gathered so that one report names it
// all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::checkpoint {

enum class ProblemKind {
  kUnreadable,     // a file that should be there is missing or cannot be read
  kPointerFile,    // a git-lfs pointer in place of the data
  kBadHeader,      // a safetensors header that breaks the format
  kTruncated,      // a shard shorter than its header says
  kIndexMismatch,  // the index and the shards disagree
  kConfig,         // config.json
  kMissing,        // a tensor that the config asks for is nowhere
  kExtra,          // a tensor that the config does not know
  kDuplicate,      // a tensor that is there twice
  kWrongDtype,
  kWrongShape,
  kBadValue,  // a scale that is NaN, a value that is not finite, an id out of range
  kSplit,     // a tensor that cannot be divided over this many ranks
};

std::string_view problem_kind_name(ProblemKind kind);

struct Problem {
  ProblemKind kind = ProblemKind::kUnreadable;
  std::string where;    // a file or tensor name
  std::string message;  // what was found, what was expected
};

class ProblemList {
 public:
  void add(ProblemKind kind, std::string where, std::string message);
  void append(const ProblemList& other);

  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  const std::vector<Problem>& all() const { return problems_; }
  bool has(ProblemKind kind) const;

  // One line per problem, at most max_per_kind of each kind and a line that counts the rest.
  std::string text(std::size_t max_per_kind = 20) const;

  // OK if empty, else kDataLoss with text().
  Status to_status(std::string_view checkpoint) const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace tandem::checkpoint
