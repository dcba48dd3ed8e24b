#include "apps/tandem/serve_config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace tandem::apps {
namespace {

std::string flag_name(std::string name) {
  for (char& c : name) {
    if (c == '_') {
      c = '-';
    }
  }
  return "--" + name;
}

Status set_from_text(const ConfigField& field, const std::string& text) {
  if (auto* const* target = std::get_if<std::string*>(&field.value)) {
    **target = text;
    return ok_status();
  }
  if (auto* const* target = std::get_if<bool*>(&field.value)) {
    if (text != "true" && text != "false") {
      return invalid_argument("{} = '{}'; expected true or false", flag_name(field.name), text);
    }
    **target = text == "true";
    return ok_status();
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return invalid_argument("{} = '{}'; expected a whole number", flag_name(field.name), text);
  }
  *std::get<std::int64_t*>(field.value) = number;
  return ok_status();
}

Status set_from_toml(const ConfigField& field, const toml::node& node) {
  if (auto* const* target = std::get_if<std::string*>(&field.value)) {
    if (const auto text = node.value_exact<std::string>()) {
      **target = *text;
      return ok_status();
    }
    return invalid_argument("{}: expected a string in quotes", field.name);
  }
  if (auto* const* target = std::get_if<bool*>(&field.value)) {
    if (const auto flag = node.value_exact<bool>()) {
      **target = *flag;
      return ok_status();
    }
    return invalid_argument("{}: expected true or false", field.name);
  }
  if (const auto number = node.value_exact<std::int64_t>()) {
    *std::get<std::int64_t*>(field.value) = *number;
    return ok_status();
  }
  return invalid_argument("{}: expected a whole number", field.name);
}

void add_range_problem(std::string& problems, std::string_view name, std::int64_t value,
                       std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    problems += fmt::format("\n  {} = {}; expected {} to {}", name, value, low, high);
  }
}

std::string plain_text(const ConfigField& field) {
  if (auto* const* text = std::get_if<std::string*>(&field.value)) {
    return **text;
  }
  if (auto* const* flag = std::get_if<bool*>(&field.value)) {
    return **flag ? "true" : "false";
  }
  return std::to_string(*std::get<std::int64_t*>(field.value));
}

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::vector<ConfigField> ConfigLoader::fields() {
  ServeConfig& c = config_;
  return {
      {"model", &c.model, "checkpoint folder or Hugging Face cache folder"},
      {"model_name", &c.model_name, "name clients use; default: the folder's name"},
      {"host", &c.host, "address to listen on"},
      {"port", &c.port, "port to listen on"},
      {"tp", &c.tp, "ranks that share the model: 1 or 2"},
      {"hosts", &c.hosts,
       "one host per rank, the head first; empty: all ranks here. Addresses bind the ranks to "
       "their "
       "network"},
      {"ssh_command", &c.ssh_command, "how the head reaches the other hosts"},
      {"threads", &c.threads, "CPU threads per rank; 0: cores / ranks"},
      {"device", &c.device, "cpu or cuda: what the model runs on"},
      {"numerics", &c.numerics, "native or reference (docs/NUMERICS.md)"},
      {"max_sequences", &c.max_sequences, "sequences that run at once"},
      {"max_context_tokens", &c.max_context_tokens, "longest prompt and answer together"},
      {"kv_tokens", &c.kv_tokens, "tokens that the shared KV pages hold"},
      {"kv_format", &c.kv_format, "stored KV rows under native numerics: fp8 or bf16, both exact"},
      {"prefix_snapshots", &c.prefix_snapshots, "places of the prefix cache; 0: no prefix cache"},
      {"prefill_tokens", &c.prefill_tokens, "most rows of one step"},
      {"max_waiting", &c.max_waiting, "requests that may queue before 429"},
      {"stall_s", &c.stall_s, "a step that takes longer is a fault: the pair ends with a verdict"},
      {"draft_tokens", &c.draft_tokens,
       "most drafts per step; 0: no speculation; -1: what the checkpoint's drafter suits"},
      {"state_dir", &c.state_dir, "folder for stored responses; empty: not stored"},
      {"api_keys_file", &c.api_keys_file, "file with named API keys"},
      {"tls_certificate", &c.tls_certificate, "PEM certificate chain"},
      {"tls_key", &c.tls_key, "PEM private key"},
      {"allow_public_without_key", &c.allow_public_without_key,
       "listen on a public address although no keys are set"},
      {"log_level", &c.log_level, "error, warning, info or debug"},
  };
}

void ConfigLoader::add_flags(CLI::App& verb) {
  verb.add_option("--config", file_, "TOML file with the values below");
  for (const ConfigField& field : fields()) {
    const std::string name = field.name;
    const auto set = [this, name](const std::string& text) { flags_[name] = text; };
    if (std::holds_alternative<bool*>(field.value)) {
      verb.add_flag_callback(
          flag_name(name), [this, name] { flags_[name] = "true"; }, field.help);
    } else {
      verb.add_option_function<std::string>(flag_name(name), set, field.help);
    }
  }
}

Status ConfigLoader::read_file() {
  if (!std::filesystem::exists(file_)) {
    return not_found("config file {} does not exist", file_);
  }
  toml::table table;
  try {
    table = toml::parse_file(file_);
  } catch (const toml::parse_error& error) {
    return invalid_argument("config file {}, line {}: {}", file_, error.source().begin.line,
                            error.description());
  }
  std::string problems;
  const std::vector<ConfigField> known = fields();
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    bool found = false;
    for (const ConfigField& field : known) {
      if (field.name == name) {
        found = true;
        const Status status = set_from_toml(field, node);
        problems += status.ok() ? "" : "\n  " + status.message();
        sources_[name] = "file " + file_;
      }
    }
    if (!found) {
      problems += fmt::format("\n  unknown key '{}'; `tandem config` lists all keys", name);
    }
  }
  if (!problems.empty()) {
    return invalid_argument("config file {}:{}", file_, problems);
  }
  return ok_status();
}

Status ConfigLoader::check() const {
  std::string problems;
  const ServeConfig& c = config_;
  if (c.model.empty()) {
    problems += "\n  model is not set; give --model FOLDER or model = \"FOLDER\" in the file";
  }
  add_range_problem(problems, "port", c.port, 0, 65535);
  if (c.tp != 1 && c.tp != 2) {
    problems += fmt::format("\n  tp = {}; expected 1 or 2", c.tp);
  }
  if (c.device != "cpu" && c.device != "cuda") {
    problems += fmt::format("\n  device = '{}'; expected cpu or cuda", c.device);
  }
  if (c.numerics != "native" && c.numerics != "reference") {
    problems += fmt::format("\n  numerics = '{}'; expected native or reference", c.numerics);
  }
  if (c.kv_format != "fp8" && c.kv_format != "bf16") {
    problems += fmt::format("\n  kv_format = '{}'; expected fp8 or bf16", c.kv_format);
  }
  if (!c.hosts.empty() && std::count(c.hosts.begin(), c.hosts.end(), ',') + 1 != c.tp) {
    problems += fmt::format("\n  hosts = '{}'; expected {} names with commas between, as tp says",
                            c.hosts, c.tp);
  }
  if (c.log_level != "error" && c.log_level != "warning" && c.log_level != "info" &&
      c.log_level != "debug") {
    problems +=
        fmt::format("\n  log_level = '{}'; expected error, warning, info or debug", c.log_level);
  }
  add_range_problem(problems, "threads", c.threads, 0, 1024);
  add_range_problem(problems, "max_sequences", c.max_sequences, 1, 1024);
  add_range_problem(problems, "max_context_tokens", c.max_context_tokens, 128, 1048576);
  add_range_problem(problems, "kv_tokens", c.kv_tokens, 128, std::int64_t{1} << 32);
  add_range_problem(problems, "prefix_snapshots", c.prefix_snapshots, 0, 100000);
  add_range_problem(problems, "prefill_tokens", c.prefill_tokens, 16, 65536);
  add_range_problem(problems, "max_waiting", c.max_waiting, 1, 100000);
  add_range_problem(problems, "stall_s", c.stall_s, 1, 3600);
  add_range_problem(problems, "draft_tokens", c.draft_tokens, -1, 8);
  if (c.tls_certificate.empty() != c.tls_key.empty()) {
    problems += "\n  tls_certificate and tls_key belong together; one is missing";
  }
  if (!problems.empty()) {
    return invalid_argument("config:{}", problems);
  }
  return ok_status();
}

Status ConfigLoader::resolve() {
  for (const ConfigField& field : fields()) {
    sources_[field.name] = "default";
  }
  if (!file_.empty()) {
    TANDEM_TRY(read_file());
  }
  for (const ConfigField& field : fields()) {
    const auto flag = flags_.find(field.name);
    if (flag != flags_.end()) {
      TANDEM_TRY(set_from_text(field, flag->second));
      sources_[field.name] = "flag";
    }
  }
  return check();
}

std::vector<std::string> ConfigLoader::to_flags() {
  std::vector<std::string> flags;
  for (const ConfigField& field : fields()) {
    if (auto* const* flag = std::get_if<bool*>(&field.value)) {
      if (**flag) {
        flags.push_back(flag_name(field.name));
      }
      continue;
    }
    const std::string value = plain_text(field);
    if (!value.empty()) {
      flags.push_back(flag_name(field.name));
      flags.push_back(value);
    }
  }
  return flags;
}

std::string ConfigLoader::to_toml() {
  std::string out;
  for (const ConfigField& field : fields()) {
    const bool is_text = std::holds_alternative<std::string*>(field.value);
    const std::string value = is_text ? toml_string(plain_text(field)) : plain_text(field);
    out +=
        fmt::format("{} = {}  # {}; {}\n", field.name, value, sources_.at(field.name), field.help);
  }
  return out;
}

}  // namespace tandem::apps
