// JSON: Boost.JSON behind the few functions that the project needs. Objects keep the order in
// which keys were inserted, which the model's prompt format depends on (model.md T41).
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace tandem::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

struct ParseLimits {
  std::size_t max_depth = 64;
  std::size_t max_bytes = std::size_t{64} << 20;
};

// Parses one complete JSON text (RFC 8259; valid UTF-8 only).
// ERRORS: kInvalidArgument with the byte offset and the reason; kResourceExhausted over the limits.
Result<Value> parse(std::string_view text, const ParseLimits& limits = {});

// Compact text: no spaces, non-ASCII characters as they are, shortest round-trip numbers.
std::string dump(const Value& value);

// The text that Python's json.dumps(ensure_ascii=False) writes: ", " and ": " between items,
// floats in Python's repr form. SOURCE: model.md 5.3.
std::string dump_python(const Value& value);

// The member of an object, or nullptr if the value is no object or has no such key.
const Value* find(const Value& value, std::string_view key);

// "null", "boolean", "integer", "number", "string", "array" or "object": words for error messages.
std::string_view type_name(const Value& value);

// Typed members of an object: the value, or an error naming the key, the type found and expected.
// `path` stands before the key in the message ("messages[2].").
Result<std::string> get_string(const Object& object, std::string_view key, std::string_view path);
Result<std::int64_t> get_int(const Object& object, std::string_view key, std::string_view path);
Result<double> get_double(const Object& object, std::string_view key, std::string_view path);
Result<bool> get_bool(const Object& object, std::string_view key, std::string_view path);

}  // namespace tandem::json
