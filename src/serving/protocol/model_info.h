// ModelInfo: what clients may know of the served model, and the server's defaults for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/text/chat_encoder.h"

namespace tandem::protocol {

struct ModelInfo {
  std::string name;         // as clients name it
  std::string fingerprint;  // "system_fingerprint": changes with weights and config
  std::int64_t max_context_tokens = 0;
  std::int64_t created = 0;  // seconds since 1970
  text::ChatFormat format = text::ChatFormat::k0731;
  text::ThinkingMode mode = text::ThinkingMode::kThinking;
  text::Effort effort = text::Effort::kHigh;
  std::optional<int> thinking_budget;  // tokens; nullopt: none
};

}  // namespace tandem::protocol
