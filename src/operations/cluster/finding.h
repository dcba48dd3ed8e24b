// Finding: one sentence of the doctor. Every check gives at least one, also when all is well, so
// that the report shows what was looked at.
#pragma once

#include <string>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::cluster {

enum class Level { kPass, kNote, kWarn, kFail };

std::string_view level_name(Level level);

struct Finding {
  std::string id;    // stable, "mtu"
  std::string node;  // "head", "worker" or "pair"
  Level level = Level::kPass;
  std::string seen;
  std::string why;                         // empty for a pass
  std::string fix;                         // what the owner types
  std::vector<std::string> safe_fix = {};  // what `--fix` may run on that node
};

struct DoctorReport {
  std::vector<Finding> findings;

  Level worst() const;
  // Exit code of the doctor: 0 no failure, 4 at least one.
  int exit_code() const { return worst() == Level::kFail ? 4 : 0; }
  std::string to_text(bool all) const;
  json::Value to_json() const;
};

}  // namespace tandem::cluster
