// StringMemberReader: the text of the first member of a JSON object, decoded while the object is
// still being written. A custom tool's input travels through the model as {"input": "..."}, and the
// client gets the bare text in deltas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::protocol {

class StringMemberReader {
 public:
  // Takes the next part of the object's text; returns the next part of the member's text.
  std::string feed(std::string_view json_text);

  // Whether a string member was found. If not, the object has another form.
  bool found() const { return place_ >= Place::kValue; }

 private:
  enum class Place { kObject, kKey, kColon, kBeforeValue, kValue, kEscape, kUnicode, kDone };

  void put(char c, std::string& out);
  void put_value(char c, std::string& out);
  void put_escape(char c, std::string& out);
  void put_unicode(char c, std::string& out);

  Place place_ = Place::kObject;
  bool escaped_key_ = false;  // kKey: the last character was a backslash
  std::uint32_t code_ = 0;    // kUnicode: digits read until now
  int n_digits_ = 0;
  std::uint32_t high_ = 0;  // a high surrogate that waits for its low one
};

}  // namespace tandem::protocol
