#include "model/text/stream_decoder.h"

#include <utility>

#include "foundation/base/check.h"
#include "model/text/dsml_parser.h"
#include "model/text/stream_events.h"
#include "model/text/utf8.h"

namespace tandem::text {

struct StreamDecoder::State {
  State(const Tokenizer& t, StreamOptions o)
      : tokenizer(t),
        options(std::move(o)),
        events(options.stop, options.include_stop),
        parser(options, events) {}

  void put_text(const std::string& text) {
    for (const char c : text) {
      if (events.stopped()) {
        return;
      }
      parser.put(c);
    }
  }

  // A mark ends the character before it, complete or not.
  void put_mark(char mark) {
    std::string text;
    assembler.finish(text);
    put_text(text);
    if (!events.stopped()) {
      parser.put(mark);
    }
  }

  void put(TokenId token) {
    const SpecialTokens& special = tokenizer.special();
    if (tokenizer.is_special(token)) {
      return;
    }
    if (token == special.think_end) {
      put_mark(kThinkEndMark);
    } else if (token == special.think_begin) {
      put_mark(kThinkBeginMark);
    } else if (token == special.dsml && options.parse_tools) {
      put_mark(kDsmlMark);
    } else {
      std::string text;
      assembler.push(tokenizer.token_bytes(token), text);
      put_text(text);
    }
  }

  const Tokenizer& tokenizer;
  StreamOptions options;
  StreamEvents events;
  DsmlParser parser;
  Utf8Assembler assembler;
  std::size_t tokens_taken = 0;
  bool finished = false;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, StreamOptions options)
    : state_(std::make_unique<State>(tokenizer, std::move(options))) {}

StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::vector<StreamEvent> StreamDecoder::feed(std::span<const TokenId> tokens) {
  TANDEM_CHECK(!state_->finished, "a finished stream takes no tokens");
  for (const TokenId token : tokens) {
    if (state_->events.stopped()) {
      break;
    }
    ++state_->tokens_taken;
    state_->put(token);
  }
  return state_->events.take();
}

std::vector<StreamEvent> StreamDecoder::feed(TokenId token) {
  return feed(std::span<const TokenId>(&token, 1));
}

std::vector<StreamEvent> StreamDecoder::finish() {
  if (!std::exchange(state_->finished, true) && !state_->events.stopped()) {
    std::string text;
    state_->assembler.finish(text);
    state_->put_text(text);
    if (!state_->events.stopped()) {
      state_->parser.end();
    }
  }
  return state_->events.take();
}

bool StreamDecoder::stopped() const {
  return state_->events.stopped();
}

std::size_t StreamDecoder::tokens_taken() const {
  return state_->tokens_taken;
}

int StreamDecoder::tool_calls_begun() const {
  return state_->parser.n_calls();
}

StreamChannel StreamDecoder::channel() const {
  return state_->parser.channel();
}

void DecodedMessage::add(const StreamEvent& event) {
  switch (event.kind) {
    case StreamEvent::Kind::kReasoning:
      reasoning += event.text;
      break;
    case StreamEvent::Kind::kContent:
      content += event.text;
      break;
    case StreamEvent::Kind::kToolCallBegin:
      open_ = DecodedToolCall{event.id, event.name, std::string()};
      break;
    case StreamEvent::Kind::kToolCallArguments:
      TANDEM_CHECK(open_.has_value(), "arguments need a call that was begun");
      open_->arguments += event.text;
      break;
    case StreamEvent::Kind::kToolCallEnd:
      TANDEM_CHECK(open_.has_value(), "the end of a call needs its begin");
      if (event.truncated) {
        ++truncated_calls;
      } else {
        tool_calls.push_back(std::move(*open_));
      }
      open_.reset();
      break;
    case StreamEvent::Kind::kStop:
      stop = event.text;
      break;
    case StreamEvent::Kind::kMalformed:
      break;
  }
}

}  // namespace tandem::text
