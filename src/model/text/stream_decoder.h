// Stream decoder: generated tokens -> reasoning, content and tool calls, piece by piece.
// SOURCE: model.md 5.4, T37-T43. Marks are recognised by token id, never by characters. The output
// is a pure function of the token sequence: any way of cutting it into feeds gives the same
// message. What was sent is never taken back: text that may turn out to be markup or a stop string
// waits until that is decided.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/ids.h"
#include "model/text/tokenizer.h"

namespace tandem::text {

struct StreamOptions {
  bool starts_in_reasoning = false;  // Prompt::starts_in_reasoning
  bool parse_tools = true;           // false: ｜DSML｜ is ordinary text (tool_choice "none")
  // Declared tools. Only for them an <invoke> that lacks the tool_calls wrapper counts as a call.
  std::set<std::string> tool_names;
  // (tool, parameter) pairs whose schema type is string: always sent as JSON strings.
  std::set<std::pair<std::string, std::string>> string_parameters;
  // Active in content only: never in reasoning, never in tool arguments.
  std::vector<std::string> stop;
  bool include_stop = false;             // the matched stop string stays in the content
  std::string call_id_prefix = "call_";  // the id of a call is prefix + index: make it unique
};

struct StreamEvent {
  enum class Kind {
    kReasoning,          // text: more reasoning
    kContent,            // text: more content
    kToolCallBegin,      // index, id, name
    kToolCallArguments,  // index; text: the next part of a JSON object's text
    kToolCallEnd,        // index; truncated: the arguments are no complete JSON, drop the call
    kStop,               // text: the stop string that was met; nothing follows
    kMalformed,          // text: markup that was left out or shown as text, for the log
  };
  Kind kind = Kind::kContent;
  std::string text;
  int index = 0;
  std::string id;
  std::string name;
  bool truncated = false;
};

// What the stream is inside of now.
enum class StreamChannel { kReasoning, kContent, kToolCall };

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, StreamOptions options);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  // Takes the next tokens and returns what is certain now. EOS, BOS and pad have no text.
  std::vector<StreamEvent> feed(std::span<const TokenId> tokens);
  std::vector<StreamEvent> feed(TokenId token);

  // The output is over (EOS, length, cancelled): releases what waited, closes an open call as
  // truncated. Nothing may be fed afterwards.
  std::vector<StreamEvent> finish();

  // Whether a stop string was met; further tokens are ignored.
  bool stopped() const;

  // Tokens taken until now, up to and including the one that completed a stop string.
  std::size_t tokens_taken() const;

  // Calls that were begun until now (also truncated ones).
  int tool_calls_begun() const;

  StreamChannel channel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DecodedToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // text of a JSON object
};

// A whole reply: the sum of its events.
struct DecodedMessage {
  std::string reasoning;
  std::string content;
  std::vector<DecodedToolCall> tool_calls;  // complete ones only
  int truncated_calls = 0;
  std::optional<std::string> stop;

  void add(const StreamEvent& event);

 private:
  std::optional<DecodedToolCall> open_;
};

}  // namespace tandem::text
