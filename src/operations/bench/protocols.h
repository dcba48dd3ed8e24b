// Published benchmark protocols: which cells to run so that figures can stand beside theirs, what
// they published, and in what our measurement still differs from theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operations/bench/load.h"

namespace tandem::bench {

struct PublishedFigure {
  ContentClass content = ContentClass::kProse;
  std::int64_t context_tokens = 0;
  int concurrency = 1;
  double decode = 0;     // tokens per second and stream; 0: not published
  double ttft_s = 0;     // 0: not published
  double aggregate = 0;  // tokens per second of all streams; 0: not published
};

struct Protocol {
  std::string name;    // "recipe-128"
  std::string title;   // who, when, on what machine and engine
  RequestShape shape;  // what it asks for
  std::vector<std::string> differences;
  std::vector<PublishedFigure> figures;

  // One cold cell per published figure.
  std::vector<Cell> cells() const;
};

const std::vector<Protocol>& published_protocols();

// nullptr if there is none of this name.
const Protocol* find_protocol(std::string_view name);

// How this program measures, printed with every run.
std::string measuring_rules();

// The differences, then one line per cell of `cells` that has a published figure: ours, theirs and
// the ratio.
std::string beside_published(const Protocol& protocol, const std::vector<CellResult>& cells);

}  // namespace tandem::bench
