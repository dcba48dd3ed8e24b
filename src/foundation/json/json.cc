#include "foundation/json/json.h"

#include <charconv>
#include <cmath>

namespace tandem::json {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// Python's repr: shortest digits, exponent form from 1e16 up and below 1e-4, always with a mark
// that tells it from an integer.
void append_double(std::string& out, double value) {
  if (std::isnan(value) || std::isinf(value)) {
    out += "null";
    return;
  }
  char digits[40];
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size >= 1e16 || size < 1e-4);
  const auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, format).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  out += text;
  if (!exponent && text.find('.') == std::string_view::npos) {
    out += ".0";
  }
}

struct Separators {
  std::string_view item;
  std::string_view key;
};

void append_value(std::string& out, const Value& value, const Separators& separators) {
  switch (value.kind()) {
    case boost::json::kind::null:
      out += "null";
      break;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case boost::json::kind::int64:
      out += fmt::format("{}", value.get_int64());
      break;
    case boost::json::kind::uint64:
      out += fmt::format("{}", value.get_uint64());
      break;
    case boost::json::kind::double_:
      append_double(out, value.get_double());
      break;
    case boost::json::kind::string:
      append_escaped(out, std::string_view(value.get_string()));
      break;
    case boost::json::kind::array: {
      out += '[';
      bool first = true;
      for (const Value& item : value.get_array()) {
        if (!first) {
          out += separators.item;
        }
        first = false;
        append_value(out, item, separators);
      }
      out += ']';
      break;
    }
    case boost::json::kind::object: {
      out += '{';
      bool first = true;
      for (const auto& member : value.get_object()) {
        if (!first) {
          out += separators.item;
        }
        first = false;
        append_escaped(out, std::string_view(member.key()));
        out += separators.key;
        append_value(out, member.value(), separators);
      }
      out += '}';
      break;
    }
  }
}

Status wrong_type(std::string_view path, std::string_view key, std::string_view expected,
                  const Value* found) {
  if (found == nullptr) {
    return invalid_argument("{}{} is missing; expected {}", path, key, expected);
  }
  return invalid_argument("{}{} is {}; expected {}", path, key, type_name(*found), expected);
}

}  // namespace

Result<Value> parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return resource_exhausted("JSON text of {} bytes is over the limit of {} bytes", text.size(),
                              limits.max_bytes);
  }
  boost::json::parse_options options;
  options.max_depth = limits.max_depth;
  boost::json::parser parser({}, options);
  boost::json::error_code error;
  const std::size_t consumed = parser.write(text.data(), text.size(), error);
  if (error) {
    return invalid_argument("not valid JSON at byte {}: {}", consumed, error.message());
  }
  return parser.release();
}

std::string dump(const Value& value) {
  std::string out;
  append_value(out, value, {",", ":"});
  return out;
}

std::string dump_python(const Value& value) {
  std::string out;
  append_value(out, value, {", ", ": "});
  return out;
}

const Value* find(const Value& value, std::string_view key) {
  const Object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "unknown";
}

Result<std::string> get_string(const Object& object, std::string_view key, std::string_view path) {
  const Value* found = object.if_contains(key);
  if (found == nullptr || !found->is_string()) {
    return wrong_type(path, key, "a string", found);
  }
  return std::string(found->get_string());
}

Result<std::int64_t> get_int(const Object& object, std::string_view key, std::string_view path) {
  const Value* found = object.if_contains(key);
  if (found != nullptr && found->is_int64()) {
    return found->get_int64();
  }
  if (found != nullptr && found->is_double() &&
      std::nearbyint(found->get_double()) == found->get_double() &&
      std::fabs(found->get_double()) < 9e15) {
    return static_cast<std::int64_t>(found->get_double());
  }
  return wrong_type(path, key, "an integer", found);
}

Result<double> get_double(const Object& object, std::string_view key, std::string_view path) {
  const Value* found = object.if_contains(key);
  if (found != nullptr && found->is_number()) {
    return found->to_number<double>();
  }
  return wrong_type(path, key, "a number", found);
}

Result<bool> get_bool(const Object& object, std::string_view key, std::string_view path) {
  const Value* found = object.if_contains(key);
  if (found == nullptr || !found->is_bool()) {
    return wrong_type(path, key, "true or false", found);
  }
  return found->get_bool();
}

}  // namespace tandem::json
