// Chat encoder: messages -> prompt string -> tokens, exactly as the checkpoint was trained.
// SOURCE: model.md 5.3-5.6. The prompt is kept as parts, so that text that came from outside
// cannot form added tokens such as <｜Assistant｜>. The official encoder tokenises the whole
// string with added tokens on; ChatOptions::trust_text gives that behaviour.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "model/text/chat_message.h"
#include "model/text/tokenizer.h"

namespace tandem::text {

// Which release's encoding; they differ in the effort prefixes (model.md 5.5).
enum class ChatFormat { kPreview, k0731 };

enum class ThinkingMode { kChat, kThinking };

// preview: low and high write nothing, max writes P1. 0731: low nothing, high P1, max P2.
enum class Effort { kLow, kHigh, kMax };

struct ChatOptions {
  ChatFormat format = ChatFormat::k0731;
  ThinkingMode mode = ThinkingMode::kThinking;
  Effort effort = Effort::kLow;
  // Forget the reasoning of earlier turns; has no effect once any message carries tools.
  bool drop_thinking = true;
  // A conversation that ends in a closed assistant turn or a system message gets a fresh
  // <｜Assistant｜> header, and an empty assistant turn at the end is left out (model.md T42). The
  // official encoder (false) writes no header, from which the model cannot go on.
  bool always_open_turn = true;
  // Let all text form added tokens, as the official encoder does. Unsafe with text of others.
  bool trust_text = false;
};

struct PromptPart {
  std::string text;
  bool trusted = false;  // written by us: may form added tokens
};

struct Prompt {
  std::vector<PromptPart> parts;
  // Whether generation starts inside the reasoning: the last mark written is <think>.
  bool starts_in_reasoning = false;

  // The whole prompt, as the official encoder would return it.
  std::string text() const;
};

// The prompt of a conversation. `context` are messages whose text is in front already: they take
// part in the rules (dropping, sorting) but are not written, and no BOS or effort prefix is.
// ERRORS: kInvalidArgument naming the message index and what is wrong.
Result<Prompt> render_chat(std::span<const Message> messages, const ChatOptions& options,
                           std::span<const Message> context = {});

// Tokens of a prompt.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt);

}  // namespace tandem::text
