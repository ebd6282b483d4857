// What a map does beside, or other than, a single map inside is taken apart, so that all of it runs in parallel.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/chunks.h"
#include "passes/extract_kernels/interchange.h"

namespace apl {

struct Distributed {
  std::vector<Stm> stms;       // in order; together they bind the pattern of the map
  std::set<std::size_t> work;  // positions in `stms` of maps with nothing parallel in them
  enum class Form : std::uint8_t { split, loop, branch, scatter, reduction, scan } form = Form::split;
  std::size_t parts = 0;             // split: how many maps and other operations
  std::vector<Refusal> not_tiled{};  // why reductions among the parts are no contractions that can be tiled
};

// `flat`: a map without inputs (flatten). nullopt: its lambda holds nothing that could run in parallel, or the maps
// are a perfect nest. `chunks` gives the numbers for the next reduction or scan; `overwritten` says that the program
// overwrites a result in place somewhere, so that none may be another name of an array that is read.
using ChunksFor = std::function<Chunks(const Stm& stm, const Segments& segments)>;
std::optional<Distributed> distribute(const Stm& flat, const Replicated& replicated, const ChunksFor& chunks,
                                      bool overwritten, ValueTable& values);

}  // namespace apl
