#include "model/text/utf8.h"

#include "foundation/base/check.h"

namespace tandem::text {
namespace {

struct LeadByte {
  std::size_t length = 0;  // 0: no character starts with this byte
  char32_t bits = 0;
  unsigned low = 0x80;  // range of the second byte: keeps out overlong forms and surrogates
  unsigned high = 0xBF;
};

LeadByte lead_byte(unsigned byte) {
  if (byte < 0x80) {
    return {1, byte};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {2, byte & 0x1F};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {3, byte & 0x0F, byte == 0xE0 ? 0xA0u : 0x80u, byte == 0xED ? 0x9Fu : 0xBFu};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {4, byte & 0x07, byte == 0xF0 ? 0x90u : 0x80u, byte == 0xF4 ? 0x8Fu : 0xBFu};
  }
  return {};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t at) {
  const LeadByte lead = lead_byte(static_cast<unsigned char>(text[at]));
  Utf8Step step;
  step.length = 1;
  if (lead.length == 0) {
    return step;
  }
  step.code = lead.bits;
  for (; step.length < lead.length; ++step.length) {
    if (at + step.length == text.size()) {
      step.incomplete = true;
      return step;
    }
    const unsigned byte = static_cast<unsigned char>(text[at + step.length]);
    const bool second = step.length == 1;
    if (byte < (second ? lead.low : 0x80) || byte > (second ? lead.high : 0xBF)) {
      return step;
    }
    step.code = step.code << 6 | (byte & 0x3F);
  }
  step.valid = true;
  return step;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = utf8_step(text, at);
    if (!step.valid) {
      return false;
    }
    at += step.length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  Utf8Assembler assembler;
  assembler.push(text, out);
  assembler.finish(out);
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  TANDEM_CHECK(code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF), "not a Unicode scalar value");
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

void Utf8Assembler::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!waiting_.empty()) {
    joined = waiting_ + std::string(bytes);
    bytes = joined;
    waiting_.clear();
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, at);
    if (step.incomplete) {
      waiting_ = bytes.substr(at);
      return;
    }
    out += step.valid ? bytes.substr(at, step.length) : kReplacement;
    at += step.length;
  }
}

void Utf8Assembler::finish(std::string& out) {
  if (!waiting_.empty()) {
    out += kReplacement;
    waiting_.clear();
  }
}

}  // namespace tandem::text
