#include "serving/protocol/opaque_text.h"

#include <openssl/evp.h>

#include <vector>

#include "model/text/utf8.h"

namespace tandem::protocol {
namespace {

constexpr std::string_view kMark = "tandem1.";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string wrap_opaque(std::string_view text) {
  std::vector<unsigned char> coded(4 * ((text.size() + 2) / 3) + 1);
  const int size = EVP_EncodeBlock(coded.data(), bytes_of(text), static_cast<int>(text.size()));
  std::string out(kMark);
  out.append(coded.begin(), coded.begin() + size);
  return out;
}

std::optional<std::string> unwrap_opaque(std::string_view wrapped) {
  if (wrapped.substr(0, kMark.size()) != kMark) {
    return std::nullopt;
  }
  const std::string_view coded = wrapped.substr(kMark.size());
  if (coded.empty()) {
    return std::string();
  }
  std::vector<unsigned char> plain(3 * (coded.size() / 4) + 3);
  const int size = EVP_DecodeBlock(plain.data(), bytes_of(coded), static_cast<int>(coded.size()));
  if (size < 0) {
    return std::nullopt;
  }
  std::string out(plain.begin(), plain.begin() + size);
  for (std::size_t pad = 0; pad < 2 && coded[coded.size() - 1 - pad] == '='; ++pad) {
    out.pop_back();  // EVP_DecodeBlock counts the padding as zero bytes
  }
  return text::is_valid_utf8(out) ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace tandem::protocol
