// compile_json_schema and compile_json_object: schema text to grammar.
#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "engine/grammar/schema_emit.h"

namespace tandem::grammar {

Status refuse_unenforced(const std::vector<Unenforced>& all) {
  if (all.empty()) {
    return ok_status();
  }
  const Unenforced& first = all.front();
  return invalid_argument(
      "strict: '{}' at {} cannot be enforced: {} ({} such keywords in all); remove it or do not "
      "ask "
      "for strict",
      first.keyword, first.path, first.reason, all.size());
}

Result<GrammarPtr> compile_json_schema(const VocabularyPtr& vocabulary, const json::Value& schema,
                                       const SchemaOptions& options) {
  TANDEM_ASSIGN(const std::unique_ptr<SchemaDocument> document, SchemaDocument::create(schema));
  auto graph = std::make_shared<Graph>();
  SchemaLogic logic(document.get());
  SchemaEmitter emitter(graph.get(), &logic);
  const NodeId start = graph->add_node();
  const NodeId end = graph->add_node();
  graph->set_end(end);
  const RuleId root = graph->add_rule(start);
  TANDEM_TRY(emitter.value(make_goal({document->root()}), start, end));
  TANDEM_TRY(emitter.finish());
  if (options.strict) {
    TANDEM_TRY(refuse_unenforced(logic.reported()));
  }
  TANDEM_TRY(graph->finish(root));
  auto machine = std::make_shared<Machine>(std::move(graph), vocabulary, EntryMode::kImmediate);
  return GrammarPtr(std::make_shared<CompiledGrammar>(std::move(machine), logic.reported()));
}

Result<GrammarPtr> compile_json_object(const VocabularyPtr& vocabulary) {
  json::Object schema;
  schema["type"] = "object";
  return compile_json_schema(vocabulary, schema, {});
}

}  // namespace tandem::grammar
