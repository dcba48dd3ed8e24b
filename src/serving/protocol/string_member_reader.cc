#include "serving/protocol/string_member_reader.h"

#include "model/text/utf8.h"

namespace tandem::protocol {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::uint32_t hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return static_cast<std::uint32_t>(c - '0');
  }
  return static_cast<std::uint32_t>((c | 0x20) - 'a') + 10;
}

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    default:
      return c;
  }
}

}  // namespace

std::string StringMemberReader::feed(std::string_view json_text) {
  std::string out;
  for (const char c : json_text) {
    put(c, out);
  }
  return out;
}

void StringMemberReader::put(char c, std::string& out) {
  switch (place_) {
    case Place::kObject:
      place_ = c == '"' ? Place::kKey : Place::kObject;
      break;
    case Place::kKey:
      if (c == '"' && !escaped_key_) {
        place_ = Place::kColon;
      }
      escaped_key_ = c == '\\' && !escaped_key_;
      break;
    case Place::kColon:
      place_ = c == ':' ? Place::kBeforeValue : Place::kColon;
      break;
    case Place::kBeforeValue:
      if (!is_blank(c)) {
        place_ = c == '"' ? Place::kValue : Place::kColon;
      }
      break;
    case Place::kValue:
      put_value(c, out);
      break;
    case Place::kEscape:
      put_escape(c, out);
      break;
    case Place::kUnicode:
      put_unicode(c, out);
      break;
    case Place::kDone:
      break;
  }
}

void StringMemberReader::put_value(char c, std::string& out) {
  if (c == '\\') {
    place_ = Place::kEscape;
    return;
  }
  if (high_ != 0) {
    out += text::kReplacement;
    high_ = 0;
  }
  if (c == '"') {
    place_ = Place::kDone;
  } else {
    out += c;
  }
}

void StringMemberReader::put_escape(char c, std::string& out) {
  if (c == 'u') {
    place_ = Place::kUnicode;
    code_ = 0;
    n_digits_ = 0;
    return;
  }
  if (high_ != 0) {
    out += text::kReplacement;
    high_ = 0;
  }
  out += unescaped(c);
  place_ = Place::kValue;
}

void StringMemberReader::put_unicode(char c, std::string& out) {
  code_ = code_ << 4 | (hex_value(c) & 0xF);
  if (++n_digits_ < 4) {
    return;
  }
  place_ = Place::kValue;
  const bool is_low = code_ >= 0xDC00 && code_ < 0xE000;
  if (high_ != 0 && is_low) {
    text::append_utf8(out, 0x10000 + ((high_ - 0xD800) << 10) + (code_ - 0xDC00));
    high_ = 0;
    return;
  }
  if (high_ != 0) {
    out += text::kReplacement;
    high_ = 0;
  }
  if (code_ >= 0xD800 && code_ < 0xDC00) {
    high_ = code_;
  } else if (is_low) {
    out += text::kReplacement;
  } else {
    text::append_utf8(out, code_);
  }
}

}  // namespace tandem::protocol
