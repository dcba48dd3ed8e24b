// compile_tool_calls: the DSML tool-call block as a grammar. SOURCE: model.md 5.4.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "engine/grammar/schema_emit.h"

namespace tandem::grammar {
namespace {

json::Value any_object() {
  return json::Object{{"type", "object"}};
}

// Writes the parameters of one tool between the line of its invoke tag and its closing tag.
class ToolWriter {
 public:
  ToolWriter(Graph* graph, SchemaDocument* document)
      : graph_(graph), logic_(document), emitter_(graph, &logic_), document_(document) {}

  Status write(NodeId from, NodeId to) {
    TANDEM_ASSIGN(const std::vector<Goal> options,
                  logic_.alternatives(make_goal({document_->root()})));
    for (const Goal& option : options) {
      TANDEM_ASSIGN(const Rules rules, logic_.rules(option));
      if ((rules.types & kObjectBit) != 0) {
        TANDEM_TRY(write_object(rules, from, to));
      }
    }
    return emitter_.finish();
  }

  const std::vector<Unenforced>& reported() const { return logic_.reported(); }

 private:
  struct Parameter {
    std::string name;
    Goal goal;
    bool required = false;
  };

  Status write_object(const Rules& rules, NodeId from, NodeId to) {
    TANDEM_ASSIGN(const std::vector<Parameter> parameters, declared(rules));
    report_limits(rules);
    if (parameters.empty()) {
      TANDEM_ASSIGN(const std::vector<KeyRegion> regions, logic_.other_keys(rules, {}));
      return write_free(regions, from, to);
    }
    // first[i]: nothing was written yet and parameter i or a later one comes next; then[i]: a
    // parameter was written.
    std::vector<NodeId> first(parameters.size() + 1);
    std::vector<NodeId> then(parameters.size() + 1);
    for (std::size_t i = 0; i <= parameters.size(); ++i) {
      first[i] = graph_->add_node();
      then[i] = graph_->add_node();
    }
    graph_->empty(from, first[0]);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& parameter = parameters[i];
      const NodeId line = graph_->add_node();
      graph_->literal(then[i], "\n", line);
      TANDEM_TRY(write_parameter(parameter, line, then[i + 1]));
      TANDEM_TRY(write_parameter(parameter, first[i], then[i + 1]));
      if (!parameter.required) {
        graph_->empty(first[i], first[i + 1]);
        graph_->empty(then[i], then[i + 1]);
      }
    }
    graph_->empty(first.back(), to);
    graph_->empty(then.back(), to);
    return ok_status();
  }

  Result<std::vector<Parameter>> declared(const Rules& rules) {
    std::vector<std::string> names = logic_.property_names(rules);
    for (const std::string& name : rules.required) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
    std::vector<Parameter> all;
    for (const std::string& name : names) {
      TANDEM_ASSIGN(Goal goal, logic_.property_goal(rules, name));
      const bool required =
          std::find(rules.required.begin(), rules.required.end(), name) != rules.required.end();
      if (!SchemaLogic::is_false(goal) || required) {
        all.push_back({name, std::move(goal), required});
      }
    }
    return all;
  }

  void report_limits(const Rules& rules) {
    for (const SchemaPtr schema : rules.members) {
      for (const char* keyword : {"minProperties", "maxProperties"}) {
        if (json::find(*schema, keyword) != nullptr) {
          logic_.report(schema, keyword, "the parameters of a tool are not counted");
        }
      }
    }
  }

  // Any number of parameters with names that the schema does not list.
  Status write_free(const std::vector<KeyRegion>& regions, NodeId from, NodeId to) {
    const NodeId after = graph_->add_node();
    const NodeId line = graph_->add_node();
    graph_->empty(from, to);
    graph_->empty(after, to);
    graph_->literal(after, "\n", line);
    for (const KeyRegion& region : regions) {
      for (const NodeId start : {from, line}) {
        const NodeId name = graph_->add_node();
        const NodeId name_end = graph_->add_node();
        open_tag(start, "parameter name=\"", name);
        write_free_name(name, name_end);
        TANDEM_TRY(write_value(region.goal, name_end, after));
      }
    }
    return ok_status();
  }

  // A name without quotes and line ends.
  void write_free_name(NodeId from, NodeId to) {
    constexpr std::uint8_t kFirst = 0x20;
    constexpr std::uint8_t kLast = 0x7E;
    const NodeId inside = graph_->add_node();
    for (const NodeId start : {from, inside}) {
      graph_->byte(start, kFirst, '"' - 1, inside);
      graph_->byte(start, '"' + 1, kLast, inside);
    }
    graph_->empty(inside, to);
  }

  void open_tag(NodeId from, std::string_view rest, NodeId to) {
    const NodeId mark = graph_->add_node();
    const NodeId name = graph_->add_node();
    graph_->literal(from, "<", mark);
    graph_->special(mark, Role::kDsml, name);
    graph_->literal(name, rest, to);
  }

  Status write_parameter(const Parameter& parameter, NodeId from, NodeId to) {
    const NodeId named = graph_->add_node();
    open_tag(from, "parameter name=\"" + parameter.name, named);
    return write_value(parameter.goal, named, to);
  }

  // From behind the parameter's name to behind its closing tag.
  Status write_value(const Goal& goal, NodeId from, NodeId to) {
    const NodeId raw = graph_->add_node();
    const NodeId json = graph_->add_node();
    const NodeId end = graph_->add_node();
    const NodeId mark = graph_->add_node();
    const NodeId close = graph_->add_node();
    graph_->literal(from, "\" string=\"true\">", raw);
    graph_->literal(from, "\" string=\"false\">", json);
    graph_->literal(end, "</", mark);
    graph_->special(mark, Role::kDsml, close);
    graph_->literal(close, "parameter>", to);
    TANDEM_ASSIGN(const std::vector<Goal> options, logic_.alternatives(goal));
    for (const Goal& option : options) {
      TANDEM_ASSIGN(Rules rules, logic_.rules(option));
      TANDEM_TRY(write_raw(rules, raw, end));
      TANDEM_TRY(write_json(std::move(rules), json, end));
    }
    return ok_status();
  }

  // The strings among the values, as they are.
  Status write_raw(const Rules& rules, NodeId from, NodeId to) {
    if (rules.values) {
      for (const SchemaPtr value : *rules.values) {
        TANDEM_ASSIGN(const bool ok, logic_.rules_accept(rules, *value));
        if (ok && value->is_string()) {
          graph_->literal(from, std::string_view(value->get_string()), to);
        }
      }
      return ok_status();
    }
    if ((rules.types & kStringBit) == 0) {
      return ok_status();
    }
    TANDEM_ASSIGN(DfaPtr dfa, logic_.string_dfa(rules.string));
    auto lexeme =
        Lexeme::create(TextForm::kRaw, std::move(dfa), rules.string.min, rules.string.max);
    if (lexeme) {
      graph_->lexeme(from, graph_->add_lexeme(std::move(*lexeme)), to);
    }
    return ok_status();
  }

  // All other values, as JSON.
  Status write_json(Rules rules, NodeId from, NodeId to) {
    if (!rules.values) {
      rules.types &= static_cast<std::uint8_t>(~kStringBit);
      return emitter_.alternative(rules, from, to);
    }
    for (const SchemaPtr value : *rules.values) {
      TANDEM_ASSIGN(const bool ok, logic_.rules_accept(rules, *value));
      if (ok && !value->is_string()) {
        emitter_.constant(*value, from, to);
      }
    }
    return ok_status();
  }

  Graph* graph_;
  SchemaLogic logic_;
  SchemaEmitter emitter_;
  SchemaDocument* document_;
};

// The block from behind "<" and the marker of its opening tag.
class BlockWriter {
 public:
  BlockWriter(Graph* graph, const std::vector<ToolSpec>& tools, const ToolChoice& choice)
      : graph_(graph), tools_(tools), choice_(choice) {}

  Status write(NodeId from, NodeId to, bool parallel) {
    const NodeId call = graph_->add_node();
    const NodeId after = graph_->add_node();
    const NodeId mark = graph_->add_node();
    const NodeId close = graph_->add_node();
    graph_->literal(from, "tool_calls>\n", call);
    for (const ToolSpec& tool : tools_) {
      if (choice_.mode != ToolChoiceMode::kNamed || choice_.name == tool.name) {
        TANDEM_TRY(write_call(tool, call, after));
      }
    }
    if (parallel) {
      graph_->literal(after, "\n", call);
    }
    graph_->literal(after, "\n</", mark);
    graph_->special(mark, Role::kDsml, close);
    graph_->literal(close, "tool_calls>", to);
    return ok_status();
  }

  std::vector<Unenforced> take_unenforced() { return std::move(unenforced_); }

 private:
  Status write_call(const ToolSpec& tool, NodeId from, NodeId to) {
    const NodeId mark = graph_->add_node();
    const NodeId name = graph_->add_node();
    const NodeId body = graph_->add_node();
    const NodeId end = graph_->add_node();
    const NodeId end_mark = graph_->add_node();
    const NodeId close = graph_->add_node();
    graph_->literal(from, "<", mark);
    graph_->special(mark, Role::kDsml, name);
    graph_->literal(name, "invoke name=\"" + tool.name + "\">\n", body);
    graph_->literal(end, "\n</", end_mark);
    graph_->special(end_mark, Role::kDsml, close);
    graph_->literal(close, "invoke>", to);
    const Status written = write_parameters(tool, body, end);
    return written.ok() ? written : written.with_context("tool '" + tool.name + "'");
  }

  Status write_parameters(const ToolSpec& tool, NodeId from, NodeId to) {
    const json::Value schema = tool.parameters.is_null() ? any_object() : tool.parameters;
    TANDEM_ASSIGN(std::unique_ptr<SchemaDocument> document, SchemaDocument::create(schema));
    ToolWriter writer(graph_, document.get());
    TANDEM_TRY(writer.write(from, to));
    if (tool.strict) {
      TANDEM_TRY(refuse_unenforced(writer.reported()));
    }
    for (Unenforced keyword : writer.reported()) {
      keyword.path = tool.name + keyword.path;
      unenforced_.push_back(std::move(keyword));
    }
    return ok_status();
  }

  Graph* graph_;
  const std::vector<ToolSpec>& tools_;
  const ToolChoice& choice_;
  std::vector<Unenforced> unenforced_;
};

Status check_choice(const VocabularyPtr& vocabulary, const std::vector<ToolSpec>& tools,
                    const ToolChoice& choice) {
  if (choice.mode == ToolChoiceMode::kNone) {
    return ok_status();
  }
  if (vocabulary->roles().dsml < 0) {
    return invalid_argument("this vocabulary has no token for tool calls");
  }
  const bool known = std::any_of(tools.begin(), tools.end(), [&choice](const ToolSpec& tool) {
    return tool.name == choice.name;
  });
  if (choice.mode == ToolChoiceMode::kNamed && !known) {
    return invalid_argument("tool_choice names '{}', which is not among the tools", choice.name);
  }
  return ok_status();
}

// The answer as JSON: content_schema.
Status write_content(const json::Value& schema, Graph* graph, NodeId from, NodeId to,
                     std::vector<Unenforced>* unenforced) {
  TANDEM_ASSIGN(const std::unique_ptr<SchemaDocument> document, SchemaDocument::create(schema));
  SchemaLogic logic(document.get());
  SchemaEmitter emitter(graph, &logic);
  TANDEM_TRY(emitter.value(make_goal({document->root()}), from, to));
  TANDEM_TRY(emitter.finish());
  unenforced->insert(unenforced->end(), logic.reported().begin(), logic.reported().end());
  return ok_status();
}

}  // namespace

Result<GrammarPtr> compile_tool_calls(const VocabularyPtr& vocabulary,
                                      const std::vector<ToolSpec>& tools, const ToolChoice& choice,
                                      bool parallel, const json::Value* content_schema) {
  TANDEM_TRY(check_choice(vocabulary, tools, choice));
  auto graph = std::make_shared<Graph>();
  const NodeId start = graph->add_node();
  const NodeId end = graph->add_node();
  graph->set_end(end);
  const RuleId root = graph->add_rule(start);
  std::vector<Unenforced> unenforced;
  const bool free_text = choice.mode == ToolChoiceMode::kAuto && content_schema == nullptr;
  const bool calls = choice.mode != ToolChoiceMode::kNone && !tools.empty();
  if (calls) {
    NodeId block = start;
    if (!free_text) {
      const NodeId mark = graph->add_node();
      block = graph->add_node();
      graph->literal(start, "\n\n<", mark);
      graph->special(mark, Role::kDsml, block);
    }
    BlockWriter writer(graph.get(), tools, choice);
    TANDEM_TRY(writer.write(block, end, parallel));
    unenforced = writer.take_unenforced();
  }
  const bool answers = choice.mode == ToolChoiceMode::kAuto || choice.mode == ToolChoiceMode::kNone;
  if (content_schema != nullptr && answers) {
    TANDEM_TRY(write_content(*content_schema, graph.get(), start, end, &unenforced));
  } else if (!calls) {
    graph->empty(start, end);  // never entered: free text without calls
  }
  TANDEM_TRY(graph->finish(root));
  const EntryMode mode = content_schema != nullptr || !answers ? EntryMode::kImmediate
                         : calls                               ? EntryMode::kTriggered
                                                               : EntryMode::kFreeText;
  auto machine = std::make_shared<Machine>(std::move(graph), vocabulary, mode);
  return GrammarPtr(std::make_shared<CompiledGrammar>(std::move(machine), std::move(unenforced)));
}

}  // namespace tandem::grammar
