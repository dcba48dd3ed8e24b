// Any bytes as tokenizer.json: refused with a message, or a tokenizer that takes any text back and
// forth unchanged. The second half of the bytes is the text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/text/tokenizer.h"
#include "model/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const tandem::Result<tandem::text::Tokenizer> tokenizer = tandem::text::Tokenizer::parse(bytes);
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().empty()) {
      std::abort();
    }
    return 0;
  }
  const std::string_view text = bytes.substr(size / 2);
  const std::string valid = tandem::text::replace_invalid_utf8(text);
  if (tokenizer->decode(tokenizer->encode(text)) != valid) {
    std::abort();
  }
  if (tokenizer->decode(tokenizer->encode(text, {.allow_added_tokens = true})) != valid) {
    std::abort();
  }
  return 0;
}
