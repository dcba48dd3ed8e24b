// ConstraintMaker: the grammar of a task. Compiles once per distinct description and keeps the most
// recent ones, since an agent sends the same tools with every request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/grammar.h"
#include "model/text/tokenizer.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/generation_task.h"

namespace tandem::server {

struct TaskGrammar {
  grammar::GrammarPtr grammar;       // nullptr: free text
  std::vector<std::string> ignored;  // "keyword at path" that a non-strict schema asks in vain
};

// Thread-safe.
class ConstraintMaker {
 public:
  // `vocab_size`: of the model's logits, at least the tokenizer's.
  ConstraintMaker(const text::Tokenizer& tokenizer, int vocab_size);

  // ERRORS: 400 that names the field and the keyword.
  protocol::Parsed<TaskGrammar> make(const protocol::GenerationTask& task);

 private:
  Result<grammar::GrammarPtr> compile(const protocol::GenerationTask& task);

  grammar::VocabularyPtr vocabulary_;
  grammar::GrammarCache cache_;
};

}  // namespace tandem::server
