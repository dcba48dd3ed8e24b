// Tokenizer: byte-level BPE read from a Hugging Face tokenizer.json. SOURCE: model.md 5.1.
// Three steps: added tokens are cut out of the raw text, the rest is split into pieces by the
// four-stage pre-tokeniser, each piece is merged by rank. A const Tokenizer serves any number of
// threads. No id is built in: special tokens are found by their content.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::text {

inline constexpr TokenId kNoToken = -1;

// Ids of the tokens that the engine and the chat format name; kNoToken where the vocabulary lacks
// one (model.md 5.2).
struct SpecialTokens {
  TokenId bos = kNoToken;              // <｜begin▁of▁sentence｜>
  TokenId eos = kNoToken;              // <｜end▁of▁sentence｜>, the only stop id
  TokenId pad = kNoToken;              // <｜▁pad▁｜>
  TokenId user = kNoToken;             // <｜User｜>
  TokenId assistant = kNoToken;        // <｜Assistant｜>
  TokenId think_begin = kNoToken;      // <think>
  TokenId think_end = kNoToken;        // </think>
  TokenId dsml = kNoToken;             // ｜DSML｜
  TokenId latest_reminder = kNoToken;  // <｜latest_reminder｜>
  TokenId action = kNoToken;           // task tokens, model.md 5.6
  TokenId query = kNoToken;
  TokenId authority = kNoToken;
  TokenId domain = kNoToken;
  TokenId title = kNoToken;
  TokenId extracted_url = kNoToken;
  TokenId read_url = kNoToken;
  TokenId dspark_noise = kNoToken;  // the place holder with the highest number (799 in V4)
};

// A part of a prompt. Text of users, tools and models must not be able to forge a turn mark, so
// only `trusted` parts may form added tokens. The parts are joined before they are split into
// pieces, so the tokens are those of the whole string.
struct TextPart {
  std::string_view text;
  bool trusted = false;
};

struct EncodeOptions {
  // Whether text like "<think>" becomes the added token. The safe default is off; the official
  // encoder has it on everywhere (model.md 5.1).
  bool allow_added_tokens = false;
};

class Tokenizer {
 public:
  // Reads a tokenizer.json file.
  // ERRORS: kNotFound; kInvalidArgument if it is no byte-level BPE with the pre-tokeniser of V4.
  static Result<Tokenizer> load(const std::filesystem::path& path);

  // The same from the text of the file; `name` stands in error messages.
  static Result<Tokenizer> parse(std::string_view json_text,
                                 std::string_view name = "tokenizer.json");

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Tokens of a text; no BOS is added. Invalid UTF-8 is encoded as U+FFFD, one for each maximal
  // invalid part: what the reference gets when its caller decodes bytes with errors="replace".
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Tokens of the joined parts; added tokens are recognised only inside trusted parts.
  std::vector<TokenId> encode_parts(std::span<const TextPart> parts) const;

  // The text of tokens, with invalid bytes replaced by U+FFFD. `skip_special` hides added tokens
  // whose special flag is set (BOS, EOS, pad, place holders; not <think> or ｜DSML｜).
  std::string decode(std::span<const TokenId> tokens, bool skip_special = false) const;

  // The bytes of one token (of an added token: its content). Not always valid UTF-8 by itself.
  // Empty for an id that the vocabulary does not define.
  std::string_view token_bytes(TokenId id) const;

  // The id of an added token by its exact content.
  std::optional<TokenId> find_added(std::string_view content) const;

  // The id of a base token by its exact bytes.
  std::optional<TokenId> find_bytes(std::string_view bytes) const;

  bool is_added(TokenId id) const;

  // Whether the added token carries "special": true in tokenizer.json.
  bool is_special(TokenId id) const;

  const SpecialTokens& special() const;

  // Whether the tokens that a chat prompt cannot do without are there (bos, eos, user, assistant,
  // think_begin, think_end, dsml). ERRORS: kInvalidArgument naming the missing ones.
  Status require_chat_tokens() const;

  // Highest id + 1. The model's embedding may have more rows.
  TokenId vocab_size() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::text
