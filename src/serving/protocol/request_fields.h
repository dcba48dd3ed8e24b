// Fields: typed reading of a request body. Absent and null are the same; a wrong type or a value
// out of range becomes an ApiError that names the field. The first error is kept and everything
// after it reads as absent, so a parser is a straight list of fields with one check at its end.
// Unknown fields are nobody's business (api.md 3.7).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"

namespace tandem::protocol {

// Where the first error of a request is kept. All Fields of one request share it.
class FieldErrors {
 public:
  bool ok() const { return !error_.has_value(); }

  const ApiError& error() const { return *error_; }

  void add(ApiError error) {
    if (!error_) {
      error_ = std::move(error);
    }
  }

 private:
  std::optional<ApiError> error_;
};

struct NumberRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

class Fields {
 public:
  // `object` and `errors` must outlive the Fields. `path` is the place of the object in the
  // request: "" for the body, "messages[2]" for a part of it.
  Fields(const json::Object& object, std::string path, FieldErrors& errors)
      : object_(&object), path_(std::move(path)), errors_(&errors) {}

  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<double> number(std::string_view key, NumberRange range = {}) const;
  std::optional<std::int64_t> integer(
      std::string_view key, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
      std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  std::optional<Fields> object(std::string_view key) const;

  // The array, or nullptr.
  const json::Array* array(std::string_view key) const;
  std::optional<std::vector<std::string>> texts(std::string_view key) const;

  // Calls `visit` for every element, each of which must be an object.
  void each_object(std::string_view key, const std::function<void(const Fields&)>& visit) const;

  // A field that must be there.
  std::string required_text(std::string_view key) const;

  // One of a closed list of words. nullopt if absent.
  std::optional<std::string> word(std::string_view key,
                                  const std::vector<std::string_view>& words) const;

  // The member whatever its type; nullptr if absent or null.
  const json::Value* find(std::string_view key) const;

  // "messages[2].content".
  std::string path_of(std::string_view key) const;

  const std::string& path() const { return path_; }

  const json::Object& json() const { return *object_; }

  FieldErrors& errors() const { return *errors_; }

  void fail(std::string_view key, std::string_view problem) const;

 private:
  void wrong_type(std::string_view key, std::string_view expected, const json::Value& found) const;

  const json::Object* object_;
  std::string path_;
  FieldErrors* errors_;
};

}  // namespace tandem::protocol
