// compile_regex: a whole answer that matches a regular expression.
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "engine/grammar/regex.h"

namespace tandem::grammar {

Result<GrammarPtr> compile_regex(const VocabularyPtr& vocabulary, std::string_view pattern) {
  TANDEM_ASSIGN(DfaPtr dfa, compile_pattern(pattern, RegexMatch::kWhole));
  auto lexeme = Lexeme::create(TextForm::kRaw, std::move(dfa));
  if (!lexeme) {
    return invalid_argument("no text matches the regular expression '{}'", pattern);
  }
  auto graph = std::make_shared<Graph>();
  const NodeId start = graph->add_node();
  const NodeId end = graph->add_node();
  graph->set_end(end);
  const RuleId root = graph->add_rule(start);
  graph->lexeme(start, graph->add_lexeme(std::move(*lexeme)), end);
  TANDEM_TRY(graph->finish(root));
  auto machine = std::make_shared<Machine>(std::move(graph), vocabulary, EntryMode::kImmediate);
  return GrammarPtr(
      std::make_shared<CompiledGrammar>(std::move(machine), std::vector<Unenforced>{}));
}

}  // namespace tandem::grammar
