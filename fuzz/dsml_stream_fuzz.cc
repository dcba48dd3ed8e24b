// Any tokens as a reply: the message must not depend on how the tokens are cut into feeds, every
// finished call must have a JSON object as its arguments, and all text must be valid UTF-8.
// The first byte holds the options, the second the step of the cuts; each further byte is one
// token: of a mark, of a piece of markup (several tokens), or of that byte.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"
#include "model/text/pretokenizer.h"
#include "model/text/stream_decoder.h"
#include "model/text/utf8.h"

namespace {

using namespace tandem;
using namespace tandem::text;

constexpr std::array<std::string_view, 14> kPieces = {
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜end▁of▁sentence｜>",
    "\n\n<｜DSML｜tool_calls>\n",
    "<｜DSML｜invoke name=\"f\">\n",
    "<｜DSML｜parameter name=\"x\" string=\"true\">",
    "<｜DSML｜parameter name=\"y\" string=\"false\">",
    "</｜DSML｜parameter>\n",
    "</｜DSML｜invoke>\n",
    "</｜DSML｜tool_calls>",
    "</｜DSML｜",
    "STOP",
    "{\"a\": [1]}"};

json::Value byte_vocabulary() {
  json::Object vocab;
  json::Array added;
  std::int64_t next = 0;
  char32_t shifted = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    std::string key;
    append_utf8(key, printable ? byte : shifted++);
    vocab[key] = next++;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    added.push_back({{"id", next++}, {"content", kPieces[i]}, {"special", i == 3}});
  }
  const auto split = [](std::string_view pattern) -> json::Value {
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  };
  return {{"added_tokens", added},
          {"pre_tokenizer",
           {{"pretokenizers",
             {split(kNumberPattern),
              split(kCjkPattern),
              split(kWordPattern),
              {{"type", "ByteLevel"}, {"use_regex", false}}}}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::Array()}}}};
}

const Tokenizer& tokenizer() {
  static const Tokenizer made = Tokenizer::parse(json::dump(byte_vocabulary())).value();
  return made;
}

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

DecodedMessage decode(const std::vector<TokenId>& tokens, const StreamOptions& options,
                      std::size_t step) {
  StreamDecoder decoder(tokenizer(), options);
  DecodedMessage message;
  const auto take = [&message](const std::vector<StreamEvent>& events) {
    for (const StreamEvent& event : events) {
      require(is_valid_utf8(event.text) && !message.stop.has_value());
      message.add(event);
    }
  };
  for (std::size_t at = 0; at < tokens.size(); at += step) {
    const std::size_t n = std::min(step, tokens.size() - at);
    take(decoder.feed(std::span<const TokenId>(tokens).subspan(at, n)));
  }
  take(decoder.finish());
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 4096) {
    return 0;
  }
  StreamOptions options;
  options.starts_in_reasoning = (data[0] & 1) != 0;
  options.parse_tools = (data[0] & 2) == 0;
  options.include_stop = (data[0] & 4) != 0;
  if ((data[0] & 8) != 0) {
    options.stop = {"STOP", "\n\n", "OPS"};
  }
  if ((data[0] & 16) != 0) {
    options.tool_names = {"f"};
  }
  std::vector<TokenId> tokens;
  for (std::size_t i = 2; i < size; ++i) {
    if (data[i] >= 128 && data[i] < 128 + kPieces.size()) {
      const std::vector<TokenId> piece =
          tokenizer().encode(kPieces[data[i] - 128U], {.allow_added_tokens = true});
      tokens.insert(tokens.end(), piece.begin(), piece.end());
    } else {
      tokens.push_back(static_cast<TokenId>(data[i]));
    }
  }
  const DecodedMessage one_by_one = decode(tokens, options, 1);
  const DecodedMessage in_steps = decode(tokens, options, 1 + data[1]);
  require(one_by_one.reasoning == in_steps.reasoning && one_by_one.content == in_steps.content);
  require(one_by_one.stop == in_steps.stop);
  require(one_by_one.truncated_calls == in_steps.truncated_calls);
  require(one_by_one.tool_calls.size() == in_steps.tool_calls.size());
  for (std::size_t i = 0; i < one_by_one.tool_calls.size(); ++i) {
    const DecodedToolCall& call = one_by_one.tool_calls[i];
    require(call.name == in_steps.tool_calls[i].name);
    require(call.arguments == in_steps.tool_calls[i].arguments);
    const Result<json::Value> parsed = json::parse(call.arguments, {.max_depth = 80});
    require(parsed.ok() && parsed->is_object());
  }
  return 0;
}
