#include "model/text/tokenizer.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "model/text/added_tokens.h"
#include "model/text/bpe.h"
#include "model/text/pretokenizer.h"
#include "model/text/tokenizer_json.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

enum AddedFlag : std::uint8_t { kNotAdded = 0, kAdded = 1, kAddedSpecial = 2 };

struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Scratch spaces wait here between encodes, so that their caches stay warm.
class ScratchPool {
 public:
  std::unique_ptr<BpeScratch> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      return std::make_unique<BpeScratch>();
    }
    std::unique_ptr<BpeScratch> scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }

  void give_back(std::unique_ptr<BpeScratch> scratch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BpeScratch>> free_;
};

struct NamedToken {
  TokenId SpecialTokens::*field;
  std::string_view content;
  bool needed_for_chat;
};

constexpr NamedToken kNamedTokens[] = {
    {&SpecialTokens::bos, "<｜begin▁of▁sentence｜>", true},
    {&SpecialTokens::eos, "<｜end▁of▁sentence｜>", true},
    {&SpecialTokens::pad, "<｜▁pad▁｜>", false},
    {&SpecialTokens::user, "<｜User｜>", true},
    {&SpecialTokens::assistant, "<｜Assistant｜>", true},
    {&SpecialTokens::think_begin, "<think>", true},
    {&SpecialTokens::think_end, "</think>", true},
    {&SpecialTokens::dsml, "｜DSML｜", true},
    {&SpecialTokens::latest_reminder, "<｜latest_reminder｜>", false},
    {&SpecialTokens::action, "<｜action｜>", false},
    {&SpecialTokens::query, "<｜query｜>", false},
    {&SpecialTokens::authority, "<｜authority｜>", false},
    {&SpecialTokens::domain, "<｜domain｜>", false},
    {&SpecialTokens::title, "<｜title｜>", false},
    {&SpecialTokens::extracted_url, "<｜extracted_url｜>", false},
    {&SpecialTokens::read_url, "<｜read_url｜>", false},
};

// The number of a place holder's content, -1 for other contents.
int place_holder_number(std::string_view content) {
  constexpr std::string_view kBegin = "<｜place▁holder▁no▁";
  if (content.substr(0, kBegin.size()) != kBegin) {
    return -1;
  }
  int number = -1;
  const char* first = content.data() + kBegin.size();
  const auto parsed = std::from_chars(first, content.data() + content.size(), number);
  return parsed.ec == std::errc() ? number : -1;
}

}  // namespace

struct Tokenizer::State {
  explicit State(TokenizerTables read)
      : tokens(std::move(read.tokens)),
        flags(tokens.size(), kNotAdded),
        merges(read.merges.size()),
        byte_tokens(read.byte_tokens) {
    for (std::size_t rank = 0; rank < read.merges.size(); ++rank) {
      const MergeEntry& merge = read.merges[rank];
      merges.insert(merge.left, merge.right, {static_cast<std::uint32_t>(rank), merge.result});
    }
    add_tokens(read.added);
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (flags[id] == kNotAdded && !tokens[id].empty()) {
        base_ids.emplace(tokens[id], static_cast<TokenId>(id));
      }
    }
  }

  void add_tokens(const std::vector<AddedTokenEntry>& added) {
    int highest_holder = -1;
    for (const AddedTokenEntry& entry : added) {
      const auto row = static_cast<std::size_t>(entry.id);
      flags[row] = entry.special ? kAddedSpecial : kAdded;
      trie.insert(entry.content, entry.id);
      added_ids[entry.content] = entry.id;
      if (const int number = place_holder_number(entry.content); number > highest_holder) {
        highest_holder = number;
        special.dspark_noise = entry.id;
      }
    }
    for (const NamedToken& named : kNamedTokens) {
      if (const auto found = added_ids.find(std::string(named.content)); found != added_ids.end()) {
        special.*named.field = found->second;
      }
    }
  }

  // Appends the tokens of text[begin, end), which has no added token that counts.
  void encode_plain(std::string_view text, BpeScratch& scratch, std::vector<TokenId>& out) const {
    PieceScanner scanner(text);
    std::string_view piece;
    while (scanner.next(piece)) {
      bpe_encode(piece, merges, byte_tokens, scratch, out);
    }
  }

  // Tokens of valid UTF-8; added tokens only inside `trusted`, which are in order and apart.
  std::vector<TokenId> encode_valid(std::string_view text, const std::vector<ByteRange>& trusted) {
    std::vector<TokenId> out;
    out.reserve(text.size() / 3 + 8);
    std::unique_ptr<BpeScratch> scratch = pool.take();
    std::size_t done = 0;
    for (const ByteRange& range : trusted) {
      AddedMatch match;
      for (std::size_t at = range.begin; trie.find(text, at, range.end, match); at = match.end) {
        encode_plain(text.substr(done, match.begin - done), *scratch, out);
        out.push_back(match.token);
        done = match.end;
      }
    }
    encode_plain(text.substr(done), *scratch, out);
    pool.give_back(std::move(scratch));
    return out;
  }

  bool in_range(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < tokens.size();
  }

  std::vector<std::string> tokens;  // bytes by id
  std::vector<std::uint8_t> flags;  // AddedFlag by id
  MergeTable merges;
  std::array<TokenId, 256> byte_tokens;
  AddedTokenTrie trie;
  std::unordered_map<std::string, TokenId> added_ids;
  std::unordered_map<std::string_view, TokenId> base_ids;  // views of `tokens`
  SpecialTokens special;
  ScratchPool pool;
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return not_found("cannot open {}: expected the tokenizer.json of the checkpoint there",
                     path.string());
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse(text, path.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json_text, std::string_view name) {
  TANDEM_ASSIGN(TokenizerTables tables, parse_tokenizer_json(json_text, name));
  return Tokenizer(std::make_unique<State>(std::move(tables)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const TextPart part{text, options.allow_added_tokens};
  return encode_parts(std::span<const TextPart>(&part, 1));
}

std::vector<TokenId> Tokenizer::encode_parts(std::span<const TextPart> parts) const {
  std::string joined;
  std::vector<ByteRange> trusted;
  for (const TextPart& part : parts) {
    const std::size_t begin = joined.size();
    if (is_valid_utf8(part.text)) {
      joined += part.text;
    } else {
      joined += replace_invalid_utf8(part.text);
    }
    if (!part.trusted) {
      continue;
    }
    if (!trusted.empty() && trusted.back().end == begin) {
      trusted.back().end = joined.size();
    } else {
      trusted.push_back({begin, joined.size()});
    }
  }
  return state_->encode_valid(joined, trusted);
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : tokens) {
    if (!skip_special || !is_special(id)) {
      bytes += token_bytes(id);
    }
  }
  return is_valid_utf8(bytes) ? bytes : replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  return state_->in_range(id) ? std::string_view(state_->tokens[static_cast<std::size_t>(id)])
                              : std::string_view();
}

std::optional<TokenId> Tokenizer::find_added(std::string_view content) const {
  const auto found = state_->added_ids.find(std::string(content));
  return found == state_->added_ids.end() ? std::nullopt : std::optional<TokenId>(found->second);
}

std::optional<TokenId> Tokenizer::find_bytes(std::string_view bytes) const {
  const auto found = state_->base_ids.find(bytes);
  return found == state_->base_ids.end() ? std::nullopt : std::optional<TokenId>(found->second);
}

bool Tokenizer::is_added(TokenId id) const {
  return state_->in_range(id) && state_->flags[static_cast<std::size_t>(id)] != kNotAdded;
}

bool Tokenizer::is_special(TokenId id) const {
  return state_->in_range(id) && state_->flags[static_cast<std::size_t>(id)] == kAddedSpecial;
}

const SpecialTokens& Tokenizer::special() const {
  return state_->special;
}

Status Tokenizer::require_chat_tokens() const {
  std::string missing;
  for (const NamedToken& named : kNamedTokens) {
    if (named.needed_for_chat && state_->special.*named.field == kNoToken) {
      missing += missing.empty() ? "" : ", ";
      missing += named.content;
    }
  }
  if (missing.empty()) {
    return ok_status();
  }
  return invalid_argument(
      "the tokenizer has no {}: expected the tokenizer.json of a DeepSeek-V4 checkpoint", missing);
}

TokenId Tokenizer::vocab_size() const {
  return static_cast<TokenId>(state_->tokens.size());
}

}  // namespace tandem::text
