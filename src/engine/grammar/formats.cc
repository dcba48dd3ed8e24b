#include "engine/grammar/formats.h"

#include <array>
#include <mutex>
#include <string>
#include <unordered_map>

#include "engine/grammar/regex.h"
#include "foundation/base/check.h"

namespace tandem::grammar {
namespace {

// Days per month with leap years (RFC 3339 5.7; a year divisible by 4, by 100 only if by 400).
const std::string kLeap =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const std::string kDate =
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
    kLeap + "-02-29)";
// A leap second exists at 23:59:60 UTC only; offsets that shift it are left out.
const std::string kClock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,12})?";
const std::string kOffset = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const std::string kLeapSecond = "23:59:60(?:\\.[0-9]{1,12})?(?:[Zz]|[+-]00:00)";
const std::string kTime = "(?:" + kClock + kOffset + "|" + kLeapSecond + ")";

const std::string kOctet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const std::string kIpv4 = "(?:" + kOctet + "\\.){3}" + kOctet;

const std::string kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,39}[A-Za-z0-9])?";
const std::string kHostname = kLabel + "(?:\\." + kLabel + "){0,5}";

// The part after '?' and '#', and path segments (RFC 3986).
const std::string kPchar = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const std::string kQuery = "(?:" + kPchar + "|[/?])*";

std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  const std::string last = "(?:" + h + ":" + h + "|" + kIpv4 + ")";
  std::string out = "(?:" + h + ":){6}" + last;
  for (int left = 0; left <= 5; ++left) {
    // `left` groups at most before "::", the rest after it.
    const std::string before =
        left == 0 ? "" : "(?:" + h + "(?::" + h + "){0," + std::to_string(left - 1) + "})?";
    out += "|" + before + "::(?:" + h + ":){" + std::to_string(5 - left) + "}" + last;
  }
  const std::string six = "(?:" + h + "(?::" + h + "){0,5})?";
  const std::string seven = "(?:" + h + "(?::" + h + "){0,6})?";
  return "(?:" + out + "|" + six + "::" + h + "|" + seven + "::)";
}

std::string authority() {
  const std::string user = "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?";
  const std::string name = "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*";
  return user + "(?:\\[" + ipv6() + "\\]|" + name + ")(?::[0-9]*)?";
}

std::string after_scheme() {
  return "(?://" + authority() + "(?:/" + kPchar + "*)*|/(?:" + kPchar + "+(?:/" + kPchar +
         "*)*)?|" + kPchar + "+(?:/" + kPchar + "*)*|)";
}

std::string uri() {
  return "[A-Za-z][A-Za-z0-9+.-]*:" + after_scheme() + "(?:\\?" + kQuery + ")?(?:#" + kQuery + ")?";
}

std::string uri_reference() {
  const std::string segment = "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+";
  const std::string relative = "(?://" + authority() + "(?:/" + kPchar + "*)*|/(?:" + kPchar +
                               "+(?:/" + kPchar + "*)*)?|" + segment + "(?:/" + kPchar + "*)*|)";
  return "(?:" + uri() + "|" + relative + "(?:\\?" + kQuery + ")?(?:#" + kQuery + ")?)";
}

std::string duration() {
  const std::string time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  const std::string day = "[0-9]+D";
  const std::string month = "[0-9]+M(?:" + day + ")?";
  const std::string year = "[0-9]+Y(?:" + month + ")?";
  return "P(?:(?:" + year + "|" + month + "|" + day + ")(?:" + time + ")?|" + time + "|[0-9]+W)";
}

std::string source_of(std::string_view name) {
  if (name == "date") {
    return kDate;
  }
  if (name == "time") {
    return kTime;
  }
  if (name == "date-time") {
    return kDate + "[Tt]" + kTime;
  }
  if (name == "duration") {
    return duration();
  }
  if (name == "email") {
    const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
    return atom + "(?:\\." + atom + "){0,8}@" + kHostname;
  }
  if (name == "hostname") {
    return kHostname;
  }
  if (name == "ipv4") {
    return kIpv4;
  }
  if (name == "ipv6") {
    return ipv6();
  }
  if (name == "uuid") {
    return "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
  }
  if (name == "uri") {
    return uri();
  }
  if (name == "uri-reference") {
    return uri_reference();
  }
  if (name == "json-pointer") {
    return "(?:/(?:[^~/]|~[01])*)*";
  }
  if (name == "relative-json-pointer") {
    return "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)";
  }
  return "";
}

constexpr std::array<std::string_view, 6> kUnenforcedFormats = {
    "idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"};

}  // namespace

FormatKind format_kind(std::string_view name) {
  if (!source_of(name).empty()) {
    return FormatKind::kEnforced;
  }
  for (const std::string_view other : kUnenforcedFormats) {
    if (name == other) {
      return FormatKind::kUnenforced;
    }
  }
  return FormatKind::kAnnotation;
}

DfaPtr format_dfa(std::string_view name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, DfaPtr> made;
  const std::lock_guard<std::mutex> lock(mutex);
  DfaPtr& dfa = made[std::string(name)];
  if (dfa == nullptr) {
    Result<DfaPtr> compiled = compile_pattern(source_of(name), RegexMatch::kWhole);
    TANDEM_CHECK(compiled.ok(), compiled.status().message());
    dfa = std::move(*compiled);
  }
  return dfa;
}

}  // namespace tandem::grammar
