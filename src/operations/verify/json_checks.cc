#include "operations/verify/json_checks.h"

#include <charconv>
#include <valijson/adapters/boost_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace tandem::verify {
namespace {

// The value of one line of Prometheus text if it is the metric `name`, bare or with labels.
std::optional<double> line_value(std::string_view line, std::string_view name) {
  if (line.compare(0, name.size(), name) != 0 || line.size() <= name.size()) {
    return std::nullopt;
  }
  const char next = line[name.size()];
  if (next != ' ' && next != '{') {
    return std::nullopt;
  }
  const std::size_t space = line.find(' ', next == '{' ? line.rfind('}') : name.size());
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view number = line.substr(space + 1);
  double value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  return parsed.ec == std::errc() ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

const json::Value* at(const json::Value& value, std::string_view path) {
  const json::Value* here = &value;
  while (!path.empty() && here != nullptr) {
    const std::size_t dot = path.find('.');
    const std::string_view step = path.substr(0, dot);
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    if (here->is_array()) {
      std::size_t index = 0;
      const auto parsed = std::from_chars(step.data(), step.data() + step.size(), index);
      const bool usable = parsed.ec == std::errc() && index < here->get_array().size();
      here = usable ? &here->get_array()[index] : nullptr;
    } else {
      here = json::find(*here, step);
    }
  }
  return here;
}

std::string text_at(const json::Value& value, std::string_view path) {
  const json::Value* found = at(value, path);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::optional<std::int64_t> int_at(const json::Value& value, std::string_view path) {
  const json::Value* found = at(value, path);
  if (found == nullptr || !found->is_int64()) {
    return std::nullopt;
  }
  return found->get_int64();
}

std::string strip(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::string output_text(const json::Value& response) {
  std::string out;
  const json::Value* items = at(response, "output");
  if (items == nullptr || !items->is_array()) {
    return out;
  }
  for (const json::Value& item : items->get_array()) {
    const json::Value* parts = at(item, "content");
    if (text_at(item, "type") != "message" || parts == nullptr || !parts->is_array()) {
      continue;
    }
    for (const json::Value& part : parts->get_array()) {
      if (text_at(part, "type") == "output_text") {
        out += text_at(part, "text");
      }
    }
  }
  return out;
}

std::string schema_breach(const json::Value& schema, const json::Value& instance) {
  // valijson reports an unusable schema by throwing; the exception ends here.
  try {
    valijson::Schema compiled;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::BoostJsonAdapter(schema), compiled);
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(compiled, valijson::adapters::BoostJsonAdapter(instance), &results)) {
      return {};
    }
    std::string out;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      for (const std::string& step : error.context) {
        out += step;
      }
      out += ": " + error.description + "; ";
    }
    return out.empty() ? "the schema does not accept it" : out;
  } catch (const std::exception& error) {
    return fmt::format("the validator could not use the schema: {}", error.what());
  }
}

std::optional<double> metric_sum(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (const auto value = line_value(line, name)) {
      sum = sum.value_or(0) + *value;
    }
  }
  return sum;
}

}  // namespace tandem::verify
