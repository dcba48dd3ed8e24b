#include "model/text/tokenizer_json.h"

#include <optional>
#include <utility>

#include "foundation/json/json.h"
#include "model/text/pretokenizer.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

// The byte that a character of the GPT-2 alphabet stands for: printable bytes stand for
// themselves, the others follow from U+0100 on in order. -1 for other characters.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    byte_of_.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                             (byte >= 0xAE && byte <= 0xFF);
      const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
      code_of_[static_cast<std::size_t>(byte)] = code;
      byte_of_[code] = byte;
    }
  }

  std::string character(std::size_t byte) const {
    std::string out;
    append_utf8(out, code_of_[byte]);
    return out;
  }

  // The bytes of a base token. A token with a character outside the alphabet stands for itself.
  std::string bytes(std::string_view token) const {
    std::string out;
    for (std::size_t at = 0; at < token.size();) {
      std::size_t length = 0;
      const char32_t code = utf8_read(token.data() + at, length);
      if (code >= byte_of_.size() || byte_of_[code] < 0) {
        return std::string(token);
      }
      out += static_cast<char>(byte_of_[code]);
      at += length;
    }
    return out;
  }

 private:
  std::array<char32_t, 256> code_of_{};
  std::array<int, 512> byte_of_{};
};

bool is_absent(const json::Value* value) {
  return value == nullptr || value->is_null();
}

bool is_false(const json::Value* value) {
  return is_absent(value) || (value->is_bool() && !value->get_bool());
}

std::string shown(const json::Value* value) {
  constexpr std::size_t kMaxShown = 200;
  std::string text = value == nullptr ? "nothing" : json::dump(*value);
  if (text.size() > kMaxShown) {
    text.resize(kMaxShown);
    text = replace_invalid_utf8(text) + "...";
  }
  return text;
}

bool is_text(const json::Value* value, std::string_view text) {
  return value != nullptr && value->is_string() && std::string_view(value->get_string()) == text;
}

Status check_model(const json::Value& model) {
  if (!is_text(json::find(model, "type"), "BPE")) {
    return invalid_argument("model.type is {}, expected \"BPE\"", shown(json::find(model, "type")));
  }
  for (const std::string_view key : {"byte_fallback", "fuse_unk", "ignore_merges"}) {
    if (!is_false(json::find(model, key))) {
      return invalid_argument("model.{} is {}, expected false", key, shown(json::find(model, key)));
    }
  }
  for (const std::string_view key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const json::Value* value = json::find(model, key);
    if (!is_absent(value) && !is_text(value, "")) {
      return invalid_argument("model.{} is {}, expected null", key, shown(value));
    }
  }
  return ok_status();
}

Status check_normalizer(const json::Value* normalizer) {
  if (is_absent(normalizer)) {
    return ok_status();
  }
  const json::Value* list = json::find(*normalizer, "normalizers");
  if (is_text(json::find(*normalizer, "type"), "Sequence") && list != nullptr && list->is_array() &&
      list->get_array().empty()) {
    return ok_status();
  }
  return invalid_argument("normalizer is {}, expected none", shown(normalizer));
}

// A pattern may spell CR and LF as characters or as escapes; the meaning is the same.
std::string canonical_pattern(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] == '\\' && (next == 'r' || next == 'n')) {
      out += next == 'r' ? '\r' : '\n';
      ++i;
    } else if (pattern[i] == '\\' && next != '\0') {
      out += pattern[i];
      out += next;
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

Status check_split(const json::Value& stage, std::size_t index, std::string_view expected) {
  const json::Value* pattern = json::find(stage, "pattern");
  const json::Value* regex = pattern != nullptr ? json::find(*pattern, "Regex") : nullptr;
  const bool matches = is_text(json::find(stage, "type"), "Split") && regex != nullptr &&
                       regex->is_string() && canonical_pattern(regex->get_string()) == expected &&
                       is_text(json::find(stage, "behavior"), "Isolated") &&
                       is_false(json::find(stage, "invert"));
  if (matches) {
    return ok_status();
  }
  return invalid_argument(
      "pre_tokenizer.pretokenizers[{}] is {}, expected an isolated Split with the pattern {}",
      index, shown(&stage), expected);
}

Status check_pre_tokenizer(const json::Value* pre_tokenizer) {
  constexpr std::array<std::string_view, 3> kPatterns = {kNumberPattern, kCjkPattern, kWordPattern};
  const json::Value* list =
      pre_tokenizer != nullptr ? json::find(*pre_tokenizer, "pretokenizers") : nullptr;
  if (list == nullptr || !list->is_array() || list->get_array().size() != kPatterns.size() + 1) {
    return invalid_argument("pre_tokenizer is {}, expected a Sequence of 3 Splits and ByteLevel",
                            shown(pre_tokenizer));
  }
  const json::Array& stages = list->get_array();
  for (std::size_t i = 0; i < kPatterns.size(); ++i) {
    TANDEM_TRY(check_split(stages[i], i, kPatterns[i]));
  }
  const json::Value& last = stages[kPatterns.size()];
  const json::Value* use_regex = json::find(last, "use_regex");
  if (!is_text(json::find(last, "type"), "ByteLevel") ||
      !is_false(json::find(last, "add_prefix_space")) || use_regex == nullptr ||
      !is_false(use_regex)) {
    return invalid_argument(
        "pre_tokenizer.pretokenizers[3] is {}, expected ByteLevel with add_prefix_space and "
        "use_regex false",
        shown(&last));
  }
  return ok_status();
}

// An id below `limit`, which is the number of entries in the file: ids are dense.
Result<TokenId> read_id(const json::Value* value, std::size_t limit) {
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0 ||
      static_cast<std::uint64_t>(value->get_int64()) >= limit) {
    return invalid_argument("the id is {}, expected an integer from 0 to {}", shown(value),
                            static_cast<std::int64_t>(limit) - 1);
  }
  return static_cast<TokenId>(value->get_int64());
}

Status read_vocab(const json::Object& vocab, const ByteAlphabet& alphabet, std::size_t limit,
                  TokenizerTables& tables) {
  for (const auto& entry : vocab) {
    const std::string_view key(entry.key().data(), entry.key().size());
    Result<TokenId> id = read_id(&entry.value(), limit);
    if (!id.ok()) {
      return id.status().with_context(fmt::format("model.vocab[{:?}]", key));
    }
    if (key.empty()) {
      return invalid_argument("model.vocab has an empty token, expected at least one character");
    }
    const auto row = static_cast<std::size_t>(*id);
    if (row >= tables.tokens.size()) {
      tables.tokens.resize(row + 1);
    }
    if (!tables.tokens[row].empty()) {
      return invalid_argument("model.vocab gives the id {} twice, the second time to {:?}", *id,
                              key);
    }
    tables.tokens[row] = alphabet.bytes(key);
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = vocab.find(alphabet.character(byte));
    if (found == vocab.end()) {
      return invalid_argument(
          "model.vocab has no token for the byte 0x{:02x}, expected one for each of the 256 bytes",
          byte);
    }
    tables.byte_tokens[byte] = static_cast<TokenId>(found->value().get_int64());
  }
  return ok_status();
}

// "a b" (one string) or ["a", "b"].
std::optional<std::pair<std::string_view, std::string_view>> merge_sides(const json::Value& merge) {
  if (merge.is_string()) {
    const std::string_view text(merge.get_string());
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return std::nullopt;
    }
    return std::make_pair(text.substr(0, space), text.substr(space + 1));
  }
  if (merge.is_array() && merge.get_array().size() == 2 && merge.get_array()[0].is_string() &&
      merge.get_array()[1].is_string()) {
    return std::make_pair(std::string_view(merge.get_array()[0].get_string()),
                          std::string_view(merge.get_array()[1].get_string()));
  }
  return std::nullopt;
}

Status read_merges(const json::Array& merges, const json::Object& vocab, TokenizerTables& tables) {
  tables.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto sides = merge_sides(merges[i]);
    if (!sides) {
      return invalid_argument("model.merges[{}] is {}, expected \"a b\" or [\"a\", \"b\"]", i,
                              shown(&merges[i]));
    }
    std::array<TokenId, 3> ids{};
    const std::string joined = std::string(sides->first) + std::string(sides->second);
    const std::array<std::string_view, 3> names = {sides->first, sides->second, joined};
    for (std::size_t n = 0; n < names.size(); ++n) {
      const auto found = vocab.find(names[n]);
      if (found == vocab.end()) {
        return invalid_argument("model.merges[{}] needs the token {:?}, which model.vocab lacks", i,
                                names[n]);
      }
      ids[n] = static_cast<TokenId>(found->value().get_int64());
    }
    tables.merges.push_back({ids[0], ids[1], ids[2]});
  }
  return ok_status();
}

Status read_added_token(const json::Value& value, std::size_t limit, TokenizerTables& tables) {
  AddedTokenEntry entry;
  TANDEM_ASSIGN(entry.id, read_id(json::find(value, "id"), limit));
  const json::Value* content = json::find(value, "content");
  if (content == nullptr || !content->is_string() || content->get_string().empty()) {
    return invalid_argument("the content is {}, expected a text that is not empty", shown(content));
  }
  entry.content = std::string(std::string_view(content->get_string()));
  for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) {
    if (!is_false(json::find(value, key))) {
      return invalid_argument("{} of {:?} is {}, expected false", key, entry.content,
                              shown(json::find(value, key)));
    }
  }
  entry.special = !is_false(json::find(value, "special"));
  const auto row = static_cast<std::size_t>(entry.id);
  if (row >= tables.tokens.size()) {
    tables.tokens.resize(row + 1);
  }
  if (!tables.tokens[row].empty() && tables.tokens[row] != entry.content) {
    return invalid_argument("{:?} has the id {}, which belongs to {:?}", entry.content, entry.id,
                            replace_invalid_utf8(tables.tokens[row]));
  }
  tables.tokens[row] = entry.content;
  tables.added.push_back(std::move(entry));
  return ok_status();
}

Result<TokenizerTables> read_tables(const json::Value& root) {
  const json::Value* model = json::find(root, "model");
  if (model == nullptr || !model->is_object()) {
    return invalid_argument("model is {}, expected an object", shown(model));
  }
  TANDEM_TRY(check_model(*model));
  TANDEM_TRY(check_normalizer(json::find(root, "normalizer")));
  TANDEM_TRY(check_pre_tokenizer(json::find(root, "pre_tokenizer")));
  const json::Value* vocab = json::find(*model, "vocab");
  const json::Value* merges = json::find(*model, "merges");
  if (vocab == nullptr || !vocab->is_object()) {
    return invalid_argument("model.vocab is {}, expected an object", shown(vocab));
  }
  if (merges == nullptr || !merges->is_array()) {
    return invalid_argument("model.merges is {}, expected an array", shown(merges));
  }
  const json::Value* added = json::find(root, "added_tokens");
  if (!is_absent(added) && !added->is_array()) {
    return invalid_argument("added_tokens is {}, expected an array", shown(added));
  }
  const std::size_t n_added = is_absent(added) ? 0 : added->get_array().size();
  const std::size_t limit = vocab->get_object().size() + n_added;
  TokenizerTables tables;
  TANDEM_TRY(read_vocab(vocab->get_object(), ByteAlphabet(), limit, tables));
  TANDEM_TRY(read_merges(merges->get_array(), vocab->get_object(), tables));
  for (std::size_t i = 0; i < n_added; ++i) {
    const Status status = read_added_token(added->get_array()[i], limit, tables);
    if (!status.ok()) {
      return status.with_context(fmt::format("added_tokens[{}]", i));
    }
  }
  return tables;
}

}  // namespace

Result<TokenizerTables> parse_tokenizer_json(std::string_view json_text, std::string_view name) {
  Result<json::Value> root = json::parse(json_text);
  if (!root.ok()) {
    return root.status().with_context(name);
  }
  Result<TokenizerTables> tables = read_tables(*root);
  if (!tables.ok()) {
    return tables.status().with_context(name);
  }
  return tables;
}

}  // namespace tandem::text
