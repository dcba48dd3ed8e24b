// The public face of structured output: compile a description once, then give every sequence its
// own light matcher. A grammar never accepts a text that its description refuses; what it cannot
// enforce is named when it is compiled, not discovered later.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/token_constraint.h"
#include "engine/grammar/vocabulary.h"
#include "foundation/base/status.h"
#include "foundation/json/json.h"

namespace tandem::grammar {

class Machine;

// A schema keyword that the grammar does not enforce.
struct Unenforced {
  std::string path;     // JSON pointer to the schema that holds it, "#/properties/a"
  std::string keyword;  // "uniqueItems"
  std::string reason;   // why, for the operator
};

struct SchemaOptions {
  bool strict = false;  // refuse a schema with a keyword that cannot be enforced
};

// Immutable and thread-safe: one description bound to one vocabulary.
class CompiledGrammar {
 public:
  CompiledGrammar(std::shared_ptr<Machine> machine, std::vector<Unenforced> unenforced);
  ~CompiledGrammar();

  // Keywords of a non-strict schema that are ignored; empty otherwise.
  const std::vector<Unenforced>& unenforced() const { return unenforced_; }

  const std::shared_ptr<Machine>& machine() const { return machine_; }

 private:
  std::shared_ptr<Machine> machine_;
  std::vector<Unenforced> unenforced_;
};

using GrammarPtr = std::shared_ptr<const CompiledGrammar>;
using VocabularyPtr = std::shared_ptr<const Vocabulary>;

// JSON Schema (2020-12, and drafts 4 to 7 where they agree). Objects have their properties in the
// order of the schema. ERRORS: kInvalidArgument for a malformed or unsatisfiable schema, or, with
// strict, for a keyword that cannot be enforced; the message names its path.
Result<GrammarPtr> compile_json_schema(const VocabularyPtr& vocabulary, const json::Value& schema,
                                       const SchemaOptions& options);

// Any JSON object.
Result<GrammarPtr> compile_json_object(const VocabularyPtr& vocabulary);

// The whole text matches the (ECMA-262 flavoured) regular expression, anchored at both ends.
// ERRORS: kInvalidArgument for bad syntax or a construct no automaton has (lookaround, backrefs).
Result<GrammarPtr> compile_regex(const VocabularyPtr& vocabulary, std::string_view pattern);

// GBNF / EBNF: rules `name ::= ...`, starting at `root`.
// ERRORS: kInvalidArgument with the line for bad syntax, undefined rules and left recursion.
Result<GrammarPtr> compile_ebnf(const VocabularyPtr& vocabulary, std::string_view text);

// One function tool. A null schema means: any object.
struct ToolSpec {
  std::string name;
  json::Value parameters;
  bool strict = false;
};

enum class ToolChoiceMode {
  kAuto,      // free text; a tool-call block, once opened, is constrained
  kRequired,  // the answer is a tool-call block
  kNamed,     // the answer calls ToolChoice::name
  kNone,      // free text in which no block can open
};

struct ToolChoice {
  ToolChoiceMode mode = ToolChoiceMode::kAuto;
  std::string name;  // with kNamed
};

// The DSML tool-call syntax (model.md 5.4) with a schema for every parameter. With `parallel` a
// block may hold several calls. With kAuto, `content` (if given) constrains the answer that is not
// a call. Declared parameters come in schema order; a tool that declares some takes no others.
// ERRORS: as compile_json_schema, the path starting with the tool; kInvalidArgument for an unknown
// name or a vocabulary without the DSML marker.
Result<GrammarPtr> compile_tool_calls(const VocabularyPtr& vocabulary,
                                      const std::vector<ToolSpec>& tools, const ToolChoice& choice,
                                      bool parallel, const json::Value* content_schema = nullptr);

struct ConstraintOptions {
  // The prompt ended with <think>: everything up to the think_end token is free (but the sequence
  // can neither end nor call tools there), then the grammar starts.
  bool starts_in_thinking = false;
};

std::unique_ptr<TokenConstraint> make_constraint(const GrammarPtr& grammar,
                                                 const ConstraintOptions& options = {});

// Keeps the most recently used grammars, so that an agent that sends the same tools with every
// request compiles them once and keeps their masks. Thread-safe.
class GrammarCache {
 public:
  explicit GrammarCache(std::size_t max_entries = 64);
  ~GrammarCache();

  // The cached grammar of `key` (the caller's canonical description), or what `compile` returns.
  template <typename Compile>
  Result<GrammarPtr> get(const std::string& key, Compile compile) {
    if (GrammarPtr found = find(key)) {
      return found;
    }
    Result<GrammarPtr> made = compile();
    if (made.ok()) {
      insert(key, *made);
    }
    return made;
  }

 private:
  struct State;
  GrammarPtr find(const std::string& key);
  void insert(const std::string& key, GrammarPtr grammar);

  std::unique_ptr<State> state_;
};

}  // namespace tandem::grammar
