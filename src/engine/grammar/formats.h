// The string formats of JSON Schema (RFC 3339 times, addresses, URIs, ...) as automata.
#pragma once

#include <string_view>

#include "engine/grammar/dfa.h"

namespace tandem::grammar {

enum class FormatKind {
  kEnforced,    // format_dfa() has it
  kUnenforced,  // a format of the specification that no automaton here decides
  kAnnotation,  // not a format of the specification: it constrains nothing
};

FormatKind format_kind(std::string_view name);

// The texts of an enforced format. REQUIRES: format_kind(name) == kEnforced.
DfaPtr format_dfa(std::string_view name);

}  // namespace tandem::grammar
