// PreparedTask: a task whose prompt is rendered, tokenised and checked, whose grammar is compiled.
// All that can be refused has been refused: what follows is generation. SOURCE: api.md A35.
#pragma once

#include <string>
#include <vector>

#include "engine/runtime/engine.h"
#include "model/text/stream_decoder.h"
#include "model/text/tokenizer.h"
#include "serving/protocol/generation_task.h"
#include "serving/protocol/model_info.h"
#include "serving/server/constraint_maker.h"

namespace tandem::server {

struct PreparedTask {
  protocol::GenerationTask task;
  std::vector<TokenId> prompt;
  text::StreamOptions stream;  // of every choice; call ids still to be made unique
  grammar::GrammarPtr grammar;
  std::vector<std::string> ignored_keywords;
  std::int64_t max_tokens = 0;
};

// What preparing needs of the server. All outlive their users.
struct PrepareParts {
  const text::Tokenizer& tokenizer;
  const protocol::ModelInfo& model;
  ConstraintMaker& constraints;
};

// The tokens of a conversation. ERRORS: 400 with the message index.
struct RenderedPrompt {
  std::vector<TokenId> tokens;
  bool starts_in_reasoning = false;
};
protocol::Parsed<RenderedPrompt> render_prompt(const protocol::GenerationTask& task,
                                               const PrepareParts& parts);

// ERRORS: 400: context_length_exceeded, the conversation, the grammar.
protocol::Parsed<PreparedTask> prepare_task(protocol::GenerationTask task,
                                            const PrepareParts& parts);

// The engine's request for choice `index` of the task.
runtime::GenerationRequest engine_request(const PreparedTask& prepared, int index,
                                          const std::string& request_id, const PrepareParts& parts);

}  // namespace tandem::server
