#include "serving/protocol/request_fields.h"

#include <algorithm>
#include <cmath>

namespace tandem::protocol {
namespace {

// An integer in any JSON spelling ("3", "3.0"): some clients send floats for counts.
std::optional<std::int64_t> whole_number(const json::Value& value) {
  if (value.is_int64()) {
    return value.get_int64();
  }
  if (value.is_double()) {
    const double number = value.get_double();
    if (number == std::floor(number) && std::fabs(number) < 9e15) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

}  // namespace

const json::Value* Fields::find(std::string_view key) const {
  if (!errors_->ok()) {
    return nullptr;
  }
  const json::Value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Fields::fail(std::string_view key, std::string_view problem) const {
  const std::string place = path_of(key);
  errors_->add(bad_field(place, fmt::format("'{}' {}", place, problem)));
}

void Fields::wrong_type(std::string_view key, std::string_view expected,
                        const json::Value& found) const {
  fail(key, fmt::format("is {}, expected {}", json::type_name(found), expected));
}

std::optional<std::string> Fields::text(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    wrong_type(key, "a string", *value);
    return std::nullopt;
  }
  return std::string(value->get_string());
}

std::string Fields::required_text(std::string_view key) const {
  if (find(key) == nullptr && errors_->ok()) {
    fail(key, "is missing, expected a string");
  }
  return text(key).value_or("");
}

std::optional<bool> Fields::boolean(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_bool()) {
    wrong_type(key, "true or false", *value);
    return std::nullopt;
  }
  return value->get_bool();
}

std::optional<double> Fields::number(std::string_view key, NumberRange range) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    wrong_type(key, "a number", *value);
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  if (!(number >= range.min && number <= range.max)) {
    fail(key, fmt::format("is {}, expected a number from {} to {}", number, range.min, range.max));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t min,
                                            std::int64_t max) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number) {
    wrong_type(key, "an integer", *value);
    return std::nullopt;
  }
  if (*number < min) {
    fail(key, fmt::format("is {}, expected at least {}", *number, min));
    return std::nullopt;
  }
  if (*number > max) {
    fail(key, fmt::format("is {}, expected at most {}", *number, max));
    return std::nullopt;
  }
  return number;
}

std::optional<Fields> Fields::object(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    wrong_type(key, "an object", *value);
    return std::nullopt;
  }
  return Fields(value->get_object(), path_of(key), *errors_);
}

const json::Array* Fields::array(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) {
    return nullptr;
  }
  if (!value->is_array()) {
    wrong_type(key, "an array", *value);
    return nullptr;
  }
  return &value->get_array();
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view key) const {
  const json::Array* list = array(key);
  if (list == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!(*list)[i].is_string()) {
      wrong_type(fmt::format("{}[{}]", key, i), "a string", (*list)[i]);
      return std::nullopt;
    }
    out.emplace_back((*list)[i].get_string());
  }
  return out;
}

void Fields::each_object(std::string_view key,
                         const std::function<void(const Fields&)>& visit) const {
  const json::Array* list = array(key);
  for (std::size_t i = 0; list != nullptr && i < list->size() && errors_->ok(); ++i) {
    const std::string place = fmt::format("{}[{}]", key, i);
    if (!(*list)[i].is_object()) {
      wrong_type(place, "an object", (*list)[i]);
      return;
    }
    visit(Fields((*list)[i].get_object(), path_of(place), *errors_));
  }
}

std::optional<std::string> Fields::word(std::string_view key,
                                        const std::vector<std::string_view>& words) const {
  std::optional<std::string> found = text(key);
  if (found && std::find(words.begin(), words.end(), *found) == words.end()) {
    fail(key, fmt::format("is '{}', expected one of: {}", *found, fmt::join(words, ", ")));
    return std::nullopt;
  }
  return found;
}

}  // namespace tandem::protocol
