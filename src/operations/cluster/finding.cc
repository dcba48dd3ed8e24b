#include "operations/cluster/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tandem::cluster {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kPass:
      return "pass";
    case Level::kNote:
      return "note";
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "FAIL";
  }
  return "?";
}

Level DoctorReport::worst() const {
  Level worst = Level::kPass;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.level);
  }
  return worst;
}

std::string DoctorReport::to_text(bool all) const {
  std::string out;
  std::map<Level, int> counts;
  for (const Finding& finding : findings) {
    ++counts[finding.level];
    if (finding.level == Level::kPass && !all) {
      continue;
    }
    out += fmt::format("{:4}  {:<6}  {:<16} {}\n", level_name(finding.level), finding.node,
                       finding.id, finding.seen);
    if (!finding.why.empty()) {
      out += fmt::format("{:31}why: {}\n", "", finding.why);
    }
    if (!finding.fix.empty()) {
      out += fmt::format("{:31}fix: {}{}\n", "", finding.fix,
                         finding.safe_fix.empty() ? "" : "   (doctor --fix does this)");
    }
  }
  return out + fmt::format("{} passed, {} notes, {} warnings, {} failures\n", counts[Level::kPass],
                           counts[Level::kNote], counts[Level::kWarn], counts[Level::kFail]);
}

json::Value DoctorReport::to_json() const {
  json::Array list;
  for (const Finding& finding : findings) {
    list.push_back(json::Object{{"id", finding.id},
                                {"node", finding.node},
                                {"level", level_name(finding.level)},
                                {"seen", finding.seen},
                                {"why", finding.why},
                                {"fix", finding.fix},
                                {"safe", !finding.safe_fix.empty()}});
  }
  return json::Object{{"worst", level_name(worst())}, {"findings", list}};
}

}  // namespace tandem::cluster
