// Text that clients carry for us without reading it: "encrypted_content" of reasoning and
// compaction items. It is the text in base64 behind a mark, so that it survives `store: false` and
// needs no key; a foreign one (of another service) is told apart by the missing mark.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::protocol {

std::string wrap_opaque(std::string_view text);

// nullopt if it was not made by wrap_opaque.
std::optional<std::string> unwrap_opaque(std::string_view wrapped);

}  // namespace tandem::protocol
